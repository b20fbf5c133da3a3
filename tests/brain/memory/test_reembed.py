"""After a change of the embedder."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress

import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from pytest_django.fixtures import Settings

from brain import tasks
from brain.memory import reembed
from brain.models import MemoryEntry
from memberintel.tenancy.context import scope
from tests.brain.memory.test_entries import FACTS, damage, keep
from tests.brain.memory.test_recall import recalled, request
from tests.conftest import Person

OFFLINE = "offline:words-and-stems-1"
Login = Callable[[str], AbstractContextManager[None]]


def embedders(who: Person) -> list[str]:
    with scope(who.scope):
        return sorted(MemoryEntry.objects.values_list("embedder", flat=True))


@pytest.fixture
def other(settings: Settings) -> Settings:
    """Another embedder is set than the one entries were made with."""
    settings.LLM_ROUTES = {**settings.LLM_ROUTES, "embed": ("scripted:other",)}
    return settings


def test_every_customers_entries_get_vectors_of_the_new_embedder(
    alice: Person, charlie: Person, other: Settings, login: Login
) -> None:
    other.LLM_ROUTES = {**other.LLM_ROUTES, "embed": (OFFLINE,)}
    for who in (alice, charlie):
        for text in FACTS[:3]:
            keep(who, text)
    other.LLM_ROUTES = {**other.LLM_ROUTES, "embed": ("scripted:other",)}
    assert [each.body for each in recalled(request(alice, "no kiln at home"))] == [FACTS[0]]
    with login("worker"):
        told = io.StringIO()
        with suppress(CommandError):  # entries that other tests have damaged
            call_command("reembed", stdout=told)
        assert "embedded by scripted:other" in told.getvalue()
    assert embedders(alice) == embedders(charlie) == ["scripted:other"] * 3


def test_it_goes_on_where_it_was_killed_and_may_run_twice_at_once(alice: Person, other: Settings) -> None:
    other.LLM_ROUTES = {**other.LLM_ROUTES, "embed": (OFFLINE,)}
    entries = [keep(alice, text) for text in FACTS]
    other.LLM_ROUTES = {**other.LLM_ROUTES, "embed": ("scripted:other",)}
    first = reembed.Done()
    asyncio.run(reembed.of_customer(alice.scope, [entries[0].id], "scripted:other", first))
    assert (first.embedded, embedders(alice).count("scripted:other")) == (1, 1)

    def run(_: int) -> None:
        try:
            reembed.run("scripted:other")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(run, range(2)))
    assert embedders(alice) == ["scripted:other"] * 6


def test_an_entry_changed_meanwhile_keeps_the_vector_of_what_it_says(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    from brain import embedding
    from brain.domain.memory import Vector
    from brain.memory.actions import Choice

    entry = keep(alice, FACTS[0])

    async def slow(texts: list[str], who: object) -> list[Vector]:
        monkeypatch.undo()
        await asyncio.to_thread(keep, alice, FACTS[1], choice=Choice(replace=entry.id))
        return [Vector((1.0,), "slow:1") for _ in texts]

    monkeypatch.setattr(embedding, "vectors", slow)
    asyncio.run(reembed.of_customer(alice.scope, [entry.id], "slow:1", reembed.Done()))
    assert embedders(alice) == [OFFLINE]


def test_what_cannot_be_opened_is_left_and_counted(alice: Person) -> None:
    bad, good = keep(alice, FACTS[0]), keep(alice, FACTS[1])
    damage(alice, bad.id)
    done = reembed.Done()
    asyncio.run(reembed.of_customer(alice.scope, [bad.id, good.id], "scripted:other", done))
    assert (done.embedded, done.sealed) == (1, 1)


def test_entries_kept_without_an_embedder_get_their_vectors_from_the_clock(
    alice: Person, settings: Settings, login: Login
) -> None:
    routes = settings.LLM_ROUTES
    settings.LLM_ROUTES = {**routes, "embed": ("anthropic:claude-opus-5-5",)}
    keep(alice, FACTS[0])
    with login("worker"):
        tasks.embed_missing(tenant=str(alice.scope.tenant_id), customer=str(alice.scope.customer_id))
        assert embedders(alice) == [""]
        settings.LLM_ROUTES = routes
        tasks.embed_all_missing()
    assert embedders(alice) == [OFFLINE]
