"""Sections keep within their room by giving up whole entries, and say so."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain.domain.prompt import Entry, Section, told
from brain.domain.prompt import render as rendered
from brain.domain.room import LABEL, fitted
from memberintel.lib import tokens


@pytest.fixture(scope="module", autouse=True)
def _vocabulary() -> None:
    """Load the words tokens are counted by: their first use takes longer than any example."""
    tokens.count("one")


def section(name: str, *bodies: str) -> Section:
    entries = tuple(Entry(f"entry {n}", body, "thing", UUID(int=n)) for n, body in enumerate(bodies, 1))
    return Section(name, "data", entries)


def kept(found: Section) -> list[str]:
    return [entry.label for entry in found.entries]


def test_what_fits_stays_as_it_is() -> None:
    whole = section("wrap_ups", "one", "two")
    assert fitted(whole, 2) is whole
    assert fitted(whole, None) is whole


@pytest.mark.parametrize(
    ("name", "left", "said"),
    [
        (
            "wrap_ups",
            [LABEL, "entry 2", "entry 3"],
            "1 of 3, the oldest: together they have more than 10 tokens.",
        ),
        (
            "memory",
            ["entry 1", "entry 2", LABEL],
            "1 of 3, the last: together they have more than 10 tokens.",
        ),
    ],
)
def test_the_oldest_notes_and_the_furthest_memories_give_way(name: str, left: list[str], said: str) -> None:
    found = fitted(
        section(name, "five words of some note", "five words of some note", "five words of some note"), 10
    )
    assert kept(found) == left
    assert [entry.body for entry in told(rendered(found)) if entry.label == LABEL] == [said]


def test_a_document_too_large_gives_way_whole_and_says_how_large_it_is() -> None:
    (line,) = fitted(section("bible", "member " * 20), 10).entries
    assert line.label == LABEL
    assert line.body.startswith("All of it: it has 21 tokens, and 10 fit")


@given(
    st.sampled_from(["wrap_ups", "memory", "bible"]),
    st.lists(st.text(min_size=1, max_size=60), max_size=8),
    st.integers(0, 60),
)
def test_nothing_is_cut_and_nothing_goes_unsaid(name: str, bodies: list[str], budget: int) -> None:
    whole = section(name, *bodies)
    found = fitted(whole, budget)
    entries = [entry for entry in found.entries if entry.label != LABEL]
    assert sum(tokens.count(entry.body) for entry in entries) <= budget
    assert set(entries) <= set(whole.entries)
    assert (len(entries) < len(bodies)) == (LABEL in kept(found))
    assert fitted(found, budget) == found
