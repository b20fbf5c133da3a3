"""The default connection as another login, or on another database."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.db import connections

from memberintel import env
from memberintel.embedded import superuser_url


@contextmanager
def connected_as(role: str, *, database: str = "") -> Iterator[None]:
    """The default connection logs in as that role inside, and as before afterwards."""
    entry = env.database(f"DATABASE_URL_{role.upper()}")
    with _settings(
        "default",
        USER=entry["USER"],
        PASSWORD=entry["PASSWORD"],
        NAME=database or entry["NAME"],
        TENANT_ROLE=settings.TENANT_ROLES.get(role),
    ):
        yield


@contextmanager
def connected_as_superuser(alias: str = "default") -> Iterator[None]:
    """The connection is the superuser's inside. For the checks that must refuse it, and nothing else."""
    found = psycopg.conninfo.conninfo_to_dict(superuser_url(data_folder()))
    with _settings(alias, USER=found["user"], PASSWORD=found["password"], TENANT_ROLE=None):
        yield


@contextmanager
def _settings(alias: str, **changed: Any) -> Iterator[None]:
    connection = connections[alias]
    before = connection.settings_dict
    connection.close()
    connection.settings_dict = {**before, **changed}
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict = before


def data_folder() -> Path:
    """The folder of the services this run stands on."""
    return Path(os.environ["MEMBERINTEL_TEST_DATA"])


def database_name() -> str:
    """The database of this process."""
    return str(connections["default"].settings_dict["NAME"])
