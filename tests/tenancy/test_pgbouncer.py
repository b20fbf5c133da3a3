"""Six hundred requests of three people on three shared server connections, and the proof that it would show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.tenancy.bouncer import PROGRAM, bouncer
from tests.tenancy.conftest import Cast
from tests.tenancy.trials import try_out

pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="PgBouncer IS NOT INSTALLED: nothing shows that pooled connections do not leak"
)
WAYS = {"threads": 150, "units": 75, "wsgi": 150, "asgi": 150}  # a coroutine does two units


@pytest.fixture(scope="module")
def address() -> Iterator[dict[str, str]]:
    with bouncer() as variables:
        yield variables


def total(found: Any) -> Counter[str]:
    return sum((Counter(outcomes) for outcomes in found["outcomes"].values()), Counter())


@pytest.mark.parametrize("pool", ["0", "8"], ids=["without a pool", "with a pool of its own"])
def test_nobody_reads_anybody_elses_rows(cast: Cast, address: dict[str, str], pool: str) -> None:
    found = try_out(cast, ways=WAYS, DATABASE_POOL=pool, **address)
    assert found["outcomes"] == {way: {"right": 150} for way in WAYS}
    assert total(found) == {"right": 600}


@pytest.mark.parametrize("stamp", ["kept", "once"])
def test_context_set_for_a_database_session_would_be_found_out(
    cast: Cast, address: dict[str, str], stamp: str
) -> None:
    """The negative control: the same requests, with context that outlives its transaction."""
    found = try_out(
        cast, ways={"threads": 80, "wsgi": 60, "asgi": 60}, stamp=stamp, DATABASE_POOL="0", **address
    )
    assert total(found)["leaked"] > 0
