"""The caches report what was really sent before, and nothing else."""

from __future__ import annotations

import pytest

from evals.loopback import prefixes
from evals.loopback.prefixes import Block, Counted, Prefixes

LONG = " ".join(f"word{number}" for number in range(800))


def total(counted: Counted) -> int:
    return counted.plain + counted.written + counted.read


def test_what_stands_before_a_marker_is_written_then_read() -> None:
    kept = Prefixes()
    first = kept.marked("m", [Block(LONG, marked=True), Block("question")])
    assert first.written > 1000
    assert (first.read, first.plain) == (0, total(first) - first.written)
    again = kept.marked("m", [Block(LONG, marked=True), Block("another")])
    assert (again.read, again.written) == (first.written, 0)


def test_an_entry_is_found_from_a_later_marker_but_not_from_too_far() -> None:
    kept = Prefixes()
    written = kept.marked("m", [Block(LONG, marked=True)]).written
    near = [Block(LONG), *(Block(str(number)) for number in range(18)), Block("end", marked=True)]
    assert kept.marked("m", near).read == written
    far = [Block(LONG), *(Block(f"x{number}") for number in range(30)), Block("end", marked=True)]
    assert kept.marked("m", far).read == 0


@pytest.mark.parametrize("changed", ["model", "beginning"])
def test_another_model_or_beginning_reads_nothing(changed: str) -> None:
    kept = Prefixes()
    kept.marked("m", [Block(LONG, marked=True)])
    model, text = ("other", LONG) if changed == "model" else ("m", "a" + LONG)
    assert kept.marked(model, [Block(text, marked=True)]).read == 0


def test_a_short_beginning_and_one_without_a_marker_are_not_kept() -> None:
    kept = Prefixes()
    for blocks in ([Block("short", marked=True)], [Block(LONG)]):
        assert kept.marked("m", blocks).written == 0
        assert kept.marked("m", blocks).read == 0


def test_an_entry_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Prefixes()
    kept.marked("m", [Block(LONG, marked=True)])
    monkeypatch.setattr(prefixes, "LIFETIME_SECONDS", 0.0)
    assert kept.marked("m", [Block(LONG, marked=True)]).read == 0


def test_gemini_finds_the_longest_beginning_by_itself() -> None:
    kept = Prefixes()
    first = kept.implicit("m", [Block(LONG), Block("question")])
    assert (first.read, first.written) == (0, 0)
    second = kept.implicit("m", [Block(LONG), Block("question"), Block("answer"), Block("and?")])
    assert second.read == first.plain
