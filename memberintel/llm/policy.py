"""What to do after a failed call: wait and repeat, go to the next model, or give up. Rules without side effects."""

from __future__ import annotations

from dataclasses import dataclass

from memberintel.llm.errors import InvalidOutput, ModelError, Refused


@dataclass(frozen=True)
class Repeat:
    """Call the same model again after `seconds`."""

    seconds: float


@dataclass(frozen=True)
class NextModel:
    """Call the next model of the chain."""


@dataclass(frozen=True)
class GiveUp:
    """Raise the error."""


@dataclass(frozen=True)
class Patience:
    """How often and how long to repeat a call to one model. Seconds."""

    tries: int = 3
    first_wait: float = 0.5
    longest_wait: float = 8.0


def after_failure(
    error: ModelError,
    *,
    tries: int,
    models_left: int,
    seconds_left: float,
    patience: Patience,
    jitter: float,
) -> Repeat | NextModel | GiveUp:
    """The next step after the `tries`-th failed call to a model, `jitter` being between 0 and 1.

    A wait that the provider asked for is kept to; when it is too long for our patience or the deadline,
    another model is tried, and without one the person is told how long to wait. A refusal and a repaired
    answer that is still wrong are final: another model is not asked until one complies.
    """
    if isinstance(error, Refused | InvalidOutput):
        return GiveUp()
    elsewhere = NextModel() if models_left and seconds_left > 0 else GiveUp()
    if not error.retryable or tries >= patience.tries:
        return elsewhere
    wait = _wait(error.retry_after, tries, patience, jitter)
    if wait >= seconds_left or wait > patience.longest_wait:
        return elsewhere
    return Repeat(wait)


def _wait(retry_after: float | None, tries: int, patience: Patience, jitter: float) -> float:
    if retry_after is not None:
        return max(0.0, retry_after)
    # Exponential, half of it random: clients that failed together must not come back together.
    ceiling = min(patience.longest_wait, float(patience.first_wait * 2 ** (tries - 1)))
    return ceiling * (0.5 + jitter / 2)
