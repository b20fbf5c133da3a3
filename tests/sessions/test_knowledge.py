"""What the advisor knew in a session can be read afterwards, with where it came from and without what was removed."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid4

import pytest
from django.conf import LazySettings
from django.db import connection
from django.test import Client

from brain import actions as brain
from brain import prompt
from brain.domain.documents import Kind
from brain.domain.prompt import SectionRequest
from memberintel.tenancy.context import scope
from sessions import log
from sessions.domain import events as kinds
from sessions.domain.weights import part_weights
from tests.accounts.test_sign_up import signed_in
from tests.conftest import Person
from tests.sessions.conftest import open_for

HTML = "<img src=x onerror=alert(1)>"


@pytest.fixture(autouse=True)
def _own_sections_only(settings: LazySettings) -> None:
    settings.SECURE_SSL_REDIRECT = False
    settings.PROMPT_SECTIONS = ["brain.sections.base", "brain.sections.soul", "brain.sections.bible"]


def write(person: Person, kind: Kind, body: str, base_version: int = 0) -> None:
    with scope(person.scope):
        brain.save_document(kind=kind, body=body, base_version=base_version, by="customer", reason="")


@pytest.fixture
def session(alice: Person) -> UUID:
    """An open session of Alice's, frozen over a SOUL and a BIBLE, with a recall that came too late."""
    write(alice, "soul", f"Call me {HTML}")
    write(alice, "bible", "The door code is 4711")
    session = open_for(alice)
    request = SectionRequest(alice.scope.tenant_id, alice.scope.customer_id, session)
    stored = asyncio.run(prompt.build(request))
    sections = part_weights((part.name, part.digest, part.text) for part in stored)
    with scope(alice.scope):
        log.append(session, kinds.context_frozen(sections=sections))
        log.append(session, kinds.recall(late=True))
    return session


def page(client: Client, session: UUID, query: str = "", status: int = 200) -> str:
    response = client.get(f"/sessions/{session}/knowledge/{query}")
    assert response.status_code == status
    return " ".join(response.content.decode().split())


def test_it_is_told_as_a_person_reads_it_with_where_it_came_from(alice: Person, session: UUID) -> None:
    text = page(signed_in(alice.user), session)
    assert "Call me &lt;img src=x onerror=alert(1)&gt;" in text
    assert "<section name" not in text
    assert '<a href="/brain/soul/versions/1/">SOUL, version 1</a>' in text
    assert "My own instructions" in text
    assert "You are MemberIntel" in text
    assert "Looking things up took too long" in text


def test_what_was_removed_since_is_gone_here_too(alice: Person, session: UUID) -> None:
    write(alice, "bible", "no code", 1)
    assert "4711" in page(signed_in(alice.user), session)
    with scope(alice.scope):
        brain.redact(kind="bible", version=1)
        refreshed = log.load(session)[-1]
    assert refreshed.kind == "prompt_refreshed"
    assert [section["name"] for section in refreshed.payload["sections"]] == ["base", "soul"]
    text = page(signed_in(alice.user), session)
    assert "4711" not in text
    assert "Removed on" in text
    assert "From here on" in text
    assert "/brain/bible/versions/1/" not in text


def test_a_part_that_cannot_be_opened_does_not_take_the_others_with_it(alice: Person, session: UUID) -> None:
    with scope(alice.scope), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE prompt_parts SET text = set_byte(text, 20, get_byte(text, 20) # 1) WHERE source_kind = 'soul'"
        )
    text = page(signed_in(alice.user), session)
    assert text.count("cannot be opened") == 1
    assert "4711" in text


def test_a_long_one_comes_in_pages(alice: Person, session: UUID) -> None:
    with scope(alice.scope):
        for _ in range(45):
            log.append(session, kinds.recall(late=True))
    client = signed_in(alice.user)
    first = page(client, session)
    assert "?after=" in first
    after = first.split("?after=")[1].split('"')[0]
    rest = page(client, session, f"?after={after}")
    assert "My own instructions" not in rest
    assert first.count("took too long") + rest.count("took too long") == 46


def test_the_api_tells_the_same(alice: Person, session: UUID) -> None:
    told = signed_in(alice.user).get(f"/api/v1/sessions/{session}/knowledge/?limit=1").json()
    (prompt_,) = told["items"]
    assert (prompt_["kind"], prompt_["late"]) == ("context_frozen", False)
    assert [section["name"] for section in prompt_["sections"]] == ["base", "soul", "bible"]
    (bible,) = prompt_["sections"][2]["entries"]
    assert (bible["label"], bible["text"]) == ("BIBLE, version 1", "The door code is 4711")
    assert bible["address"] == "/brain/bible/versions/1/"
    rest = signed_in(alice.user).get(told["next"]).json()
    assert [(each["kind"], each["late"]) for each in rest["items"]] == [("recall", True)]
    assert rest["next"] is None


def test_others_have_no_such_page(bob: Person, charlie: Person, session: UUID) -> None:
    for other in (bob, charlie):
        assert page(signed_in(other.user), session, status=404) == page(
            signed_in(other.user), uuid4(), status=404
        )


@pytest.mark.parametrize("query", ["?after=x", "?after=-1", "?after=" + "9" * 40])
def test_a_place_that_is_none_is_a_bad_request(alice: Person, session: UUID, query: str) -> None:
    page(signed_in(alice.user), session, query, status=400)


def test_before_the_first_message_there_is_nothing(alice: Person) -> None:
    assert "Nothing yet" in page(signed_in(alice.user), open_for(alice))
