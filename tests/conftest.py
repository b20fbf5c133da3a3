"""A real PostgreSQL with the real roles, a real Redis; every test makes its own tenants and nothing flushes.

The services and one migrated template database are made once a run; each xdist worker has a copy of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from tests import services

# Before Django reads its settings: the variables of this worker's own database.
os.environ.update(services.environment(os.environ.get("PYTEST_XDIST_WORKER", "main")))


@pytest.fixture(scope="session", autouse=True)
def _stop_services() -> Iterator[None]:
    yield
    services.stop()


@pytest.fixture(scope="session")
def django_db_setup() -> None:
    """The database is there already: migrated, with the real roles."""


@pytest.fixture(autouse=True)
def _database_allowed(django_db_blocker: pytest.FixtureRequest) -> Iterator[None]:
    with django_db_blocker.unblock():  # type: ignore[attr-defined]
        yield
