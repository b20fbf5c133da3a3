"""Documents edited while an answer is given: by the model in its turn, and by the customer at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connections

from brain import actions, queries
from brain.domain.documents import Stale, Version
from memberintel.tenancy.context import scope
from memberintel.tenancy.unit import unit
from sessions import log
from sessions.domain import events as kinds
from tests.conftest import Person
from tests.sessions.talk import Script, events_of, heard, say
from tests.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("quick")

TOOL = "update_customer_brain"


@pytest.fixture(autouse=True)
def _only_documents(settings: LazySettings) -> None:
    settings.ADVISOR_TOOLS = ["brain.tools.update_customer_brain"]


def save(person: Person, body: str, base_version: int) -> None:
    with scope(person.scope):
        actions.save_document(
            kind="bible", body=body, base_version=base_version, by="customer", reason="by hand"
        )


def edit(base: int, find: str, replace: str) -> dict[str, Any]:
    given = {"target": "bible", "base_version": base, "reason": f"about {find}"}
    return {"tool": TOOL, "arguments": {**given, "edits": [{"find": find, "replace": replace}]}}


def both(base: int) -> dict[str, Any]:
    """A round in which the model makes its two edits, on that version."""
    return {"steps": [edit(base, "prices: ?", "prices: $49"), edit(base, "members: ?", "members: 140")]}


def by_hand(person: Person) -> None:
    """The customer's edit, made again on the fresh text until it stands."""
    body, base = "prices: ?\nmembers: ?\nchurn: 6 %", 1
    try:
        while True:
            try:
                save(person, body, base)
            except Stale as stale:
                body, base = stale.fresh.text.replace("churn: ?", "churn: 6 %"), stale.fresh.version
            else:
                return
    finally:
        connections.close_all()


async def test_two_edits_of_the_model_and_one_of_the_customer_at_once_lose_nothing(
    alice: Person, script: Script
) -> None:
    """The model's calls name every version there may come to be, whoever is first."""
    await unit(alice.scope, _start)
    script(both(1), both(2), both(3), both(4), {"steps": [{"text": "Noted."}]})
    with ThreadPoolExecutor(1) as thread:
        said = await say(alice)
        editing = thread.submit(by_hand, alice)
        told = await heard(said)
        editing.result(PATIENCE)
    assert told[-1] == ("done", {"outcome": "complete"})
    kept: list[Version] = await unit(alice.scope, queries.versions, "bible")
    assert kept[0].text == "prices: $49\nmembers: 140\nchurn: 6 %"
    assert [each.version for each in kept] == [4, 3, 2, 1]
    assert sorted(each.author for each in kept) == ["advisor", "advisor", "customer", "customer"]
    for later, earlier in pairwise(kept):
        assert len(set(later.text.split("\n")) ^ set(earlier.text.split("\n"))) == 2
    answer = (await events_of(alice, said))[-1]
    changed = [each["version"] for each in answer.content["memory"]["documents_changed"]]
    assert changed == sorted(each.version for each in kept if each.author == "advisor")


def _start() -> None:
    actions.save_document(
        kind="bible", body="prices: ?\nmembers: ?\nchurn: ?", base_version=0, by="customer", reason="by hand"
    )


async def test_an_edit_of_what_stood_when_the_prompt_was_frozen_is_redone_on_the_fresh_text(
    alice: Person, script: Script
) -> None:
    await unit(alice.scope, _start)
    script(
        {"steps": [{"text": "Hello."}]},
        {"steps": [edit(1, "prices: ?", "prices: $49")]},
        {"steps": [edit(2, "prices: ?", "prices: $49")]},
        {"steps": [{"text": "Noted."}]},
    )
    await heard(await say(alice))
    await unit(alice.scope, _by_customer)
    said = await say(alice, "We now charge forty-nine dollars a month for everybody.")
    await heard(said)
    events = await events_of(alice, said)
    traffic = kinds.tools_of(events[-1])
    assert [call["error"] for call in traffic] == [True, False]
    assert str(traffic[0]["result"]).startswith("stale: BIBLE has changed: version 2 stands now.")
    assert '"text": "prices: ?\\nmembers: 150\\nchurn: ?"' in str(traffic[0]["result"])
    newest: Version = (await unit(alice.scope, queries.versions, "bible"))[0]
    assert newest.text == "prices: $49\nmembers: 150\nchurn: ?"
    message = [event.seq for event in events if event.kind == kinds.USER_MESSAGE][-1]
    assert newest.origin is not None
    assert (newest.origin.session, newest.origin.message_seq) == (said.session, message)


def _by_customer() -> None:
    actions.save_document(
        kind="bible",
        body="prices: ?\nmembers: 150\nchurn: ?",
        base_version=1,
        by="customer",
        reason="by hand",
    )


async def test_off_the_record_the_model_is_not_offered_to_write(alice: Person, script: Script) -> None:
    await unit(alice.scope, _start)
    script({"steps": [edit(1, "prices: ?", "prices: $49")]}, {"steps": [{"text": "As you like."}]})
    await unit(alice.scope, _off_record)
    said = await say(alice)
    await heard(said)
    assert [each.version for each in await unit(alice.scope, queries.versions, "bible")] == [1]
    answer = (await unit(alice.scope, log.load, said.session))[-1]
    assert str(kinds.tools_of(answer)[0]["result"]).startswith("unknown_tool")


def _off_record() -> None:
    from sessions import actions as sessions

    sessions.open_session(off_record=True)
