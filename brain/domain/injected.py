"""A document as it may stand in a prompt: what a model wrote is made fit once more, by the rules of today."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from memberintel.lib import machinery
from memberintel.lib.sanitise import Refused, sanitise

_LIMIT = 200_000


def fit(text: str, approved: str) -> str:
    """The text; its lines that are not in `approved`, which a person saved, are sanitised again.

    A line that is refused today leaves one that says so. Applied to its own result it changes nothing.
    """
    by_person = set(approved.split("\n"))
    lines = [line for part in _parts(text, by_person) for line in part]
    whole = "\n".join(lines)
    if machinery.refusal(whole) and not machinery.refusal(approved):
        reason = machinery.refusal(whole) or ""
        return "\n".join(
            line if line in by_person or not line.strip() else _left_out(reason) for line in lines
        )
    return whole


def _parts(text: str, by_person: set[str]) -> Iterator[list[str]]:
    for known, group in groupby(text.split("\n"), key=lambda line: line in by_person):
        lines = list(group)
        yield lines if known else _again(lines)


def _again(lines: list[str]) -> list[str]:
    """Together if they pass together, else line by line."""
    try:
        return _kept("\n".join(lines)).split("\n")
    except Refused as refused:
        whole = refused.reason
    alone = [_alone(line) for line in lines]
    try:
        return _kept("\n".join(alone)).split("\n")
    except Refused:
        return [_left_out(whole) for _ in alone]


def _alone(line: str) -> str:
    try:
        return _kept(line)
    except Refused as refused:
        return _left_out(refused.reason)


def _kept(text: str) -> str:
    """Sanitised within the white space it came in."""
    bare = text.strip()
    return text.replace(bare, sanitise(bare, limit=_LIMIT).text, 1) if bare else text


def _left_out(reason: str) -> str:
    return f"(a line of the advisor's was left out: {reason})"
