"""Vectors that need neither network nor model."""

from __future__ import annotations

import math
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memberintel.llm.backends.offline import vectors


def near(one: str, other: str) -> float:
    return sum(a * b for a, b in zip(vectors.vector(one), vectors.vector(other), strict=True))


@given(st.text(max_size=200))
def test_every_text_has_a_unit_vector_or_none_at_all(text: str) -> None:
    length = math.hypot(*vectors.vector(text))
    assert length == pytest.approx(1, abs=1e-5) or length == 0
    assert length or not text.strip() or not any(map(str.isalnum, text))


def test_a_text_without_words_is_near_nothing() -> None:
    assert set(vectors.vector(" \n ")) == {0.0}
    assert len(vectors.vector("")) == len(vectors.vector("a word"))


def test_what_means_the_same_is_near_in_other_words_too() -> None:
    said = "Members quit because lessons are too long"
    assert near(said, "People cancel since every class takes forever") > near(said, "The bank opens at nine")


def test_what_is_said_in_the_same_words_is_nearer_still() -> None:
    assert near("The annual plan costs 240", "How much is the annual plan?") > near(
        "The annual plan costs 240", "How much is the yearly one?"
    )


def test_a_long_text_costs_no_more_than_its_beginning() -> None:
    assert vectors.vector("churn " * 200_000) == vectors.vector(("churn " * 200_000)[: vectors.LONGEST_READ])


def test_the_meaning_is_that_of_wordllama() -> None:
    """In a process of its own: importing it sets up logging."""
    package = find_spec("wordllama")
    assert package is not None
    assert package.origin is not None
    code = (
        "import sys; from pathlib import Path; from wordllama import WordLlama; "
        "load = WordLlama.load(cache_dir=Path(sys.argv[1]), disable_download=True); "
        "print(*load.embed([sys.argv[2]], norm=True)[0])"
    )
    text = "how did the discount campaign go?"
    told = subprocess.run(
        [sys.executable, "-c", code, str(Path(package.origin).parent), text],
        capture_output=True,
        text=True,
        check=True,
    )
    assert vectors.meaning(text) == pytest.approx([float(each) for each in told.stdout.split()], abs=1e-5)
