"""Importing: the file's sessions are sessions like any other, with their own times; twice is once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command

from memberintel.lib import clock
from memberintel.tenancy.context import scope
from memberintel.tenancy.models import User
from sessions import actions, importer, log, queries
from sessions.domain import events as kinds
from sessions.domain.conversation_file import Conversation, ConversationFile, Said
from sessions.importer import Outcome, import_conversations
from sessions.models import CloseReason, Session
from sessions.signals import session_closed
from tests.conftest import Person

BEGUN = datetime(2024, 3, 9, 23, 30, tzinfo=UTC)
LONG = (
    "We lost eleven members of the glazing circle last month, and most of them told me that the price of forty"
    " dollars was fine but that nobody had answered their questions."
)


def said(role: str, minute: int, text: str = "Hello there") -> Said:
    return Said("customer" if role == "customer" else "advisor", BEGUN + timedelta(minutes=minute), text)


def file(*sessions: tuple[Said, ...]) -> ConversationFile:
    return ConversationFile("Ada", "Ben", "UTC", tuple(Conversation(each[0].at, each) for each in sessions))


def bring(who: Person, *sessions: tuple[Said, ...], now: datetime | None = None) -> list[importer.Imported]:
    with scope(who.scope):
        return list(import_conversations(file(*sessions), now=now or clock.now()))


def events(who: Person, session: UUID) -> list[kinds.Event]:
    with scope(who.scope):
        return log.load(session)


def row(who: Person, session: UUID) -> Session:
    with scope(who.scope):
        return Session.objects.get(id=session)


def test_a_session_has_the_times_of_its_messages(alice: Person) -> None:
    [done] = bring(
        alice, (said("advisor", 0), said("customer", 2), said("customer", 5, LONG), said("advisor", 9))
    )
    session = row(alice, done.session)
    assert session.started_at == BEGUN + timedelta(minutes=2)
    assert session.ended_at == BEGUN + timedelta(minutes=5)
    assert session.last_activity_at == BEGUN + timedelta(minutes=9)
    assert session.closed_at == session.ended_at + timedelta(hours=2)
    assert (session.close_reason, session.imported) == (CloseReason.IDLE, True)
    assert (session.user_messages, session.substantive) == (2, True)
    with scope(alice.scope):
        assert session.title == "Hello there"
    assert [event.at for event in events(alice, done.session)] == [
        BEGUN + timedelta(minutes=minute) for minute in (0, 0, 2, 5, 9, 125)
    ]


def test_an_answer_shares_the_turn_of_the_message_before_it(alice: Person) -> None:
    roles = ["advisor", "customer", "customer", "advisor", "advisor", "customer"]
    [done] = bring(alice, tuple(said(role, minute, f"text {minute}") for minute, role in enumerate(roles)))
    opened, *spoken, closed = events(alice, done.session)
    assert (opened.kind, opened.payload["imported"]) == (kinds.SESSION_OPENED, True)
    assert (closed.kind, closed.payload["by"]) == (kinds.SESSION_CLOSED, "import")
    assert [event.seq for event in spoken] == [2, 3, 4, 5, 6, 7]
    turns = [event.turn for event in spoken]
    assert turns[2] == turns[3]
    assert len(set(turns)) == 5
    assert all(event.payload["imported"] for event in spoken if event.kind == kinds.ASSISTANT_TURN)
    with scope(alice.scope):
        lines = queries.transcript_lines(done.session)
    assert [(line.role, line.text) for line in lines] == [
        (role, f"text {minute}") for minute, role in enumerate(roles)
    ]


def test_small_talk_is_not_substantive(alice: Person) -> None:
    [done] = bring(alice, (said("customer", 0, "Thanks, bye!"), said("advisor", 1, LONG)))
    assert not row(alice, done.session).substantive


def test_what_is_owed_hears_of_each_close(alice: Person) -> None:
    heard: list[UUID] = []

    def hear(session: Session, **kwargs: object) -> None:
        heard.append(session.id)

    session_closed.connect(hear)
    try:
        done = bring(alice, (said("customer", 0),), (said("customer", 1),))
    finally:
        session_closed.disconnect(hear)
    assert heard == [each.session for each in done]


def test_the_same_file_again_adds_nothing(alice: Person) -> None:
    sessions = [(said("customer", 0), said("advisor", 1)), (said("customer", 600),)]
    first = bring(alice, *sessions)
    again = bring(alice, *sessions)
    assert [each.outcome for each in again] == [Outcome.KNOWN, Outcome.KNOWN]
    assert [each.session for each in again] == [each.session for each in first]
    with scope(alice.scope):
        assert Session.objects.count() == 2
    assert len(events(alice, first[0].session)) == 4


def test_two_customers_import_the_same_file_each_for_themselves(alice: Person, bob: Person) -> None:
    [hers] = bring(alice, (said("customer", 0),))
    [his] = bring(bob, (said("customer", 0),))
    assert his.outcome is Outcome.ADDED
    assert his.session != hers.session
    with scope(bob.scope):
        assert queries.get_session(hers.session) is None


def test_a_session_is_there_whole_or_not_at_all(alice: Person) -> None:
    broken = (said("customer", 600), said("advisor", 601))
    sessions = [(said("customer", 0),), broken, (said("customer", 900),)]
    with failing_after(2 + 2), pytest.raises(ZeroDivisionError):
        bring(alice, *sessions)
    with scope(alice.scope):
        assert Session.objects.count() == 1
    outcomes = [each.outcome for each in bring(alice, *sessions)]
    assert outcomes == [Outcome.KNOWN, Outcome.ADDED, Outcome.ADDED]


@contextmanager
def failing_after(appends: int) -> Iterator[None]:
    left = iter(range(appends))
    real = log.append

    def append(*args: Any, **kwargs: Any) -> int:
        if next(left, None) is None:
            raise ZeroDivisionError
        return real(*args, **kwargs)

    with patch.object(log, "append", append):
        yield


def test_an_import_does_not_disturb_the_open_session(alice: Person) -> None:
    with scope(alice.scope):
        open_one = actions.open_session()
    bring(alice, (said("customer", 0),))
    with scope(alice.scope):
        found = queries.open_session()
        assert found is not None
        assert found.id == open_one


def test_a_session_of_a_moment_ago_is_left_to_the_clock(alice: Person) -> None:
    now = BEGUN + timedelta(minutes=30)
    [done] = bring(alice, (said("customer", 0), said("advisor", 20)), now=now)
    assert done.outcome is Outcome.OPEN
    session = row(alice, done.session)
    assert session.is_open
    with scope(alice.scope):
        assert queries.open_session() is None


def test_a_session_is_not_closed_before_its_last_message(alice: Person) -> None:
    [done] = bring(alice, (said("customer", 0), said("advisor", 500)))
    assert row(alice, done.session).closed_at == BEGUN + timedelta(minutes=500)


def test_a_session_without_a_word_of_the_customer_is_kept_too(alice: Person) -> None:
    [done] = bring(alice, (said("advisor", 0, LONG),))
    session = row(alice, done.session)
    assert (session.started_at, session.user_messages, session.substantive) == (BEGUN, 0, False)
    assert session.closed_at == BEGUN + timedelta(hours=2)


# --- the command -----------------------------------------------------------------------------------------


def written(folder: Path, **changed: Any) -> Path:
    given = {
        "format": "memberintel-transcript/1",
        "customer": "Ada",
        "advisor": "Ben",
        "timezone": "Europe/Berlin",
        "sessions": [
            {
                "started_at": f"2024-05-{day:02}T10:00:00",
                "messages": [{"role": "customer", "at": f"2024-05-{day:02}T10:00:00", "text": LONG}],
            }
            for day in (1, 2, 3)
        ],
    }
    path = folder / "conversations.json"
    path.write_text(json.dumps({**given, **changed}))
    return path


def run(path: Path, email: str) -> str:
    out = StringIO()
    call_command("import_conversations", str(path), customer=email, stdout=out)
    return out.getvalue()


def test_the_command_imports_and_says_how_many(alice: Person, tmp_path: Path) -> None:
    path, email = written(tmp_path), alice.user.email
    assert run(path, email.upper()) == f"{email.upper()}: 3 sessions imported.\n"
    assert run(path, email) == f"{email}: 0 sessions imported, 3 were there already.\n"
    with scope(alice.scope):
        assert Session.objects.filter(imported=True, closed_at__isnull=False).count() == 3


def test_a_bad_file_imports_nothing(alice: Person, tmp_path: Path) -> None:
    path = written(tmp_path)
    given = json.loads(path.read_text())
    given["sessions"][2]["messages"][0]["role"] = "robot"
    path.write_text(json.dumps(given))
    with pytest.raises(CommandError, match=r"sessions\[2\]\.messages\[0\]\.role: expected"):
        run(path, alice.user.email)
    with scope(alice.scope):
        assert not Session.objects.exists()


def test_a_file_that_is_not_there(alice: Person, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        run(tmp_path / "absent.json", alice.user.email)


def test_an_unknown_customer_and_a_member_of_staff(alice: Person, tmp_path: Path) -> None:
    path = written(tmp_path)
    with pytest.raises(CommandError, match="There is no customer with the address nobody@example"):
        run(path, "nobody@example.com")
    staff = User.objects.create_user(f"staff-{alice.user.id}@example.com", "a good password", is_staff=True)
    with pytest.raises(CommandError, match="member of staff"):
        run(path, staff.email)


def test_an_interrupted_command_says_how_to_go_on(
    alice: Person, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real, calls = importer.import_conversation, iter(range(1))

    def once(*args: Any, **kwargs: Any) -> importer.Imported:
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    path = written(tmp_path)
    with patch.object(importer, "import_conversation", once), pytest.raises(SystemExit) as ended:
        run(path, alice.user.email)
    assert ended.value.code == 130
    assert "1 sessions imported. The same command again continues." in capsys.readouterr().err
    assert run(path, alice.user.email).endswith("2 sessions imported, 1 were there already.\n")
