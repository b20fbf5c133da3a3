"""How many requests a customer may make in a minute, whichever way they come in.

Counted in Redis, so that several processes count together. Without Redis each process counts for itself: the
limit is then looser, and nobody is kept from talking.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from functools import cache
from typing import Final, cast
from uuid import UUID

from django.conf import settings
from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

from memberintel.lib import clock

WINDOW_SECONDS: Final = 60
REST_SECONDS: Final = 10.0  # a Redis that is down costs one request in this time a moment, not each
TIMEOUT_SECONDS: Final = 0.25


def spend(customer: UUID, kind: str) -> int:
    """Count one request of that kind (a key of `API_LIMITS`); 0, or the seconds to wait until there is room."""
    window, into = divmod(int(clock.now().timestamp()), WINDOW_SECONDS)
    name = f"rate:{customer}:{kind}:{window}"
    count = _shared.count(name)
    if count is None:
        count = _own.count(name, window)
    return WINDOW_SECONDS - into if count > settings.API_LIMITS[kind] else 0


class _Shared:
    """Counters in Redis."""

    def __init__(self) -> None:
        self.resting_until = 0.0

    def count(self, name: str) -> int | None:
        """The counter after one more, or None while Redis does not answer."""
        if not settings.REDIS_URL or time.monotonic() < self.resting_until:
            return None
        try:
            pipe = _redis(settings.REDIS_URL).pipeline(transaction=False)
            pipe.incr(name)
            pipe.expire(name, 2 * WINDOW_SECONDS)
            return cast(int, pipe.execute()[0])
        except RedisError:
            self.resting_until = time.monotonic() + REST_SECONDS
            return None


class _Own:
    """Counters of this process, of the present window only."""

    def __init__(self) -> None:
        self.window = 0
        self.counts: Counter[str] = Counter()
        self.lock = threading.Lock()

    def count(self, name: str, window: int) -> int:
        """The counter after one more."""
        with self.lock:
            if window != self.window:
                self.window, self.counts = window, Counter()
            self.counts[name] += 1
            return self.counts[name]


_shared = _Shared()
_own = _Own()


@cache
def _redis(url: str) -> Redis:
    return Redis.from_url(
        url,
        socket_connect_timeout=TIMEOUT_SECONDS,
        socket_timeout=TIMEOUT_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )
