"""What other apps may hear of a session. Sent inside the transaction that makes it true."""

from __future__ import annotations

from django.dispatch import Signal

# Arguments: `session` (a `log.Closed`) and `now` (when it closed).
session_closed = Signal()

# Arguments: `session` (its id) and `kind`. Sent for every event but the close, by the one append.
event_appended = Signal()
