"""The SQL that makes the roles: safe to run again, and it takes back what was given too much."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import unquote, urlsplit

import psycopg
import pytest

from memberintel.embedded import superuser_url
from memberintel.tenancy.roles import DEFINERS, GROUPS, LOGINS, roles_sql
from tests.tenancy.databases import data_folder, database_name

STATE = """
SELECT (SELECT json_agg(r ORDER BY rolname) FROM (
          SELECT rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolbypassrls
          FROM pg_roles WHERE rolname = ANY(%(ours)s)) r)::text,
       (SELECT json_agg(m ORDER BY m::text) FROM (
          SELECT roleid::regrole, member::regrole, inherit_option, set_option, admin_option
          FROM pg_auth_members WHERE member::regrole::text = ANY(%(ours)s)) m)::text,
       (SELECT json_agg(n ORDER BY nspname) FROM (
          SELECT nspname, nspowner::regrole, nspacl::text FROM pg_namespace
          WHERE nspname IN ('public', 'app', 'vault')) n)::text,
       (SELECT datacl::text FROM pg_database WHERE datname = current_database())
"""


def passwords() -> dict[str, str]:
    return {
        name: unquote(urlsplit(os.environ[f"DATABASE_URL_{name.upper()}"]).password or "") for name in LOGINS
    }


def state(admin: psycopg.Connection[Any]) -> Any:
    return admin.execute(STATE, {"ours": [*LOGINS, *GROUPS, *DEFINERS]}).fetchone()


def run(admin: psycopg.Connection[Any]) -> None:
    admin.execute(roles_sql(database_name(), passwords()).encode())


def test_a_second_run_changes_nothing() -> None:
    with psycopg.connect(superuser_url(data_folder(), database_name())) as admin:
        run(admin)
        once = state(admin)
        run(admin)
        assert state(admin) == once
        admin.rollback()


def test_a_run_takes_powers_back() -> None:
    with psycopg.connect(superuser_url(data_folder(), database_name())) as admin:
        run(admin)
        once = state(admin)
        admin.execute("ALTER ROLE web SUPERUSER BYPASSRLS INHERIT CREATEROLE; ALTER ROLE web_tenant LOGIN")
        admin.execute("GRANT web_tenant TO web WITH INHERIT TRUE")
        assert state(admin) != once
        run(admin)
        assert state(admin) == once
        admin.rollback()


def test_passwords_may_hold_any_character() -> None:
    words = dict.fromkeys(LOGINS, 'it\'s a \\ "100%" $$ one')
    with psycopg.connect(superuser_url(data_folder(), database_name())) as admin:
        admin.execute(roles_sql(database_name(), words).encode())
        admin.rollback()


@pytest.mark.parametrize("name", ["", "Upper", "a-b", "a;b", 'a"b', "1a"])
def test_a_database_name_that_is_no_plain_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="lower-case"):
        roles_sql(name, passwords())


def test_a_login_without_a_password_is_refused() -> None:
    with pytest.raises(KeyError):
        roles_sql("memberintel", {})
