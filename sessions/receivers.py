"""What a session hears of the brain it runs on."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from brain.signals import parts_removed
from sessions import actions


@receiver(parts_removed)
def state_prompt_anew(**_: Any) -> None:
    """Without what was removed, if the open session's prompt had it."""
    actions.refresh_prompt()
