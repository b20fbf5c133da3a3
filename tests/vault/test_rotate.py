"""Rotation: every data key re-wrapped, content untouched, both keys good meanwhile, a kill no harm."""

from __future__ import annotations

import subprocess
import sys

import psycopg
import pytest
from django.conf import settings as django_settings

from memberintel.tenancy.context import Scope, scope
from memberintel.vault import keyring
from memberintel.vault.destroy import destroy_customer_key
from memberintel.vault.errors import KekRefused, KeyDestroyed, WrongKey
from memberintel.vault.kek import configured
from tests.vault.conftest import KekRoom, new_kek, new_scope
from tests.vault.notes import Note
from tests.waiting import PATIENCE, until

STUCK_ROTATION = """
import django, time
django.setup()
from memberintel.vault import kek, rotate, start

class Stuck(kek.LocalKek):
    left = 6
    def wrap(self, data_key, owner):
        Stuck.left -= 1
        if Stuck.left < 0:
            time.sleep(3600)
        return super().wrap(data_key, owner)

kek.LocalKek = Stuck
keks = kek.configured()
start.make_known(keks.current.fingerprint)
for batch in rotate.rewrap(keks, size=2):
    pass
"""


@pytest.fixture
def customers() -> list[Scope]:
    """Ten customers with a key each."""
    found = [new_scope() for _ in range(10)]
    for customer in found:
        with scope(customer):
            keyring.customer_key()
    return found


def keys_of(customers: list[Scope]) -> list[bytes]:
    keyring.cache.clear()
    keys = []
    for customer in customers:
        with scope(customer):
            keys.append(keyring.customer_key())
    return keys


def wrapped_by(login: psycopg.Connection, fingerprint: str) -> int:
    row = login.execute("SELECT count(*) FROM vault.data_keys WHERE kek = %s", [fingerprint]).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.usefixtures("notes")
def test_rotation_changes_the_wrapping_and_nothing_else(
    anna: Scope, keks: KekRoom, owner_login: psycopg.Connection
) -> None:
    note = Note.objects.create(body="kept", shared="too", secret="and this")
    sealed = Note.objects.values_list("body", "shared", "secret").get()
    home = configured().current.fingerprint
    fresh = new_kek()
    keks.use(fresh, old=keks.base)
    assert Note.objects.get().body == "kept", "both are readable before"
    done = keks.rotate()
    assert done.returncode == 0, done.stderr
    assert f"data keys re-wrapped with {configured().current.fingerprint}" in done.stdout
    assert "Re-wrapping" in done.stderr
    assert wrapped_by(owner_login, home) == 0
    keks.use(fresh, old=keks.base)
    assert Note.objects.values_list("body", "shared", "secret").get() == sealed
    found = Note.objects.get(id=note.id)
    assert (found.body, found.shared, found.secret) == ("kept", "too", "and this")
    keks.use(keks.base)
    with pytest.raises(WrongKey):
        keyring.customer_key()


def test_a_killed_rotation_is_resumed(
    customers: list[Scope], keks: KekRoom, owner_login: psycopg.Connection
) -> None:
    before, home = keys_of(customers), configured().current.fingerprint
    keks.use(new_kek(), old=keks.base)
    current = configured().current.fingerprint
    environment = keks.environment() | {"DJANGO_SETTINGS_MODULE": "memberintel.settings"}
    killed = subprocess.Popen(
        [sys.executable, "-c", STUCK_ROTATION], env=environment, cwd=django_settings.BASE_DIR
    )
    try:
        until(lambda: wrapped_by(owner_login, current) >= 4 or killed.poll() is not None)
        assert killed.poll() is None
    finally:
        killed.kill()
        killed.wait(PATIENCE)
    done = wrapped_by(owner_login, current)
    left = wrapped_by(owner_login, home)
    assert done >= 4
    assert left > 0
    assert keys_of(customers) == before, "half-way, every key is readable"
    resumed = keks.rotate()
    assert resumed.returncode == 0, resumed.stderr
    assert f"{left} data keys re-wrapped" in resumed.stdout
    assert wrapped_by(owner_login, home) == 0
    assert keys_of(customers) == before
    assert "0 data keys re-wrapped" in keks.rotate().stdout


def test_retiring_refuses_the_former_key_for_ever(
    customers: list[Scope], keks: KekRoom, owner_login: psycopg.Connection
) -> None:
    before, home = keys_of(customers), configured().current.fingerprint
    fresh = new_kek()
    keks.use(fresh, old=keks.base)
    done = keks.rotate("--retire-old")
    assert done.returncode == 0, done.stderr
    assert f"Retired: {home}" in done.stdout
    keks.use(fresh)
    assert keys_of(customers) == before
    # A process that was never restarted still has the former key only: it cannot make new keys with it.
    keks.use(keks.base)
    with scope(new_scope()), pytest.raises(KekRefused):
        keyring.customer_key()
    assert wrapped_by(owner_login, home) == 0


def test_destroyed_keys_stay_destroyed(anna: Scope, keks: KekRoom) -> None:
    keyring.customer_key()
    destroy_customer_key()
    keks.use(new_kek(), old=keks.base)
    done = keks.rotate()
    assert done.returncode == 0, done.stderr
    with pytest.raises(KeyDestroyed):
        keyring.customer_key()


def test_without_the_former_key_nothing_is_touched(
    customers: list[Scope], keks: KekRoom, owner_login: psycopg.Connection
) -> None:
    home = configured().current.fingerprint
    before = wrapped_by(owner_login, home)
    keks.use(new_kek())
    done = keks.rotate("--retire-old")
    assert done.returncode == 1
    assert home in done.stderr
    assert "Nothing was changed" in done.stderr
    assert "Traceback" not in done.stderr
    assert wrapped_by(owner_login, home) == before
    keks.use(keks.base)
    keys_of(customers)


def test_a_broken_key_is_named_left_alone_and_keeps_the_former_key_alive(
    customers: list[Scope], keks: KekRoom, owner_login: psycopg.Connection
) -> None:
    broken = customers[3].customer_id
    (id_, wrapped) = owner_login.execute(
        "SELECT id, wrapped FROM vault.data_keys WHERE customer_id = %s", [broken]
    ).fetchone() or (None, b"")
    owner_login.execute("UPDATE vault.data_keys SET wrapped = '\\x00' WHERE id = %s", [id_])
    try:
        keks.use(new_kek(), old=keks.base)
        done = keks.rotate("--retire-old")
        assert done.returncode == 1
        assert str(id_) in done.stderr
        assert "Retired" not in done.stdout
        keys_of(customers[:3] + customers[4:])
    finally:
        owner_login.execute("UPDATE vault.data_keys SET wrapped = %s WHERE id = %s", [wrapped, id_])
    assert keks.rotate("--retire-old").returncode == 0
