"""The data keys of the scope in force: made on first use, unwrapped, and kept for a minute at most."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import Context, ContextVar
from dataclasses import dataclass
from functools import partial
from threading import Lock
from uuid import UUID

from django.db import connection, connections, transaction

from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import (
    SYSTEM,
    current_customer_id,
    current_scope,
    current_tenant_id,
    scope,
    scope_or_none,
)
from memberintel.vault import cipher, kek, start
from memberintel.vault.cipher import Opener
from memberintel.vault.errors import KeyDestroyed, KeyUnavailable
from memberintel.vault.owner import Owner

CACHE_SECONDS = 60.0
_PURGE_ABOVE = 1000


@dataclass(frozen=True, slots=True)
class OpenKey:
    """An unwrapped data key, with its opener ready."""

    key: bytes
    opener: Opener

    def __repr__(self) -> str:
        return "<data key>"


class KeyCache:
    """Unwrapped keys of this process by owner, each for `seconds` from the moment it was unwrapped."""

    def __init__(self, seconds: float = CACHE_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._held: dict[Owner, tuple[float, OpenKey]] = {}
        self._lock = Lock()

    def get(self, owner: Owner) -> OpenKey | None:
        """The key, unless it is absent or its time is over."""
        entry = self._held.get(owner)
        if entry is None:
            return None
        until, found = entry
        if self._clock() < until:
            return found
        self.drop(owner)
        return None

    def put(self, owner: Owner, found: OpenKey) -> None:
        """Keep the key; now and then throw out those whose time is over."""
        now = self._clock()
        with self._lock:
            if len(self._held) >= _PURGE_ABOVE:
                self._held = {o: entry for o, entry in self._held.items() if entry[0] > now}
            self._held[owner] = (now + self._seconds, found)

    def drop(self, owner: Owner) -> None:
        """Forget the key of that owner."""
        with self._lock:
            self._held.pop(owner, None)

    def drop_tenant(self, tenant: UUID) -> None:
        """Forget the keys of a tenant and of all its customers."""
        with self._lock:
            self._held = {o: entry for o, entry in self._held.items() if o.tenant != tenant}

    def clear(self) -> None:
        """Forget every key."""
        with self._lock:
            self._held = {}


cache = KeyCache()


def customer_key() -> bytes:
    """Data key (32 bytes) of the scope's customer; NoScope, KeyDestroyed, WrongKey, KeyUnavailable."""
    return key_of(customer_owner()).key


def tenant_key() -> bytes:
    """Data key of the scope's tenant; errors as for `customer_key`."""
    return key_of(tenant_owner()).key


def system_key() -> bytes:
    """Data key of the system tenant, from any scope or none."""
    return key_of(SYSTEM_OWNER).key


def customer_owner() -> Owner:
    """The scope's customer as the owner of a key, or NoScope."""
    return Owner("customer", current_tenant_id(), current_customer_id())


def tenant_owner() -> Owner:
    """The scope's tenant as the owner of a key, or NoScope."""
    return Owner("tenant", current_tenant_id())


SYSTEM_OWNER = Owner("system", SYSTEM.tenant_id)

_only: ContextVar[frozenset[Owner] | None] = ContextVar("memberintel_keys_given_out", default=None)


@contextmanager
def only(*owners: Owner) -> Iterator[None]:
    """Inside, no key is given out but the system's and those of `owners`: what staff do runs in `only()`.

    So a page of the desk that enters a customer's scope by mistake, or by somebody's craft, opens nothing there.
    """
    token = _only.set(frozenset(owners))
    try:
        yield
    finally:
        _only.reset(token)


def key_of(owner: Owner) -> OpenKey:
    """The key of `owner`, who must be in scope (the system always is); KeyUnavailable otherwise."""
    _require_in_scope(owner)
    return cache.get(owner) or _read_in_scope(owner)


