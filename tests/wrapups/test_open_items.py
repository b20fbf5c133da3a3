"""Open items are carried from session to session until they are settled, ticked off or parked."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import DatabaseError, transaction

from brain.domain.prompt import Section, SectionRequest
from memberintel.lib import clock
from memberintel.llm.backends import scripted
from memberintel.tenancy.context import scope
from tests.conftest import Person
from tests.wrapups.stage import ANSWER, PLAN, job_of, model, run, talked, wrap_ups
from wrapups import actions, makers, queries, sections, work
from wrapups.domain.open_items import OpenItem
from wrapups.models import ItemMark

Login = Callable[[str], AbstractContextManager[None]]
DAY = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> Callable[[datetime], None]:
    """Moves the clock of prompts; at first it stands a month after DAY."""

    def move(at: datetime) -> None:
        monkeypatch.setattr(sections, "clock", SimpleNamespace(now=lambda: at))

    move(DAY + timedelta(days=30))
    return move


@pytest.fixture
def written(login: Login, settings: Any) -> Callable[..., tuple[UUID, str]]:
    """Holds a session so many days after DAY and has its notes written; its id, and what the model was sent."""

    def write(who: Person, day: float, *left: str, said: str = PLAN, **more: Any) -> tuple[UUID, str]:
        session = talked(who.scope, said, "I see.", at=DAY + timedelta(days=day))
        items = [{"text": text, "messages": [1]} for text in left]
        answer = {**ANSWER, "decisions": [], "open_items": items, **more}
        name = f"carried-{uuid4().hex}"
        with model(settings, name, {"json": answer}), login("worker"):
            assert run(makers.do(job_of(who.scope, session).id, who.scope)) == work.Written()
            return session, scripted.wires(name)[0].decode()

    return write


type Write = Callable[..., tuple[UUID, str]]


def standing(who: Person) -> list[tuple[str, str]]:
    """(text, status) of all open items, those of the newest session first."""
    with scope(who.scope):
        found = queries.open_items_of()
        texts = queries.texts_of(found)
    return [(texts[item.id], item.status) for item in found]


def item(who: Person, text: str) -> OpenItem:
    with scope(who.scope):
        found = queries.open_items_of()
        texts = queries.texts_of(found)
    return next(each for each in found if texts[each.id] == text)


def told(who: Person, session: UUID | None = None) -> dict[str, list[str]]:
    """What a prompt says is open, by the label of the entry."""
    request = SectionRequest(who.scope.tenant_id, who.scope.customer_id or uuid4(), session or uuid4())
    section: Section | None = run(sections.recent(request))
    found = {}
    for entry in section.entries if section else ():
        _, _, after = entry.body.partition("Open items:\n")
        lines = after.split("\n")
        found[entry.label] = [line[2:] for line in lines if line.startswith("- ")]
    return found


def test_the_writer_is_shown_what_was_open_and_says_what_was_settled(alice: Person, written: Write) -> None:
    written(alice, 0, "Write the e-mail", "Ring Joe")
    session, sent = written(
        alice, 3, said="I sent the e-mail this morning, it went out to all of the members of the club at once.",
        resolved=[{"item": "o1", "message": 1}],
    )  # fmt: skip
    assert "[o1] 2 March 2026: Write the e-mail" in sent
    assert "[o2] 2 March 2026: Ring Joe" in sent
    assert standing(alice) == [("Write the e-mail", "resolved"), ("Ring Joe", "open")]
    mark = item(alice, "Write the e-mail").mark
    assert mark is not None
    assert (mark.session, mark.seq) == (session, 2)
    [row] = wrap_ups(alice.scope, session)
    with scope(alice.scope):
        assert row.open_items == []


@pytest.mark.parametrize(
    "resolved",
    [
        [{"item": "o9", "message": 1}],
        [{"item": "o1", "message": 77}],
        [{"item": "", "message": 1}],
    ],
)
def test_what_no_message_settles_stays_open(
    alice: Person, written: Write, resolved: list[dict[str, Any]]
) -> None:
    written(alice, 0, "Ring Joe")
    written(alice, 1, resolved=resolved)
    assert standing(alice) == [("Ring Joe", "open")]


def test_what_is_said_again_word_for_word_is_not_written_down_again(alice: Person, written: Write) -> None:
    written(alice, 0, "Ring Joe")
    written(alice, 5, "ring Joe.", "Ring Jim")
    assert standing(alice) == [("Ring Jim", "open"), ("Ring Joe", "open")]
    assert item(alice, "Ring Joe").touched_at >= DAY + timedelta(days=5)


def test_notes_of_an_older_session_know_nothing_of_a_later_one(alice: Person, written: Write) -> None:
    written(alice, 5, "Ring Joe")
    _, sent = written(alice, 1, "Ring Joe")
    assert "earlier_open_items>\n" not in sent
    assert standing(alice) == [("Ring Joe", "open"), ("Ring Joe", "open")]


def test_settled_ones_are_left_out_and_older_ones_carried(alice: Person, written: Write) -> None:
    for day in range(5):
        written(alice, day, f"Thing {day}", f"Other {day}")
    with scope(alice.scope):
        for text in ("Thing 0", "Other 4"):
            one = item(alice, text)
            actions.tick(one.wrap_up, one.id, done=True)
    assert told(alice) == {
        "Still open from the session of 2 March 2026": ["Other 0"],
        "Still open from the session of 3 March 2026": ["Thing 1", "Other 1"],
        "Session of 4 March 2026": ["Thing 2", "Other 2"],
        "Session of 5 March 2026": ["Thing 3", "Other 3"],
        "Session of 6 March 2026": ["Thing 4"],
    }


def test_the_newest_ten_are_carried(alice: Person, written: Write) -> None:
    for day in range(16):
        written(alice, day, f"Thing {day}")
    carried = [text for label, texts in told(alice).items() if label.startswith("Still") for text in texts]
    assert carried == [f"Thing {day}" for day in range(3, 13)]


def test_what_rested_for_ninety_days_is_asked_about_once_and_then_parked(
    alice: Person, written: Write, now: Callable[[datetime], None]
) -> None:
    written(alice, 0, "Ring Joe")
    now(DAY + timedelta(days=89))
    assert told(alice) == {"Session of 2 March 2026": ["Ring Joe"]}
    now(DAY + timedelta(days=91))
    asking = talked(alice.scope, "Hello there")
    label = sections.ASKED_LABEL.format(day="2 March 2026")
    for _ in range(2):  # also when the session's prompt is rendered anew
        assert told(alice, asking) == {label: ["Ring Joe"], "Session of 2 March 2026": []}
    assert told(alice, talked(alice.scope, "Hello again")) == {"Session of 2 March 2026": []}
    assert standing(alice) == [("Ring Joe", "parked")]
    one = item(alice, "Ring Joe")
    with scope(alice.scope):
        actions.tick(one.wrap_up, one.id, done=False, now=DAY + timedelta(days=92))
    now(DAY + timedelta(days=93))
    assert told(alice) == {"Session of 2 March 2026": ["Ring Joe"]}


def test_the_session_that_asked_can_settle_it(
    alice: Person, written: Write, now: Callable[[datetime], None], login: Login, settings: Any
) -> None:
    written(alice, 0, "Ring Joe")
    now(DAY + timedelta(days=91))
    asking = talked(alice.scope, PLAN, "Is Joe still to be rung?", "I rang Joe in April.")
    told(alice, asking)
    answer = {**ANSWER, "decisions": [], "open_items": [], "resolved": [{"item": "[o1]", "message": 3}]}
    with model(settings, f"asked-{uuid4().hex}", {"json": answer}), login("worker"):
        run(makers.do(job_of(alice.scope, asking).id, alice.scope))
    assert standing(alice) == [("Ring Joe", "resolved")]


def test_ticking_twice_is_once_and_it_can_be_put_back(alice: Person, written: Write) -> None:
    written(alice, 0, "Ring Joe")
    one = item(alice, "Ring Joe")
    with scope(alice.scope):
        for _ in range(2):
            actions.tick(one.wrap_up, one.id, done=True)
        assert ItemMark.objects.count() == 1
        actions.tick(one.wrap_up, one.id, done=False)
        actions.tick(one.wrap_up, one.id, done=False)
        assert ItemMark.objects.count() == 2
    assert standing(alice) == [("Ring Joe", "open")]


def test_only_an_open_item_of_ones_own_can_be_ticked(alice: Person, bob: Person, written: Write) -> None:
    written(alice, 0, "Ring Joe")
    one = item(alice, "Ring Joe")
    with scope(alice.scope), pytest.raises(actions.NotFound):
        actions.tick(one.wrap_up, uuid4(), done=True)
    with scope(bob.scope):
        with pytest.raises(actions.NotFound):
            actions.tick(one.wrap_up, one.id, done=True)
        assert queries.open_items_of() == []


def test_an_edit_that_drops_an_item_ends_its_carrying(alice: Person, written: Write) -> None:
    session, _ = written(alice, 0, "Ring Joe", "Ring Jim")
    with scope(alice.scope):
        found = queries.wrap_up_of(session)
        assert found is not None
        kept = [actions.EditedItem(each.text, each.id) for each in found.open_items[1:]]
        actions.edit(
            found.id,
            actions.Edit(found.summary, [], [*kept, actions.EditedItem("Ring Jane")], [], "Ask."),
            by=alice.user.id,
        )
    assert standing(alice) == [("Ring Jim", "open"), ("Ring Jane", "open")]


def test_with_a_wrap_up_go_its_marks(alice: Person, written: Write) -> None:
    session, _ = written(alice, 0, "Ring Joe")
    written(alice, 1, resolved=[{"item": "o1", "message": 1}])
    [row] = wrap_ups(alice.scope, session)
    with scope(alice.scope):
        assert ItemMark.objects.count() == 1
        actions.delete(row.id, by=alice.user.id)
        assert ItemMark.objects.count() == 0
        assert queries.open_items_of() == []


def test_marks_are_only_ever_added(alice: Person, written: Write, login: Login) -> None:
    written(alice, 0, "Ring Joe")
    one = item(alice, "Ring Joe")
    with scope(alice.scope):
        actions.tick(one.wrap_up, one.id, done=True)
    for role in ("web", "worker"):
        with login(role), scope(alice.scope):
            for change in (lambda: ItemMark.objects.update(at=clock.now()), ItemMark.objects.all().delete):
                with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
                    change()


def test_the_offline_writer_settles_only_on_clear_evidence(
    alice: Person, written: Write, login: Login
) -> None:
    written(alice, 0, "Write the welcome e-mail to the members", "Ring Joe about the price", "Fix the banner")
    said = (
        "I wrote the welcome e-mail to all members yesterday and sent it. I still have to ring Joe about the price."
        " The banner is not fixed."
    )
    session = talked(alice.scope, said, "Good.", at=DAY + timedelta(days=2))
    with login("worker"):
        assert run(makers.do(job_of(alice.scope, session).id, alice.scope)) == work.Written()
    assert [pair for pair in standing(alice) if pair[1] != "open"] == [
        ("Write the welcome e-mail to the members", "resolved")
    ]
