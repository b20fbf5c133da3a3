"""What a session hears of the brain it runs on, and answers to it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.dispatch import receiver

from brain.signals import parts_before_model, parts_removed
from sessions import actions, queries


@receiver(parts_removed)
def state_prompt_anew(**_: Any) -> None:
    """Without what was removed, if the open session's prompt had it."""
    actions.refresh_prompt()


@receiver(parts_before_model)
def digests(session: UUID, **_: Any) -> list[str]:
    """The digests of the parts of the newest prompt, and of what was recalled since the newest compaction."""
    return queries.part_digests(session)
