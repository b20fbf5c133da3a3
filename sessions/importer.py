"""Bringing in conversations held elsewhere: through the log, with their own times, closed by the idle rule."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction

from memberintel.lib import tokens
from memberintel.lib.ids import uuid7
from memberintel.vault import keyring
from sessions import closing, log
from sessions.domain import events as kinds
from sessions.domain import title
from sessions.domain.conversation_file import Conversation, ConversationFile, Said
from sessions.log import Turn
from sessions.models import CloseReason, Session

BY = "import"


class Outcome(StrEnum):
    """What became of a session of the file."""

    ADDED = "added"
    OPEN = "open"  # added, and so recent that only the clock may close it
    KNOWN = "known"


@dataclass(frozen=True, slots=True)
class Imported:
    """A session of the file in the product."""

    session: UUID
    outcome: Outcome


def import_conversations(file: ConversationFile, *, now: datetime) -> Iterator[Imported]:
    """Add the file's sessions for the customer of the current scope, one transaction each, in its order.

    A session that is there already, from an earlier import of this file, is left as it is; so an import that
    was interrupted is finished by another.
    """
    for conversation in file.sessions:
        yield import_conversation(conversation, now=now)


def import_conversation(conversation: Conversation, *, now: datetime) -> Imported:
    """Add one session, closed when the customer's silence has lasted. CannotOpen without the customer's key."""
    session = session_id(conversation)
    if Session.objects.filter(id=session).exists():
        return Imported(session, Outcome.KNOWN)
    try:
        with transaction.atomic():
            closed = _add(session, conversation, now)
    except IntegrityError:
        if not Session.objects.filter(id=session).exists():
            raise
        return Imported(session, Outcome.KNOWN)  # another import of the same file was a moment faster
    return Imported(session, Outcome.ADDED if closed else Outcome.OPEN)


def session_id(conversation: Conversation) -> UUID:
    """The same id each time the customer imports this session: made of its start and its first message.

    Keyed with the customer's data key, since ids stand in the clear and must not confirm a guess at a message.
    """
    first = conversation.messages[0]
    said = "\0".join((conversation.started_at.isoformat(), first.role, first.at.isoformat(), first.text))
    key = hmac.digest(keyring.customer_key(), b"memberintel imported sessions", hashlib.sha256)
    return uuid7(conversation.started_at, entropy=hmac.digest(key, said.encode(), hashlib.sha256))


def _add(session: UUID, conversation: Conversation, now: datetime) -> bool:
    begun = conversation.started_at
    row = Session(id=session, started_at=begun, ended_at=begun, last_activity_at=begun, imported=True)
    row.title = title.from_first_words(_first_words(conversation))
    row.save(force_insert=True)
    log.append(session, kinds.session_opened(imported=True), at=begun)
    for turn, said in _turns(conversation):
        log.append(session, _draft(said), turn=turn, at=said.at)
    return closing.close(session, reason=CloseReason.IDLE, by=BY, now=_closed_at(conversation, now))


def _first_words(conversation: Conversation) -> str:
    """The customer's first message; the first of all when they said nothing."""
    own = (said.text for said in conversation.messages if said.role == "customer")
    return next(own, conversation.messages[0].text)


def _turns(conversation: Conversation) -> Iterator[tuple[Turn, Said]]:
    """Each message with its turn: an answer shares that of the message right before it, if there is one."""
    turn: Turn | None = None
    for said in conversation.messages:
        answers = said.role == "advisor" and turn is not None
        current = turn if answers and turn is not None else Turn(uuid7(said.at), 1, BY)
        turn = current if said.role == "customer" else None
        yield current, said


def _draft(said: Said) -> kinds.Draft:
    count = tokens.count(said.text)
    if said.role == "customer":
        return kinds.user_message(text=said.text, tokens=count)
    return kinds.assistant_turn(text=said.text, tokens=count, model="", provider="", imported=True)


def _closed_at(conversation: Conversation, now: datetime) -> datetime:
    """When the session fell silent for good: never before its last message, never in the future."""
    own = [said.at for said in conversation.messages if said.role == "customer"]
    silent = (own[-1] if own else conversation.started_at) + timedelta(seconds=settings.IDLE_SECONDS)
    return min(now, max(silent, conversation.messages[-1].at))
