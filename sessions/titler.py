"""Finds a session's title after its first answer. Without one the first words stay, and nothing is the worse."""

from __future__ import annotations

import asyncio
import logging
from functools import cache
from pathlib import Path
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction

from memberintel.llm import seam
from memberintel.llm.errors import ModelError
from memberintel.llm.types import Message, Prompt
from memberintel.tenancy.context import Scope
from memberintel.tenancy.unit import unit
from memberintel.vault.errors import CannotOpen
from sessions import log
from sessions.domain import events as kinds
from sessions.domain import title
from sessions.models import Session

logger = logging.getLogger(__name__)

VERSION: Final = "title-1"
READ_CHARACTERS: Final = 2_000
FIRST_EVENTS: Final = 10


async def entitle(scope: Scope, session: UUID, turn: UUID) -> None:
    """Ask for a title and keep it, within its deadline; never raises for what a model or the database does."""
    try:
        said = await unit(scope, _first_message, session)
        if not said:
            return
        prompt = Prompt((_instructions(),), (Message("user", said[:READ_CHARACTERS]),))
        asked = seam.complete("title", prompt, scope=scope, session=session, turn=turn)
        answer = await asyncio.wait_for(asked, settings.TURN_DEADLINES["title"])
        await unit(scope, keep, session, title.from_first_words(answer.text.strip().strip('"')))
    except (ModelError, TimeoutError, CannotOpen, OperationalError, InterfaceError) as error:
        logger.warning("a session keeps its first words as title: %s", type(error).__name__)


@cache
def _instructions() -> str:
    return (Path(__file__).parent / "prompts" / f"{VERSION}.txt").read_text().strip()


def keep(session: UUID, words: str) -> None:
    """Give the session its title: the first words of its first message, until there is a better one.

    None for one off the record, whose words are not kept, and none for one that was erased meanwhile.
    """
    with transaction.atomic():
        row = Session.objects.select_for_update(no_key=True).filter(id=session, erased_at=None).first()
        if row is None or row.off_record:
            return
        row.title = words
        row.save(update_fields=["title"])


def _first_message(session: UUID) -> str:
    if not Session.objects.filter(id=session, erased_at=None, off_record=False).exists():
        return ""  # nobody is asked for a title that is not kept
    events = log.load(session, through=FIRST_EVENTS)
    return next((kinds.text_of(event) for event in events if event.kind == kinds.USER_MESSAGE), "")
