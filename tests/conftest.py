"""A real PostgreSQL with the real roles, a real Redis; every test makes its own tenants and nothing flushes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest

from tests.waiting import PATIENCE


@pytest.fixture(scope="session")
def django_db_setup() -> None:
    """The database is there already: migrated, with the real roles."""


@pytest.fixture(autouse=True)
def _database_allowed(django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock():
        yield


@pytest.fixture(scope="session", autouse=True)
def _unhurried() -> Iterator[None]:
    """What the product does not wait for, so that people need not, says of a test how busy the machine is."""
    from django.conf import settings

    with pytest.MonkeyPatch.context() as patch:
        for name in ("socket_connect_timeout", "socket_timeout"):
            patch.setitem(settings.CACHES["default"]["OPTIONS"], name, PATIENCE)
        for of in ("memberintel.accounts.limits.TIMEOUT_SECONDS", "sessions.relay.CONNECT_SECONDS"):
            patch.setattr(of, PATIENCE)
        for name in ("recall", "distill", "title"):
            patch.setitem(settings.TURN_DEADLINES, name, PATIENCE)
        for name in ("embed", "distill", "title"):
            patch.setitem(settings.LLM_DEADLINES, name, PATIENCE)
        yield


@dataclass(frozen=True)
class Person:
    """A signed-up customer and the scope of their work."""

    user: Any
    scope: Any


def make_person(
    *, tier: str, tenant: Any = None, owner: bool = True, name: str = "person", password: str | None = None
) -> Person:
    """A new customer, in a new tenant of that tier unless one is given; signs in with `password` if it has one."""
    from memberintel.tenancy.context import Scope
    from memberintel.tenancy.models import Tenant, User

    tenant = tenant or Tenant.objects.create(name=f"{name}'s site", tier_id=tier)
    email = f"{name}-{uuid4().hex[:12]}@example.com"
    user = User.objects.create_user(email, password, tenant=tenant, is_owner=owner)
    return Person(user, Scope(tenant.id, user.id))


@pytest.fixture
def alice() -> Person:
    """Owner of a Pro tenant."""
    return make_person(tier="pro", name="alice")


@pytest.fixture
def bob(alice: Person) -> Person:
    """Alice's colleague: same tenant, other customer."""
    return make_person(tier="pro", tenant=alice.user.tenant, owner=False, name="bob")


@pytest.fixture
def charlie() -> Person:
    """Owner of a Free tenant, a stranger to both."""
    return make_person(tier="free", name="charlie")


@pytest.fixture
def login() -> Callable[[str], AbstractContextManager[None]]:
    """`with login("worker"):` makes the default connection log in as another role."""
    return login_as


@contextmanager
def login_as(role: str) -> Iterator[None]:
    """What the fixture `login` gives, for fixtures that live longer than a test."""
    from django.db import connections

    connection = connections["default"]
    entry = connection.settings_dict  # shared by the connections of all threads, so all of them switch
    before = dict(entry)
    connection.close()
    entry.update(_credentials(role))
    try:
        yield
    finally:
        connection.close()
        entry.update(before)


def _credentials(role: str) -> dict[str, Any]:
    from django.conf import settings

    from memberintel import env

    entry = env.database(f"DATABASE_URL_{role.upper()}")
    return {
        "USER": entry["USER"],
        "PASSWORD": entry["PASSWORD"],
        "TENANT_ROLE": settings.TENANT_ROLES.get(role),
    }
