"""The pages of MEMORY and of shared knowledge, without JavaScript."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from brain.memory import queries
from brain.models import Knowledge
from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import scope
from tests.api.calls import browser
from tests.brain.memory.test_entries import FACTS, damage, keep, texts
from tests.conftest import Person

HTML = '<b>bold</b> & "quoted" </textarea><script>alert(1)</script>'


def page(response: Any) -> str:
    return unescape(response.content.decode())


def post(client: Client, path: str, **form: str) -> Any:
    return client.post(path, form)


def test_what_a_person_writes_is_kept_word_for_word_and_shown_escaped(alice: Person) -> None:
    client = browser(alice)
    assert "Nothing kept yet" in page(client.get("/brain/memory/"))
    assert post(client, "/brain/memory/", text=HTML, reason=HTML).status_code == 302
    assert texts(alice) == [HTML]
    shown = client.get("/brain/memory/").content.decode()
    assert "&lt;script&gt;" in shown
    assert "<script>alert" not in shown
    assert "1 of 15 places are taken" in shown
    assert "1 of 15 places taken" in page(client.get("/brain/"))


def test_something_similar_is_asked_about_and_nothing_typed_is_lost(alice: Person) -> None:
    first = keep(alice, "The price is 24 pounds")
    client, typed = browser(alice), {"text": "The price is 29 pounds", "reason": "as of May"}
    asked = post(client, "/brain/memory/", **typed)
    assert asked.status_code == 409
    assert all(
        words in page(asked) for words in ("Does it replace one of these?", "keep both", *typed.values())
    )
    replaced = post(client, "/brain/memory/", **typed, choice=str(first.id))
    assert replaced["Location"] == f"/brain/memory/{first.id}/"
    shown = page(client.get(f"/brain/memory/{first.id}/"))
    assert "What it said before" in shown
    assert "The price is 24 pounds" in shown
    again = post(client, "/brain/memory/", text="The price was 24 pounds", reason="", choice="both")
    assert again.status_code == 302
    assert len(texts(alice)) == 2


def test_at_the_cap_one_chooses_what_goes(charlie: Person) -> None:
    kept = [keep(charlie, text) for text in FACTS[:5]]
    client = browser(charlie)
    asked = post(client, "/brain/memory/", text=FACTS[5])
    assert asked.status_code == 409
    shown = page(asked)
    assert "All 5 places are taken" in shown
    assert all(f'value="{entry.id}"' in shown for entry in kept)
    assert post(client, "/brain/memory/", text=FACTS[5], choice=str(kept[0].id)).status_code == 302
    assert FACTS[5] in texts(charlie)
    assert FACTS[0] not in texts(charlie)


def test_an_entry_is_changed_on_the_version_it_was_seen_in(alice: Person) -> None:
    entry = keep(alice, FACTS[0])
    client, address = browser(alice), f"/brain/memory/{entry.id}/"
    assert post(client, address, text="Most have none.", reason="", base_version="1").status_code == 302
    stale = post(client, address, text="My words", reason="", base_version="1")
    assert stale.status_code == 409
    assert all(words in page(stale) for words in ("changed in the meantime", "Most have none.", "My words"))
    assert post(client, address, text="My words", reason="", base_version="2").status_code == 302
    assert texts(alice) == ["My words"]


@pytest.mark.parametrize(
    ("form", "status", "words"),
    [
        ({"text": " "}, 400, "There is nothing to keep"),
        ({"text": "x" * 601}, 413, "601 characters; at most 600 fit"),
        ({"text": FACTS[0]}, 409, "says just this already"),
        ({"text": "new", "choice": "00000000-0000-0000-0000-000000000007"}, 409, "no such entry"),
    ],
)
def test_what_cannot_be_kept_is_told_why(
    alice: Person, form: dict[str, str], status: int, words: str
) -> None:
    keep(alice, FACTS[0])
    refused = post(browser(alice), "/brain/memory/", **form)
    assert (refused.status_code, words in page(refused)) == (status, True)
    assert texts(alice) == [FACTS[0]]


def test_deleting_is_asked_once(alice: Person) -> None:
    entry = keep(alice, FACTS[0])
    client = browser(alice)
    assert FACTS[0] in page(client.get(f"/brain/memory/{entry.id}/delete/"))
    assert post(client, f"/brain/memory/{entry.id}/delete/")["Location"] == "/brain/memory/"
    assert texts(alice) == []
    assert post(client, f"/brain/memory/{entry.id}/delete/").status_code == 404


def test_to_others_an_entry_does_not_exist(alice: Person, bob: Person, charlie: Person) -> None:
    entry = keep(alice, FACTS[0])
    for other in (bob, charlie):
        client = browser(other)
        for path in (f"/brain/memory/{entry.id}/", f"/brain/memory/{entry.id}/delete/"):
            assert client.get(path).status_code == 404
            assert post(client, path, text="mine", base_version="1").status_code == 404
    assert texts(alice) == [FACTS[0]]


def test_an_entry_that_cannot_be_opened_says_so_and_can_only_be_deleted(alice: Person) -> None:
    bad = keep(alice, FACTS[0])
    keep(alice, FACTS[1])
    damage(alice, bad.id)
    client = browser(alice)
    shown = page(client.get("/brain/memory/"))
    assert "cannot be opened" in shown
    assert FACTS[1] in shown
    assert "cannot be opened" in page(client.get(f"/brain/memory/{bad.id}/"))
    post(client, f"/brain/memory/{bad.id}/", text="over it", base_version="1")
    with scope(alice.scope):
        found = queries.memory(bad.id)
        assert found
        assert not found.readable
    assert post(client, "/brain/memory/", text="over it", choice=str(bad.id)).status_code == 503
    assert post(client, f"/brain/memory/{bad.id}/delete/").status_code == 302


def test_after_a_downgrade_the_page_says_what_that_means(alice: Person) -> None:
    for text in FACTS:
        keep(alice, text)
    alice.user.tenant.tier_id = "free"
    alice.user.tenant.save(update_fields=["tier"])
    assert "your plan has room for 5" in page(browser(alice).get("/brain/memory/"))


# --- the API: what its own suites do not see ----------------------------------------------------------------


def send(client: Client, method: str, path: str, body: Any = None) -> Any:
    return client.generic(
        method,
        f"/api/v1{path}",
        data="" if body is None else json.dumps(body),
        content_type="application/json",
    )


def test_the_api_asks_for_the_same_choices(charlie: Person, settings: Settings) -> None:
    client = browser(charlie)
    made = send(client, "POST", "/memory/", {"text": "The price is 24 pounds"})
    assert made.status_code == 201
    first = made.json()["id"]
    similar = send(client, "POST", "/memory/", {"text": "The price is 29 pounds"})
    assert (similar.status_code, similar.json()["entries"][0]["id"]) == (409, first)
    assert similar.json()["type"].endswith("memory-similar")
    edited = send(client, "PUT", f"/memory/{first}/", {"text": "The price is 29 pounds", "base_version": 1})
    assert (edited.status_code, edited.json()["version"]) == (200, 2)
    stale = send(client, "PUT", f"/memory/{first}/", {"text": "x", "base_version": 1})
    assert (stale.status_code, stale.json()["memory"]["version"]) == (409, 2)
    before = client.get(f"/api/v1/memory/{first}/versions/").json()["items"]
    assert [each["text"] for each in before] == ["The price is 24 pounds"]
    for text in FACTS[2:6]:
        assert send(client, "POST", "/memory/", {"text": text, "keep_both": True}).status_code == 201
    full = send(client, "POST", "/memory/", {"text": "Taxes are due in January"})
    assert (full.status_code, full.json()["cap"], len(full.json()["entries"])) == (409, 5, 5)
    known = send(client, "POST", "/memory/", {"text": FACTS[2].upper()})
    assert known.json()["type"].endswith("memory-known")
    long = send(client, "POST", "/memory/", {"text": "x" * 601})
    assert (long.status_code, long.json()["limit"]) == (413, settings.MEMORY_LIMIT_CHARACTERS)
    listed = client.get("/api/v1/memory/").json()
    assert (len(listed["items"]), listed["cap"]) == (5, 5)
    assert send(client, "DELETE", f"/memory/{first}/").status_code == 204
    assert client.get(f"/api/v1/memory/{first}/").status_code == 404


# --- shared knowledge ---------------------------------------------------------------------------------------


@pytest.fixture
def article(login: Callable[[str], AbstractContextManager[None]]) -> Iterator[Knowledge]:
    """A published one."""
    with login("owner"):
        made = Knowledge.objects.create(
            slug=f"hive-{uuid4().hex[:8]}",
            title="On hives",
            topic="Beekeeping",
            text=HTML,
            published_at=clock.now(),
        )
    yield made
    with login("owner"):
        made.delete()


def test_customers_browse_what_is_published(alice: Person, article: Knowledge) -> None:
    client = browser(alice)
    assert f'href="/brain/knowledge/{article.slug}/"' in page(client.get("/brain/knowledge/"))
    shown = client.get(f"/brain/knowledge/{article.slug}/")
    assert "On hives" in page(shown)
    assert "<script>alert" not in shown.content.decode()
    assert client.get("/brain/knowledge/no-such-thing/").status_code == 404
    items = client.get("/api/v1/knowledge/").json()["items"]
    assert str(article.id) in {each["id"] for each in items}
    assert client.get(f"/api/v1/knowledge/{article.id}/").json()["text"] == HTML
    assert client.get(f"/api/v1/knowledge/{uuid7()}/").status_code == 404