def _require_in_scope(owner: Owner) -> None:
    if owner.kind == "system":
        return
    allowed = _only.get()
    if allowed is not None and owner not in allowed:
        raise KeyUnavailable(f"the {owner.kind}'s key is not given out here: content is opened with a grant")
    here = current_scope()
    if owner.tenant != here.tenant_id or (owner.customer and owner.customer != here.customer_id):
        raise KeyUnavailable(f"the {owner.kind}'s key belongs to another scope")


def _read_in_scope(owner: Owner) -> OpenKey:
    if owner.kind != "system" or scope_or_none() == SYSTEM:
        return _read_or_make(owner)
    if not connection.in_atomic_block:
        with scope(SYSTEM):
            return _read_or_make(owner)
    # The open transaction is of another scope: fetch the key beside it, on a connection of its own.
    with ThreadPoolExecutor(1, thread_name_prefix="system-key") as beside:
        return beside.submit(Context().run, _read_beside, owner).result()


def _read_beside(owner: Owner) -> OpenKey:
    try:
        with scope(SYSTEM):
            return _read_or_make(owner)
    finally:
        connections.close_all()


@dataclass(frozen=True, slots=True)
class _Row:
    wrapped: bytes | None
    kek: str | None
    uncommitted: bool


_FIND = """
SELECT wrapped, kek, coalesce(made_in = pg_current_xact_id_if_assigned(), false) FROM vault.data_keys
WHERE tenant_id = %s AND kind = %s AND customer_id IS NOT DISTINCT FROM %s
"""

# A tenant whose keys were destroyed gets no new ones, its customers neither; a retired KEK wraps nothing.
_MAKE = """
INSERT INTO vault.data_keys (id, tenant_id, kind, customer_id, wrapped, kek, created_at)
SELECT %(id)s, %(tenant)s, %(kind)s, %(customer)s, %(wrapped)s, fingerprint, %(now)s
FROM vault.keks WHERE fingerprint = %(kek)s AND retired_at IS NULL AND NOT EXISTS (
  SELECT FROM vault.data_keys WHERE tenant_id = %(tenant)s AND kind = 'tenant' AND destroyed_at IS NOT NULL)
ON CONFLICT DO NOTHING
"""


def _read_or_make(owner: Owner) -> OpenKey:
    row = _find(owner) or _make(owner)
    if row.wrapped is None or row.kek is None:
        raise KeyDestroyed(f"the {owner.kind}'s key was destroyed")
    key = kek.configured().named(row.kek).unwrap(row.wrapped, owner)
    found = OpenKey(key, Opener(key))
    if not row.uncommitted:
        cache.put(owner, found)
    elif connection.in_atomic_block:
        # Until its transaction commits nobody may rely on this key: a rollback takes the row away again.
        transaction.on_commit(partial(cache.put, owner, found))
    return found


def _find(owner: Owner) -> _Row | None:
    with connection.cursor() as cursor:
        cursor.execute(_FIND, [owner.tenant, owner.kind, owner.customer])
        row = cursor.fetchone()
    if row is None:
        return None
    wrapped, fingerprint, uncommitted = row
    return _Row(None if wrapped is None else bytes(wrapped), fingerprint, uncommitted)


def _make(owner: Owner) -> _Row:
    """Insert a fresh key unless another process was first; the row that then stands."""
    for held in (kek.configured, start.register):  # the second time with the KEK made known
        _insert(owner, held().current)
        row = _find(owner)
        if row is not None:
            return row
    tenant = None if owner.kind == "tenant" else _find(Owner("tenant", owner.tenant))
    if tenant is not None and tenant.wrapped is None:
        raise KeyDestroyed("the tenant's keys were destroyed")
    raise KeyUnavailable(f"no key could be made for the {owner.kind}")


def _insert(owner: Owner, wrapper: kek.Kek) -> None:
    values = {
        "id": uuid7(),
        "tenant": owner.tenant,
        "kind": owner.kind,
        "customer": owner.customer,
        "wrapped": wrapper.wrap(cipher.new_key(), owner),
        "kek": wrapper.fingerprint,
        "now": clock.now(),
    }
    with connection.cursor() as cursor:
        cursor.execute(_MAKE, values)
