"""Keeping, changing and deleting entries, with the real embedder."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from django.db import DatabaseError, connections
from pytest_django.fixtures import Settings

from brain import actions as parts
from brain import queries as brain
from brain.domain.memory import Changed, Empty, Full, Known, Memory, NotFound, Similar, TooLong
from brain.domain.prompt import RenderedPart
from brain.memory import actions, queries
from brain.memory.actions import Choice, New, Origin
from brain.models import MemoryEntry, MemoryVersion
from memberintel.lib.ids import uuid7
from memberintel.privacy.participants import left_from_session
from memberintel.tenancy.context import scope
from tests.conftest import Person

FACTS = (
    "Most members have no kiln at home",
    "The yearly plan costs 240 pounds",
    "Tomas holds the camera at weekends",
    "Evenings are for the studio",
    "Pushy letters are not wanted",
    "Priya would be the second moderator",
)


def keep(who: Person, text: str, *, reason: str = "said so", choice: Choice | None = None) -> Memory:
    new = New(text, reason, "customer")
    return asyncio.run(actions.remember(new, who.scope, choice))


def texts(who: Person) -> list[str]:
    with scope(who.scope):
        return [each.text for each in queries.memories()]


def test_an_entry_is_kept_sealed_with_why_and_its_vector(alice: Person) -> None:
    origin = Origin(uuid7(), 7)
    new = New(" Most members have no kiln.\n", "it explains the churn", "advisor", origin, ("shortened",))
    kept = asyncio.run(actions.remember(new, alice.scope))
    with scope(alice.scope):
        row = MemoryEntry.objects.get()
        assert queries.memory(kept.id) == kept
        assert (row.embedder, len(row.vector or ())) == ("offline:words-and-stems-1", 512)
    assert (kept.text, kept.reason, kept.source) == (
        "Most members have no kiln.",
        "it explains the churn",
        "advisor",
    )
    assert (kept.session_id, kept.message_seq, kept.changes) == (origin.session, 7, ("shortened",))


def test_an_equal_text_is_not_kept_twice(alice: Person) -> None:
    first = keep(alice, FACTS[0])
    with pytest.raises(Known) as known:
        keep(alice, f"  - {FACTS[0].upper()}. ", choice=Choice(keep_both=True))
    assert known.value.entry == first
    assert texts(alice) == [FACTS[0]]


def test_a_correction_is_shown_what_it_may_correct_and_whoever_writes_decides(alice: Person) -> None:
    first = keep(alice, "Priya runs the forum")
    with pytest.raises(Similar) as similar:
        keep(alice, "Priya no longer runs the forum")
    assert similar.value.entries == (first,)
    both = keep(alice, "Priya no longer runs the forum", choice=Choice(keep_both=True))
    assert set(texts(alice)) == {first.text, both.text}
    with pytest.raises(Known):
        keep(alice, "priya no longer runs the forum", choice=Choice(replace=first.id))


def test_what_is_replaced_keeps_its_text_as_a_version(alice: Person) -> None:
    first = keep(alice, "The price is 24 pounds")
    second = keep(alice, "The price is 29 pounds", choice=Choice(replace=first.id))
    assert (second.id, second.version, second.text) == (first.id, 2, "The price is 29 pounds")
    with scope(alice.scope):
        (before,) = queries.before(first.id)
    assert (before.version, before.text, before.reason) == (1, "The price is 24 pounds", "said so")
    assert keep(alice, second.text, choice=Choice(replace=first.id)).version == 2
    with pytest.raises(Changed) as changed:
        keep(alice, "The price is 30 pounds", choice=Choice(replace=first.id, base_version=1))
    assert changed.value.fresh == second
    with pytest.raises(NotFound):
        keep(alice, "The price is 30 pounds", choice=Choice(replace=uuid7()))


def test_at_the_cap_one_must_go(charlie: Person) -> None:
    kept = [keep(charlie, text) for text in FACTS[:5]]
    with pytest.raises(Full) as full:
        keep(charlie, FACTS[5])
    assert (full.value.cap, {each.id for each in full.value.entries}) == (5, {each.id for each in kept})
    keep(charlie, FACTS[5], choice=Choice(replace=kept[2].id))
    assert set(texts(charlie)) == {*FACTS[:2], *FACTS[3:6]}


def test_after_a_downgrade_nothing_is_deleted_and_nothing_added(alice: Person) -> None:
    for text in FACTS:
        keep(alice, text)
    alice.user.tenant.tier_id = "free"
    alice.user.tenant.save(update_fields=["tier"])
    with pytest.raises(Full, match="6 entries are kept and the plan has room for 5"):
        keep(alice, "Something new altogether about taxes")
    assert len(texts(alice)) == 6


@pytest.mark.parametrize("text", ["", "  \n", "...", "\x00", "- "])
def test_nothing_is_not_kept(alice: Person, text: str) -> None:
    with pytest.raises(Empty):
        keep(alice, text)
    assert texts(alice) == []


def test_a_long_text_is_refused_with_both_numbers(alice: Person, settings: Settings) -> None:
    limit = settings.MEMORY_LIMIT_CHARACTERS
    with pytest.raises(TooLong) as long:
        keep(alice, "x" * (limit + 1))
    assert (long.value.length, long.value.limit) == (limit + 1, limit)
    assert keep(alice, "x" * limit).text == "x" * limit


def test_however_many_write_at_once_the_cap_holds_and_no_text_is_there_twice(charlie: Person) -> None:
    def attempt(number: int) -> str:
        try:
            choice = Choice(keep_both=True)
            keep(charlie, f"{FACTS[number % 6]} as said {number // 2}", choice=choice)
        except Full:
            return "full"
        except Known:
            return "known"
        finally:
            connections.close_all()
        return "kept"

    with ThreadPoolExecutor(6) as threads:
        results = list(threads.map(attempt, [*range(12), *range(12)]))
    kept = texts(charlie)
    assert len(kept) == len(set(kept)) == 5
    assert results.count("kept") == 5
    assert "full" in results


def test_deleting_removes_vector_versions_and_every_prompt_part(alice: Person) -> None:
    entry = keep(alice, "The price is 24 pounds")
    keep(alice, "The price is 29 pounds", choice=Choice(replace=entry.id))
    stays = keep(alice, FACTS[2])
    wrapped = '<section name="memory" label="x">\n{}\n</section>'
    with scope(alice.scope):
        digests = parts.store_parts(
            [
                RenderedPart("memory", wrapped.format(text), "memory", source)
                for text, source in [("24", entry.id), ("29", entry.id), ("camera", stays.id)]
            ]
        )
        actions.delete(entry.id)
        assert [row.id for row in MemoryEntry.objects.all()] == [stays.id]
        assert not MemoryVersion.objects.exists()
        left = [part.text for part in brain.prompt_parts([("memory", digest) for digest in digests])]
        assert left == [None, None, wrapped.format("camera")]
        with pytest.raises(NotFound):
            actions.delete(entry.id)


def test_nobody_else_sees_or_touches_them(alice: Person, bob: Person, charlie: Person) -> None:
    entry = keep(alice, FACTS[0])
    for other in (bob, charlie):
        assert texts(other) == []
        with scope(other.scope):
            assert queries.memory(entry.id) is None
            assert queries.known().things == ()
            with pytest.raises(NotFound):
                actions.delete(entry.id)
        with pytest.raises(NotFound):
            keep(other, "mine now", choice=Choice(replace=entry.id))
    assert texts(alice) == [FACTS[0]]


def test_without_an_embedder_an_entry_is_kept_and_found_by_its_words(
    alice: Person, settings: Settings
) -> None:
    settings.LLM_ROUTES = {**settings.LLM_ROUTES, "embed": ("anthropic:claude-opus-5-5",)}
    kept = keep(alice, FACTS[0])
    with scope(alice.scope):
        row = MemoryEntry.objects.get(id=kept.id)
        assert (row.vector, row.embedder) == (None, "")
    with pytest.raises(Similar):
        keep(alice, "Most members have a kiln at home")


def test_a_damaged_entry_hides_nothing_else_and_can_be_deleted(alice: Person) -> None:
    good, bad = keep(alice, FACTS[0]), keep(alice, FACTS[1])
    damage(alice, bad.id)
    with scope(alice.scope):
        found = {each.id: each for each in queries.memories()}
        assert found[good.id].readable
        assert not found[bad.id].readable
        assert (queries.known().damaged, len(queries.known().things)) == (1, 1)
    keep(alice, FACTS[2])
    with scope(alice.scope):
        actions.delete(bad.id)
    assert len(texts(alice)) == 2


def test_workers_may_give_vectors_and_nothing_else(alice: Person, login: object) -> None:
    entry = keep(alice, FACTS[0])
    with login("worker"), scope(alice.scope):  # type: ignore[operator]
        row = MemoryEntry.objects.get(id=entry.id)
        row.vector, row.embedder = (1.0, 0.0), "a:1"
        row.save(update_fields=["vector", "embedder"])
        row.text = "something else"
        with pytest.raises(DatabaseError, match="permission denied"):
            row.save(update_fields=["text"])


def damage(who: Person, entry: UUID) -> None:
    """Swap the sealed text for bytes that do not open."""
    from django.db import connection, transaction

    with scope(who.scope), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE memory_entries SET text = '\\x00' WHERE id = %s", [entry])


def test_what_was_kept_from_a_session_is_offered_for_deletion_with_it(alice: Person, bob: Person) -> None:
    origin = Origin(uuid7(), 3)
    kept = asyncio.run(actions.remember(New(FACTS[0], "", "advisor", origin), alice.scope))
    keep(alice, FACTS[1])
    with scope(alice.scope):
        (left,) = left_from_session(origin.session)
    assert (left.text, left.id, left.address) == (FACTS[0], kept.id, f"/brain/memory/{kept.id}/delete/")
    with scope(bob.scope):
        assert left_from_session(origin.session) == []
