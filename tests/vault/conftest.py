"""A table with sealed fields, and key-encryption keys that leave the shared database as they found it."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID, uuid4

import psycopg
import pytest
from django.conf import settings as django_settings
from django.db import transaction
from pytest_django import Settings

from memberintel.tenancy.context import Scope, scope
from memberintel.tenancy.models import Tenant, User
from memberintel.vault import kek, keyring
from memberintel.vault.owner import Owner
from tests.vault.notes import TABLE_SQL


@pytest.fixture(autouse=True)
def _empty_cache() -> Iterator[None]:
    keyring.cache.clear()
    yield
    keyring.cache.clear()


def new_scope(tenant_id: UUID | None = None) -> Scope:
    """A fresh customer, in a tenant of their own unless one is given."""
    tenant = Tenant.objects.get(id=tenant_id) if tenant_id else Tenant.objects.create(tier_id="pro")
    user = User.objects.create_user(f"{uuid4().hex}@example.com", tenant=tenant)
    return Scope(tenant.id, user.id)


@contextmanager
def undone() -> Iterator[None]:
    """A transaction (inside another: a savepoint) that is rolled back at its end."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture
def anna() -> Iterator[Scope]:
    """The scope of a fresh customer, entered."""
    with scope(new_scope()) as entered:
        yield entered


@pytest.fixture(scope="session")
def owner_login() -> Iterator[psycopg.Connection]:
    """A connection of the login that owns the tables."""
    with psycopg.connect(os.environ["DATABASE_URL_OWNER"], autocommit=True) as connection:
        yield connection


@pytest.fixture
def notes(owner_login: psycopg.Connection) -> Iterator[None]:
    """The table of `tests.vault.notes`, under the same policies as any private table."""
    owner_login.execute("DROP TABLE IF EXISTS vault_test_notes")
    owner_login.execute(TABLE_SQL)
    yield
    owner_login.execute("DROP TABLE vault_test_notes")


def new_kek() -> str:
    """A random key-encryption key as it stands in a variable."""
    return base64.b64encode(os.urandom(32)).decode()


@dataclass
class KekRoom:
    """Lets a test change the key-encryption keys of this process and of commands it starts."""

    base: str
    settings: Settings
    used: set[str]

    def use(self, current: str, old: str = "") -> None:
        """Set the keys, as an operator sets variables and restarts."""
        self.settings.KEK, self.settings.KEK_OLD = current, old
        self.settings.KEK_FILE = self.settings.KEK_OLD_FILE = ""
        self.used |= {key for key in (current, old) if key}
        keyring.cache.clear()

    def environment(self) -> dict[str, str]:
        """The same keys for a process of its own."""
        drop = {"MEMBERINTEL_KEK_FILE", "MEMBERINTEL_KEK_OLD_FILE"}
        kept = {name: value for name, value in os.environ.items() if name not in drop}
        return kept | {
            "MEMBERINTEL_KEK": str(self.settings.KEK),
            "MEMBERINTEL_KEK_OLD": str(self.settings.KEK_OLD),
            "MEMBERINTEL_PROCESS": "owner",
        }

    def rotate(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Run the real command."""
        command = [sys.executable, "manage.py", "rotate_kek", *options]
        return subprocess.run(
            command,
            env=self.environment(),
            cwd=django_settings.BASE_DIR,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def keks(settings: Settings, owner_login: psycopg.Connection) -> Iterator[KekRoom]:
    """Free choice of key-encryption keys; afterwards every data key is back under the run's own."""
    first = settings.KEK or _file(settings.KEK_FILE)
    room = KekRoom(first, settings, set())
    room.use(first)
    home = kek.configured().current
    yield room
    _bring_home(owner_login, home, [kek.LocalKek(base64.b64decode(key)) for key in room.used])
    owner_login.execute("DELETE FROM vault.keks WHERE fingerprint <> %s", [home.fingerprint])
    owner_login.execute("UPDATE vault.keks SET retired_at = NULL")


def _bring_home(login: psycopg.Connection, home: kek.Kek, used: list[kek.LocalKek]) -> None:
    for other in used:
        rows = login.execute(
            "SELECT id, kind, tenant_id, customer_id, wrapped FROM vault.data_keys WHERE kek = %s AND kek <> %s",
            [other.fingerprint, home.fingerprint],
        ).fetchall()
        for id_, kind, tenant, customer, wrapped in rows:
            owner = Owner(kind, tenant, customer)
            login.execute(
                "UPDATE vault.data_keys SET wrapped = %s, kek = %s WHERE id = %s",
                [home.wrap(other.unwrap(wrapped, owner), owner), home.fingerprint, id_],
            )


def _file(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read().strip()
