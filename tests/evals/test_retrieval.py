"""What the measure of retrieval says of answers known beforehand."""

from __future__ import annotations

import subprocess
import sys

import pytest

from evals.retrieval.measure import Material, measured

PLACES = {"kiln": (1.0, 0.0), "price": (0.0, 1.0), "both": (1.0, 1.0), "nothing": (0.0, 0.0)}


def test_it_counts_sessions_found_answers_kept_and_asides_disturbed() -> None:
    material = Material(
        texts=("kiln", "price"),
        sessions=(1, 2),
        questions=("kiln", "price", "kiln"),
        answers=(frozenset({1}), frozenset({2}), frozenset({2})),
        asides=("nothing", "both"),
    )
    found = measured(material, lambda texts: [PLACES[text] for text in texts])
    assert found.recall == {1: pytest.approx(2 / 3), 3: 1.0, 5: 1.0}
    at = found.at[-1]
    assert [at.found, at.beside, at.disturbed] == pytest.approx([2 / 3, 1 / 3, 0.5])


def test_it_runs_as_it_is_delivered() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "evals.retrieval"], capture_output=True, text=True, check=True
    )
    assert "20 questions" in told.stdout
    assert "offline:words-and-stems-1" in told.stdout
