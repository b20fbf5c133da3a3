from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memberintel.llm.errors import (
    ERRORS,
    BadRequest,
    InvalidOutput,
    ModelError,
    Overloaded,
    RateLimited,
    Refused,
    Unavailable,
)
from memberintel.llm.policy import GiveUp, NextModel, Patience, Repeat, after_failure

PATIENCE = Patience(tries=3, first_wait=0.5, longest_wait=8.0)


def step(
    error: ModelError, tries: int = 1, models_left: int = 1, seconds_left: float = 60, jitter: float = 1.0
) -> Repeat | NextModel | GiveUp:
    return after_failure(
        error,
        tries=tries,
        models_left=models_left,
        seconds_left=seconds_left,
        patience=PATIENCE,
        jitter=jitter,
    )


def test_an_overloaded_model_is_asked_again_later_and_later() -> None:
    assert step(Overloaded(), tries=1) == Repeat(0.5)
    assert step(Overloaded(), tries=2) == Repeat(1.0)
    assert step(Overloaded(), tries=3) == NextModel()
    assert step(Overloaded(), tries=3, models_left=0) == GiveUp()


def test_half_of_a_wait_is_random() -> None:
    assert step(Unavailable(), jitter=0.0) == Repeat(0.25)


def test_the_wait_a_provider_asks_for_is_kept() -> None:
    assert step(RateLimited(retry_after=3)) == Repeat(3)
    assert step(RateLimited(retry_after=0)) == Repeat(0)


@pytest.mark.parametrize(("retry_after", "seconds_left"), [(30, 60), (5, 4)])
def test_a_wait_too_long_for_us_goes_to_another_model(retry_after: float, seconds_left: float) -> None:
    error = RateLimited(retry_after=retry_after)
    assert step(error, seconds_left=seconds_left) == NextModel()
    assert step(error, seconds_left=seconds_left, models_left=0) == GiveUp()


def test_a_bad_request_is_not_repeated_but_another_model_may_take_it() -> None:
    assert step(BadRequest()) == NextModel()
    assert step(BadRequest(), models_left=0) == GiveUp()


@pytest.mark.parametrize("error", [Refused(), InvalidOutput()])
def test_a_refusal_is_final(error: ModelError) -> None:
    assert step(error) == GiveUp()


def test_after_the_deadline_nothing_is_tried() -> None:
    assert step(Overloaded(), seconds_left=-1) == GiveUp()


@given(
    st.sampled_from(sorted(ERRORS)),
    st.none() | st.floats(-5, 100),
    st.integers(1, 6),
    st.integers(0, 2),
    st.floats(-10, 100),
    st.floats(0, 1),
)
def test_a_wait_ends_before_the_deadline(
    code: str, retry_after: float | None, tries: int, models_left: int, left: float, jitter: float
) -> None:
    found = step(ERRORS[code](retry_after=retry_after), tries, models_left, left, jitter)
    if isinstance(found, Repeat):
        assert 0 <= found.seconds < left
        assert tries < PATIENCE.tries
    if isinstance(found, NextModel):
        assert models_left > 0
