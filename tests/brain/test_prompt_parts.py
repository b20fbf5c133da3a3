from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from uuid import UUID

import pytest
from django.conf import LazySettings
from django.db import connection, connections, transaction

from brain import actions, queries, sources
from brain.domain.prompt import Part, RenderedPart, assemble
from brain.domain.sources import Source
from brain.heartbeat import actions as sites
from brain.heartbeat import queries as heartbeat
from brain.memory import actions as memory
from brain.models import PromptPart
from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import scope
from tests.brain.heartbeat.stage import numbers, site_of
from tests.conftest import Person
from tests.waiting import PATIENCE, until

lost: set[UUID] = set()
"""Things that were deleted."""


def standing(ids: Collection[UUID]) -> set[UUID]:
    return set(ids) - lost


thing = Source(standing)


@pytest.fixture(autouse=True)
def _things(settings: LazySettings) -> None:
    settings.PROMPT_SOURCES = {**settings.PROMPT_SOURCES, "thing": f"{__name__}.thing"}


def part(text: str, source: UUID | None, name: str = "wrap_ups") -> RenderedPart:
    return RenderedPart(name, text, "thing", source)


def test_a_text_is_kept_once_and_comes_back_in_the_order_asked_for(alice: Person) -> None:
    one, two = part("one", uuid7()), part("two", uuid7())
    with scope(alice.scope):
        digests = actions.store_parts([one, two])
        assert actions.store_parts([two, one]) == digests[::-1]
        assert PromptPart.objects.count() == 2
        pairs = [("wrap_ups", digest) for digest in reversed(digests)]
        assert queries.prompt_parts(pairs) == [Part("wrap_ups", "two"), Part("wrap_ups", "one")]


def test_removing_a_source_removes_its_text_and_nobody_elses(alice: Person) -> None:
    gone, stays = uuid7(), uuid7()
    with scope(alice.scope):
        words = '<section name="wrap_ups" label="Notes">\nthe same words\n</section>'
        digests = actions.store_parts([part(words, gone), part(words, stays)])
        assert actions.remove_parts(source_kind="thing", source_id=gone) == 1
        first, second = queries.prompt_parts([("wrap_ups", digest) for digest in digests])
        assert first == Part("wrap_ups", None, clock.now().date())
        assert second.text == words
        assert assemble([first, second])[0].splitlines()[1].startswith("(removed by you on ")
        assert actions.remove_parts(source_kind="thing", source_id=gone) == 0


def test_what_was_removed_and_is_said_again_stands_again(alice: Person) -> None:
    source = uuid7()
    with scope(alice.scope):
        digests = actions.store_parts([part("words", source)])
        actions.remove_parts(source_kind="thing", source_id=source)
        assert actions.store_parts([part("words", source)]) == digests
        assert queries.prompt_parts([("wrap_ups", digests[0])]) == [Part("wrap_ups", "words")]


def test_equal_texts_of_two_customers_do_not_show_as_equal(alice: Person, bob: Person) -> None:
    words = part("words", None)
    digests = []
    for person in (alice, bob):
        with scope(person.scope):
            digests += actions.store_parts([words])
    assert digests[0] != digests[1]
    with scope(bob.scope):
        assert not PromptPart.objects.filter(digest=digests[0]).exists()


def test_two_turns_that_store_the_same_text_at_once_share_it(alice: Person) -> None:
    words = [part("words", uuid7()), part("more words", uuid7())]

    def store(_: int) -> list[str]:
        try:
            with scope(alice.scope):
                return actions.store_parts(words)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(store, range(4)))
    assert all(each == results[0] for each in results)
    with scope(alice.scope):
        assert PromptPart.objects.count() == 2


def test_a_source_that_was_deleted_since_it_was_read_is_kept_without_its_text(alice: Person) -> None:
    gone, stays = uuid7(), uuid7()
    with scope(alice.scope):
        before = actions.store_parts([part("stood here once", gone)])
        lost.add(gone)
        digests = actions.store_parts(
            [part("stood here once", gone), part("new words", gone), part("there", stays)]
        )
        assert digests[:1] == before
        texts = [each.text for each in queries.prompt_parts([("wrap_ups", digest) for digest in digests])]
        assert texts == [None, None, "there"]


def test_a_kind_nobody_answers_for_is_an_error(alice: Person) -> None:
    with scope(alice.scope):
        with pytest.raises(sources.UnknownSource, match="'riddle'"):
            actions.store_parts([RenderedPart("memory", "words", "riddle", uuid7())])
        actions.store_parts([RenderedPart("base", "words", "riddle", None)])


@dataclass(frozen=True)
class Doomed:
    """Something a prompt may quote, and how it goes."""

    name: str
    id: UUID
    delete: Callable[[], object]


def _old_version(person: Person) -> Doomed:
    with scope(person.scope):
        for base, body in enumerate(("the door code", "no code")):
            actions.save_document(kind="bible", body=body, base_version=base, by="customer", reason="")
        (found,) = [each.id for each in queries.versions("bible") if each.version == 1]
    return Doomed("bible", found, lambda: actions.redact(kind="bible", version=1))


def _entry(person: Person) -> Doomed:
    with scope(person.scope):
        kept = memory.keep(memory.New("the door code", "", "customer"), None, memory.Choice())
    return Doomed("memory", kept.id, lambda: memory.delete(kept.id))


def _numbers(person: Person) -> Doomed:
    site = site_of(person)
    numbers(person, site, clock.now().date())
    with scope(person.scope):
        told = heartbeat.told(site)
    assert told is not None
    return Doomed("heartbeat", told.id, lambda: sites._forget_heartbeats(site))


@pytest.mark.parametrize("source", [_old_version, _entry, _numbers])
@pytest.mark.parametrize("deleted_first", [True, False])
def test_a_source_deleted_while_its_text_is_being_stored_leaves_no_copy(
    alice: Person, bob: Person, source: Callable[[Person], Doomed], deleted_first: bool
) -> None:
    """Two transactions at once: whichever comes first, the text is in no prompt afterwards."""
    doomed = source(alice)
    reader = bob if source is _numbers else alice  # numbers stand in the prompts of all colleagues
    entered, go_on = Event(), Event()

    def delete() -> None:
        with scope(alice.scope), transaction.atomic():
            doomed.delete()
            if deleted_first:
                entered.set()
                assert go_on.wait(PATIENCE)

    def store() -> list[str]:
        with scope(reader.scope), transaction.atomic():
            digests = actions.store_parts(
                [RenderedPart(doomed.name, "the door code", doomed.name, doomed.id)]
            )
            if not deleted_first:
                entered.set()
                assert go_on.wait(PATIENCE)
            return digests

    first, second = (delete, store) if deleted_first else (store, delete)
    with ThreadPoolExecutor(2) as threads:
        running = threads.submit(_then_close, first)
        assert entered.wait(PATIENCE)
        other = threads.submit(_then_close, second)
        _until_waiting(alice)
        go_on.set()
        results = [running.result(PATIENCE), other.result(PATIENCE)]
    digests = next(each for each in results if each)
    with scope(reader.scope):
        assert queries.prompt_parts([(doomed.name, digests[0])])[0].text is None


def _then_close(work: Callable[[], list[str] | None]) -> list[str] | None:
    try:
        return work()
    finally:
        connections.close_all()


def _until_waiting(person: Person) -> None:
    """Until a transaction waits for another that keeps or removes parts."""

    def waiting() -> bool:
        with scope(person.scope), connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database"
                " WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()"
            )
            return bool(cursor.fetchone()[0])

    until(waiting)
