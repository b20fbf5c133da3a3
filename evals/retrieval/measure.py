"""From vectors to figures: what is found for each question, and how near it stands."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Vectors = Sequence[Sequence[float]]
Embed = Callable[[Sequence[str]], Vectors]
MOST = 5


@dataclass(frozen=True)
class Material:
    """`texts` are messages and `sessions` their sessions' numbers, from 1; `answers` are the numbers of the sessions
    that answer each question; `asides` have nothing to do with any of it."""

    texts: tuple[str, ...]
    sessions: tuple[int, ...]
    questions: tuple[str, ...]
    answers: tuple[frozenset[int], ...]
    asides: tuple[str, ...]


@dataclass(frozen=True)
class At:
    """What a threshold does: `found` is the share of questions for which an answering message is among the five
    recalled, `beside` how many of the five are of other sessions, `disturbed` the share of asides that recall any."""

    threshold: float
    found: float
    beside: float
    disturbed: float


@dataclass(frozen=True)
class Measured:
    """`recall[k]` is the share of questions with an answering session among the first k sessions found."""

    recall: dict[int, float]
    at: tuple[At, ...]


def read(conversation: Path, questions: Path, asides: Path) -> Material:
    """The material in a file `memberintel-transcript/1` and one of questions about it."""
    said = [
        (number, message["text"])
        for number, session in enumerate(json.loads(conversation.read_text())["sessions"], start=1)
        for message in session["messages"]
    ]
    asked = json.loads(questions.read_text())["questions"]
    return Material(
        texts=tuple(text for _, text in said),
        sessions=tuple(number for number, _ in said),
        questions=tuple(each["question"] for each in asked),
        answers=tuple(frozenset(each["sessions"]) for each in asked),
        asides=tuple(line for line in asides.read_text().splitlines() if line.strip()),
    )


def measured(material: Material, embed: Embed) -> Measured:
    """The figures of one way of embedding."""
    known = _unit(embed(material.texts))
    near = _unit(embed(material.questions)) @ known.T
    aside = (_unit(embed(material.asides)) @ known.T).max(axis=1)
    order = np.argsort(-near, axis=1, kind="stable")
    recall = {most: _recall(material, order, most) for most in (1, 3, 5)}
    thresholds = [round(0.15 + 0.05 * step, 2) for step in range(9)]
    return Measured(recall, tuple(_at(material, near, order, aside, each) for each in thresholds))


def _recall(material: Material, order: NDArray[np.intp], most: int) -> float:
    hits = 0
    for row, answer in zip(order, material.answers, strict=True):
        sessions = list(dict.fromkeys(material.sessions[place] for place in row))
        hits += bool(answer & set(sessions[:most]))
    return hits / len(material.answers)


def _at(
    material: Material,
    near: NDArray[np.float64],
    order: NDArray[np.intp],
    aside: NDArray[np.float64],
    threshold: float,
) -> At:
    found = beside = 0
    for row, values, answer in zip(order, near, material.answers, strict=True):
        recalled = [material.sessions[place] for place in row[:MOST] if values[place] >= threshold]
        found += any(session in answer for session in recalled)
        beside += sum(session not in answer for session in recalled)
    asked = len(material.answers)
    return At(threshold, found / asked, beside / asked, float(np.mean(aside >= threshold)))


def _unit(vectors: Vectors) -> NDArray[np.float64]:
    made = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(made, axis=1, keepdims=True)
    return np.divide(made, lengths, out=np.zeros_like(made), where=lengths > 0)
