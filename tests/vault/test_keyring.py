"""Data keys: one for each owner, made once whoever comes first, relied on only once committed."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context

import psycopg
import pytest
from django.db import DatabaseError, connection, connections, transaction

from memberintel.tenancy.context import SYSTEM, NoScope, Scope, scope
from memberintel.vault import keyring
from memberintel.vault.cipher import Opener
from memberintel.vault.errors import KeyUnavailable
from memberintel.vault.keyring import KeyCache, OpenKey
from memberintel.vault.models import DataKey
from memberintel.vault.owner import Owner
from tests.vault.conftest import new_scope, undone
from tests.waiting import PATIENCE


def test_a_key_is_made_on_first_use_and_is_the_same_ever_after(anna: Scope) -> None:
    first = keyring.customer_key()
    assert len(first) == 32
    keyring.cache.clear()
    assert keyring.customer_key() == first
    row = DataKey.objects.get(kind="customer")
    assert first not in bytes(row.wrapped or b"")


def test_each_owner_has_a_key_of_their_own(anna: Scope) -> None:
    keys = {keyring.customer_key(), keyring.tenant_key(), keyring.system_key()}
    with scope(new_scope(anna.tenant_id)):
        keys.add(keyring.customer_key())
        shared = keyring.tenant_key()
    with scope(new_scope()):
        keys |= {keyring.customer_key(), keyring.tenant_key()}
    assert len(keys) == 6
    assert shared == keyring.tenant_key()


def test_without_a_scope_there_is_no_key() -> None:
    with pytest.raises(NoScope):
        keyring.customer_key()
    with scope(Scope(new_scope().tenant_id)), pytest.raises(NoScope):
        keyring.customer_key()


def test_a_tenants_key_needs_no_customer(anna: Scope) -> None:
    keyring.customer_key()
    here = keyring.tenant_key()
    keyring.cache.clear()
    with scope(Scope(anna.tenant_id)):
        assert keyring.tenant_key() == here


def test_anothers_key_is_refused_also_when_it_is_cached(anna: Scope) -> None:
    keyring.customer_key()
    owner = keyring.customer_owner()
    with scope(new_scope(anna.tenant_id)), pytest.raises(KeyUnavailable):
        keyring.key_of(owner)
    with scope(new_scope()), pytest.raises(KeyUnavailable):
        keyring.key_of(Owner("tenant", anna.tenant_id))


def test_the_database_hides_a_colleagues_key_and_refuses_all_without_a_scope(anna: Scope) -> None:
    keyring.customer_key()
    keyring.tenant_key()
    with scope(new_scope(anna.tenant_id)), connection.cursor() as cursor:
        cursor.execute("SELECT kind FROM vault.data_keys")
        assert cursor.fetchall() == [("tenant",)]


def test_the_database_refuses_keys_without_a_scope() -> None:
    with connection.cursor() as cursor, pytest.raises(DatabaseError, match="permission denied"):
        cursor.execute("SELECT kind FROM vault.data_keys")


@pytest.mark.parametrize(
    "change", ["UPDATE vault.data_keys SET wrapped = NULL", "DELETE FROM vault.data_keys"]
)
def test_the_application_cannot_change_a_key(anna: Scope, change: str) -> None:
    keyring.customer_key()
    with connection.cursor() as cursor, pytest.raises(DatabaseError, match="permission denied"):
        cursor.execute(change)


def test_many_first_users_at_once_get_one_key() -> None:
    wanted, gate = new_scope(), threading.Barrier(6)

    def first_use() -> bytes:
        try:
            with scope(wanted):
                gate.wait(PATIENCE)
                return keyring._read_or_make(keyring.customer_owner()).key
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as threads:
        keys = [made.result() for made in [threads.submit(Context().run, first_use) for _ in range(6)]]
    assert len(set(keys)) == 1


def test_a_key_whose_transaction_is_undone_is_forgotten(anna: Scope) -> None:
    with undone():
        vanished = keyring.customer_key()
        assert keyring.customer_key() == vanished
    assert keyring.customer_key() != vanished
    kept = keyring.customer_key()
    keyring.cache.clear()
    assert keyring.customer_key() == kept


def test_a_key_made_in_an_undone_savepoint_is_forgotten(anna: Scope) -> None:
    with transaction.atomic():
        with undone():
            vanished = keyring.customer_key()
        kept = keyring.customer_key()
        assert kept != vanished
    keyring.cache.clear()
    assert keyring.customer_key() == kept


def test_a_committed_key_is_cached_also_inside_a_transaction(anna: Scope) -> None:
    with transaction.atomic():
        keyring.customer_key()
        assert keyring.cache.get(keyring.customer_owner()) is None
    assert keyring.cache.get(keyring.customer_owner()) is not None
    keyring.cache.clear()
    with transaction.atomic():
        keyring.customer_key()
        assert keyring.cache.get(keyring.customer_owner()) is not None


def test_the_system_key_is_had_from_any_scope_or_none(anna: Scope) -> None:
    here = keyring.system_key()
    keyring.cache.clear()
    with transaction.atomic():
        assert keyring.system_key() == here
    keyring.cache.clear()
    with scope(SYSTEM):
        assert keyring.system_key() == here


def test_the_system_key_is_had_without_a_scope() -> None:
    here = keyring.system_key()
    keyring.cache.clear()
    with transaction.atomic():
        assert keyring.system_key() == here


def test_support_and_backup_have_no_way_in(owner_login: psycopg.Connection) -> None:
    for login in ("support", "backup"):
        for table in ("vault.data_keys", "vault.keks"):
            found = owner_login.execute("SELECT has_table_privilege(%s, %s, 'SELECT')", [login, table])
            assert found.fetchone() == (False,)


# --- the cache -----------------------------------------------------------------------------------------------


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


KEY = OpenKey(bytes(32), Opener(bytes(32)))


def owner(n: int = 1) -> Owner:
    from uuid import UUID

    return Owner("customer", UUID(int=n), UUID(int=n))


def test_a_key_is_kept_for_a_minute_and_not_longer() -> None:
    clock = Clock()
    cache = KeyCache(clock=clock)
    cache.put(owner(), KEY)
    clock.now += 59.9
    assert cache.get(owner()) is KEY
    clock.now += 0.1
    assert cache.get(owner()) is None
    clock.now -= 30
    assert cache.get(owner()) is None, "what ran out does not come back with the clock"


def test_reading_does_not_prolong_it() -> None:
    clock = Clock()
    cache = KeyCache(clock=clock)
    cache.put(owner(), KEY)
    for _ in range(6):
        clock.now += 10
        found = cache.get(owner())
    assert found is None


def test_keys_that_ran_out_are_thrown_out_when_many_are_held() -> None:
    clock = Clock()
    cache = KeyCache(clock=clock)
    for n in range(1000):
        cache.put(owner(n), KEY)
    clock.now += 61
    cache.put(owner(5000), KEY)
    assert len(cache._held) == 1


def test_a_key_does_not_show_itself() -> None:
    assert repr(KEY) == "<data key>"
