"""Three people with a row in every tenant table: two colleagues and a stranger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest

from tests.conftest import Person


@dataclass(frozen=True)
class Cast:
    """`rows` are Alice's, `colleague` Bob's, `stranger` Charlie's: JSON of a row by the label of its model."""

    alice: Person
    bob: Person
    charlie: Person
    rows: dict[str, str]
    colleague: dict[str, str]
    stranger: dict[str, str]


@pytest.fixture(scope="session")
def cast(django_db_setup: None, django_db_blocker: Any) -> Cast:
    """Made once: the tests that use it only read, or are refused."""
    from tests.tenancy.databases import connected_as
    from tests.tenancy.rows import make_rows

    with django_db_blocker.unblock():
        alice = person("pro")
        bob = person("pro", tenant=alice.user.tenant)
        charlie = person("free")
        rows = [make_rows(someone, connected_as("owner")) for someone in (alice, bob, charlie)]
    return Cast(alice, bob, charlie, *rows)


def person(tier: str, tenant: Any = None) -> Person:
    """As `make_person`, without the second it takes to hash a password."""
    from memberintel.tenancy.context import Scope
    from memberintel.tenancy.models import Tenant, User

    tenant = tenant or Tenant.objects.create(name="a site", tier_id=tier)
    user = User.objects.create_user(f"{uuid4().hex}@example.com", tenant=tenant)
    return Person(user, Scope(tenant.id, user.id))
