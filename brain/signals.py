"""What other apps may hear of the brain, and what it asks of them. Sent inside the transaction that makes it true."""

from __future__ import annotations

from django.dispatch import Signal

# No arguments. The text of a source was taken out of prompts of the scope's customer: what still runs on one of
# them must be told.
parts_removed = Signal()

# Asks which parts a session's model has before it. Argument: `session` (its id). Receivers give digests.
parts_before_model = Signal()
