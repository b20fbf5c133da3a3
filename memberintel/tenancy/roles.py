"""The roles of the database, as SQL a superuser runs once per cluster and database. Safe to run again.

Logins (all without SUPERUSER, BYPASSRLS, INHERIT): `owner` owns tables and migrates; `web` and `worker` serve;
`support` reads across tenants for staff (text there is ciphertext); `backup` dumps all but the keys.
Group roles hold what logins may do inside a scope; definer roles own the few functions that look across.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping

LOGINS = ("owner", "web", "worker", "support", "backup")
GROUPS = ("app_common", "web_tenant", "worker_tenant")
DEFINERS = ("searcher", "sweeper", "eraser")

_NAME = re.compile(r"^[a-z_][a-z0-9_]*$")


def roles_sql(database: str, passwords: Mapping[str, str]) -> str:
    """SQL that creates roles, memberships and schemas in `database`; `passwords` has one for each login.

    Needs PostgreSQL 16 or newer (per-grant INHERIT and SET). Raises ValueError for a database name that is
    not a plain lower-case identifier, KeyError for a login without a password.
    """
    if not _NAME.match(database):
        raise ValueError(f"database name {database!r}: use lower-case letters, digits and underscores")
    parts = [_login(name, passwords[name]) for name in LOGINS]
    parts += [_group(name) for name in (*GROUPS, *DEFINERS)]
    parts.append(_MEMBERSHIPS)
    parts.append(_SCHEMAS.format(database=database))
    return "\n".join(parts)


def _login(name: str, password: str) -> str:
    quoted = "'" + password.replace("'", "''") + "'"
    return (
        f"{_ensure(name)}\n"
        f"ALTER ROLE {name} LOGIN NOSUPERUSER NOBYPASSRLS NOINHERIT NOCREATEDB NOCREATEROLE PASSWORD {quoted};"
    )


def _group(name: str) -> str:
    return f"{_ensure(name)}\nALTER ROLE {name} NOLOGIN NOSUPERUSER NOBYPASSRLS NOINHERIT NOCREATEDB NOCREATEROLE;"


def _ensure(name: str) -> str:
    return (
        "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = "
        f"'{name}') THEN CREATE ROLE {name}; END IF; END $$;"
    )


_MEMBERSHIPS = """
-- Tenant-less grants are inherited; a group role's grants count only after it was entered.
GRANT app_common TO web, worker WITH INHERIT TRUE, SET FALSE;
GRANT app_common TO web_tenant, worker_tenant WITH INHERIT TRUE, SET FALSE;
GRANT web_tenant TO web WITH INHERIT FALSE, SET TRUE;
GRANT worker_tenant TO worker WITH INHERIT FALSE, SET TRUE;
-- The owner hands functions over to the definer roles and never acts as them at run time.
GRANT searcher, sweeper, eraser TO owner WITH INHERIT FALSE, SET TRUE;
"""

_SCHEMAS = """
REVOKE ALL ON DATABASE {database} FROM PUBLIC;
GRANT CONNECT ON DATABASE {database} TO owner, web, worker, support, backup;
GRANT CREATE, TEMPORARY ON DATABASE {database} TO owner;
GRANT CREATE, USAGE ON SCHEMA public TO owner;
CREATE SCHEMA IF NOT EXISTS app AUTHORIZATION owner;
CREATE SCHEMA IF NOT EXISTS vault AUTHORIZATION owner;
GRANT USAGE ON SCHEMA app TO app_common, support, backup, searcher, sweeper, eraser;
-- Keys are backed up apart: `backup` has no way into this schema.
GRANT USAGE ON SCHEMA vault TO app_common, eraser;
ALTER DEFAULT PRIVILEGES FOR ROLE owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
"""


def main() -> None:
    """Print the SQL with the passwords of the environment (WEB_PASSWORD, ...), or with placeholders to fill in."""
    passwords = {name: os.environ.get(f"{name.upper()}_PASSWORD", f"change-me-{name}") for name in LOGINS}
    sys.stdout.write(roles_sql(os.environ.get("DATABASE_NAME", "memberintel"), passwords))


if __name__ == "__main__":
    main()
