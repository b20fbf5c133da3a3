"""The history of the demo's Pro customer: who they are, what they know, and what was talked about."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from brain import queries as brain
from brain.actions import save_document
from brain.domain.documents import KINDS
from memberintel.accounts import actions as accounts
from memberintel.accounts.domain import Person
from sessions.domain import conversation_file
from sessions.domain.conversation_file import ConversationFile
from sessions.importer import import_conversations
from wrapups.demo import numbers

HERE: Final = Path(__file__).parent
CONVERSATION: Final = HERE / "conversation.json"
PERSON: Final = Person("Mara", "Europe/London", "en")
NEWEST: Final = timedelta(days=2)  # how long ago the last session was, at the least


def write(*, day: date, now: datetime) -> None:
    """Give the customer of the current scope the history, its last session two to eight days before `day`.

    Weekdays stay what they were. What is there already is left alone.
    """
    accounts.save_person(PERSON)
    for kind in KINDS:
        if not brain.document(kind).version:
            body = (HERE / f"{kind}.txt").read_text()
            save_document(kind=kind, body=body, base_version=0, by="customer", reason="")
    numbers.write(day=day, time_zone=PERSON.time_zone)
    for _ in import_conversations(conversation(day=day, now=now), now=now):
        pass


def conversation(*, day: date, now: datetime) -> ConversationFile:
    """The conversation, moved by whole weeks."""
    given = json.loads(CONVERSATION.read_text())
    last = datetime.fromisoformat(given["sessions"][-1]["started_at"]).date()
    weeks = timedelta(weeks=(day - NEWEST - last).days // 7)
    for session in given["sessions"]:
        session["started_at"] = _moved(session["started_at"], weeks)
        for message in session["messages"]:
            message["at"] = _moved(message["at"], weeks)
    return _parsed(given, now)


def _moved(at: str, by: timedelta) -> str:
    return (datetime.fromisoformat(at) + by).isoformat()


def _parsed(given: Any, now: datetime) -> ConversationFile:
    raw = json.dumps(given).encode()
    return conversation_file.parse(raw, now=now, most_characters=settings.MESSAGE_LIMIT_CHARACTERS)
