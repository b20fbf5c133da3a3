"""Where attempts to sign in are counted, and codes of second factors remembered that were used: Django's cache.

In Redis, so that several processes count together; otherwise each of ten processes would allow the whole number.
While Redis does not answer each process counts for itself: the limits are then looser, and nobody is locked out.
"""

from __future__ import annotations

import time
from typing import Any, Final

from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache
from redis import RedisError

REST_SECONDS: Final = 10.0


class Attempts(RedisCache):
    """The cache. Only what allauth uses of one stands in for itself: add, get, set, delete."""

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._own = LocMemCache("attempts", params)
        self._resting_until = 0.0

    def add(self, *args: Any, **kwargs: Any) -> Any:
        """As Django's."""
        return self._either("add", args, kwargs)

    def get(self, *args: Any, **kwargs: Any) -> Any:
        """As Django's."""
        return self._either("get", args, kwargs)

    def set(self, *args: Any, **kwargs: Any) -> Any:
        """As Django's."""
        return self._either("set", args, kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> Any:
        """As Django's."""
        return self._either("delete", args, kwargs)

    def clear(self) -> Any:
        """Forget all of it. The queue lives in the same Redis: only keys of ours go."""
        self._own.clear()
        client = self._cache.get_client(None, write=True)
        for key in client.scan_iter(f"{self.key_prefix}:*"):
            client.delete(key)
        return True

    def _either(self, name: str, args: Any, kwargs: Any) -> Any:
        if time.monotonic() >= self._resting_until:
            try:
                return getattr(super(), name)(*args, **kwargs)
            except RedisError:
                self._resting_until = time.monotonic() + REST_SECONDS
        return getattr(self._own, name)(*args, **kwargs)
