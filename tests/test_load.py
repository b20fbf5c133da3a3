"""The load run, small: every closed session of every sort ends in exactly the state the rules say."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from evals.load import sessions
from evals.load.backfill import ANSWER
from tests.wrapups.stage import model
from wrapups import backfill


def nobody(*args: Any, **kwargs: Any) -> None:
    """Puts nothing on any queue."""


def test_every_session_ends_as_the_rules_say(
    login: Callable[[str], AbstractContextManager[None]], settings: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(sessions, "EACH", 30)
    held = list(sessions.hold(60))
    for _ in range(2):  # a second run changes nothing
        with model(settings, "load", {"json": ANSWER}), login("worker"):
            backfill.run(later=nobody, at_once=True)
        found, wrong = sessions.outcome(held)
        assert wrong == []
        assert found == sessions.expected(held)
    assert {state for _, state in found} == {"done", "unfunded", "trivial", "off_record", "deleted"}
