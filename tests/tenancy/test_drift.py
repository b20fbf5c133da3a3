"""Each way the database could come to let one tenant reach another's rows, and the check that names it."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from memberintel import env
from memberintel.checks import verify_start
from memberintel.embedded import superuser_url
from memberintel.tenancy.drift import findings
from memberintel.tenancy.guard import verify_login
from tests import services
from tests.tenancy.databases import connected_as, connected_as_superuser, data_folder, database_name

LEAKY_VIEW = "CREATE VIEW all_sessions AS SELECT * FROM sessions"
DEFINER = (
    "CREATE FUNCTION app.peek() RETURNS bigint LANGUAGE sql SECURITY DEFINER {path} AS"
    " 'SELECT count(*) FROM public.sessions'; REVOKE ALL ON FUNCTION app.peek() FROM PUBLIC;"
)
PROTECTED = (
    "CREATE TABLE notes (tenant_id uuid {null}, id {key}); ALTER TABLE notes ENABLE ROW LEVEL SECURITY;"
    " ALTER TABLE notes FORCE ROW LEVEL SECURITY;"
    " CREATE POLICY notes_scope ON notes TO web_tenant, worker_tenant USING (tenant_id = app.current_tenant());"
)
NOTES = PROTECTED.format(null="NOT NULL", key="uuid PRIMARY KEY")

# What somebody does as the owner of the tables -> what the check says.
BY_THE_OWNER = {
    "a web process that could make somebody staff": (
        "GRANT UPDATE (is_staff) ON users TO app_common",
        "table users: gives app_common UPDATE of is_staff, which its list does not",
    ),
    "a web process that could change all of a person": (
        "GRANT UPDATE ON users TO app_common",
        "table users: gives app_common UPDATE, which its list does not",
    ),
    "a table without row-level security": (
        "CREATE TABLE notes (id uuid PRIMARY KEY, tenant_id uuid NOT NULL)",
        "table notes: has a tenant and no row-level security",
    ),
    "a table nobody has placed": (
        "CREATE TABLE notes (id uuid PRIMARY KEY)",
        "table notes: has no tenant_id and is not in the list of tenant-less tables",
    ),
    "a table in a schema of its own": (
        "CREATE SCHEMA apart; CREATE TABLE apart.notes (id uuid PRIMARY KEY, tenant_id uuid NOT NULL)",
        "table apart.notes: has a tenant and no row-level security",
    ),
    "a tenant that may be empty": (
        PROTECTED.format(null="NULL", key="uuid PRIMARY KEY"),
        "table notes: may have rows without a tenant",
    ),
    "not forced": (
        "ALTER TABLE sessions NO FORCE ROW LEVEL SECURITY",
        "table sessions: does not force row-level security on its owner",
    ),
    "switched off": (
        "ALTER TABLE sessions DISABLE ROW LEVEL SECURITY",
        "table sessions: has a tenant and no row-level security",
    ),
    "no policy for a scope": (
        "DROP POLICY sessions_scope ON sessions",
        "table sessions: has row-level security and no policy for a scope",
    ),
    "a policy that lets everything through": (
        "CREATE POLICY wide ON sessions TO web_tenant USING (true)",
        "policy wide on sessions: does not compare with the tenant in scope",
    ),
    "a policy that lets everything in": (
        "ALTER POLICY sessions_scope ON sessions WITH CHECK (true)",
        "policy sessions_scope on sessions: does not compare with the tenant in scope",
    ),
    "a policy that shows a colleague": (
        "ALTER POLICY sessions_scope ON sessions USING (tenant_id = app.current_tenant())",
        "policy sessions_scope on sessions: does not compare with the customer in scope",
    ),
    "a policy for everybody": (
        "CREATE POLICY wide ON sessions USING (tenant_id = app.current_tenant())",
        "policy wide on sessions: applies to public",
    ),
    "a policy by which staff write": (
        "CREATE POLICY wide ON sessions TO support USING (true)",
        "policy wide on sessions: lets support write",
    ),
    "a grant that needs no scope": (
        "GRANT SELECT ON sessions TO app_common",
        "table sessions: is granted to app_common, which acts without a scope (SELECT)",
    ),
    "a grant of one column that needs no scope": (
        "GRANT SELECT (title) ON sessions TO web",
        "table sessions: is granted to web, which acts without a scope (SELECT)",
    ),
    "a grant to everybody": (
        "GRANT INSERT ON ledger TO PUBLIC",
        "table ledger: is granted to PUBLIC, which acts without a scope (INSERT)",
    ),
    "a grant by which staff write": (
        "GRANT UPDATE ON sessions TO support",
        "table sessions: lets support UPDATE",
    ),
    "a definer function without a search path": (
        DEFINER.format(path=""),
        "function app.peek: is SECURITY DEFINER without a search_path",
    ),
    "a definer function of the owner": (
        DEFINER.format(path="SET search_path = pg_catalog"),
        "function app.peek: is SECURITY DEFINER owned by owner",
    ),
    "a definer function for everybody": (
        "SET LOCAL ROLE sweeper; GRANT EXECUTE ON FUNCTION app.due_sessions TO PUBLIC",
        "function app.due_sessions: may be called by PUBLIC",
    ),
    "a view with the rights of its owner": (LEAKY_VIEW, "view all_sessions: lacks security_invoker"),
    "a view that keeps what it saw": (
        "CREATE MATERIALIZED VIEW kept AS SELECT * FROM sessions WITH NO DATA",
        "view kept: is materialised, which row-level security does not bind",
    ),
    "a unique index over all tenants": (
        "CREATE UNIQUE INDEX once ON sessions (turn_owner)",
        "index once on sessions: is unique across tenants",
    ),
    "a unique index over an expression": (
        "CREATE UNIQUE INDEX once ON sessions (lower(turn_owner))",
        "index once on sessions: is unique across tenants",
    ),
    "an exclusion over all tenants": (
        "ALTER TABLE sessions ADD CONSTRAINT apart EXCLUDE (turn_id WITH =)",
        "index apart on sessions: is unique across tenants",
    ),
    "a key that counts the rows of all tenants": (
        PROTECTED.format(null="NOT NULL", key="bigint PRIMARY KEY"),
        "index notes_pkey on notes: is unique across tenants",
    ),
    "a foreign key without the tenant": (
        "ALTER TABLE ledger ADD CONSTRAINT of_session FOREIGN KEY (session) REFERENCES sessions (id)",
        "foreign key of_session on ledger: does not carry the tenant",
    ),
    "a foreign key that names the tenant and compares something else": (
        "ALTER TABLE sessions ADD UNIQUE (id, tenant_id); ALTER TABLE ledger ADD CONSTRAINT of_session"
        " FOREIGN KEY (tenant_id, session) REFERENCES sessions (id, tenant_id)",
        "foreign key of_session on ledger: does not carry the tenant",
    ),
    "a foreign key from a tenant-less table": (
        "ALTER TABLE tiers ADD session uuid CONSTRAINT of_session REFERENCES sessions (id)",
        "foreign key of_session on tiers: does not carry the tenant",
    ),
    "append-only with its trigger off": (
        "ALTER TABLE session_events DISABLE TRIGGER append_only",
        "table session_events: has its trigger append_only not always on",
    ),
    "append-only with a trigger that a replica skips": (
        "ALTER TABLE session_events ENABLE TRIGGER append_only",
        "table session_events: has its trigger append_only not always on",
    ),
    "append-only without its trigger": (
        "DROP TRIGGER append_only_truncate ON session_events",
        "table session_events: is append-only, yet has no trigger append_only_truncate",
    ),
    "append-only with a grant to change": (
        "GRANT UPDATE ON session_events TO web_tenant",
        "table session_events: is append-only, yet web_tenant may UPDATE",
    ),
    "append-only with a grant to change a column": (
        "GRANT UPDATE (payload) ON session_events TO worker_tenant",
        "table session_events: is append-only, yet worker_tenant may UPDATE",
    ),
    "append-only with a grant to delete": (
        "GRANT DELETE ON session_events TO sweeper",
        "table session_events: is append-only, yet sweeper may DELETE",
    ),
    "append-only that nobody listed": (
        f"{NOTES} CREATE TRIGGER append_only BEFORE UPDATE ON notes FOR EACH ROW"
        " EXECUTE FUNCTION app.refuse_change()",
        "table notes: has append-only triggers and is not in the list of append-only tables",
    ),
}
# What takes a superuser.
BY_A_SUPERUSER = {
    "a login that is a superuser": ("ALTER ROLE web SUPERUSER", "role web: is a superuser"),
    "a group that bypasses": ("ALTER ROLE web_tenant BYPASSRLS", "role web_tenant: has BYPASSRLS"),
    "a login that owns a table": (
        "ALTER TABLE ledger OWNER TO worker",
        "role worker: owns 1 tables; run the application as web or worker",
    ),
    "a login in its group all the time": (
        "GRANT web_tenant TO web WITH INHERIT TRUE",
        "role web: holds web_tenant without entering a scope",
    ),
    "a login that may become the owner": ("GRANT owner TO web", "role web: may act as owner"),
    "a login in the other's group": ("GRANT worker_tenant TO web", "role web: may act as worker_tenant"),
    "a group that may become a definer": ("GRANT eraser TO web_tenant", "role web_tenant: may act as eraser"),
    "a login that reads everything": (
        "GRANT pg_read_all_data TO worker",
        "role worker: may act as pg_read_all_data",
    ),
    "a stranger in a group": (
        "CREATE ROLE stranger LOGIN; GRANT web_tenant TO stranger",
        "role stranger: may act as web_tenant",
    ),
    "a role from the first moment": (
        "ALTER ROLE web SET role = 'web_tenant'",
        "role web: starts with a role of its own",
    ),
    "a tenant from the first moment": (
        "ALTER ROLE worker SET app.tenant_id = '00000000-0000-0000-0000-000000000001'",
        "role worker: starts with a app.tenant_id of its own",
    ),
}


@pytest.fixture(scope="module")
def scratch() -> Iterator[str]:
    """A database of its own, like the template."""
    name = f"{database_name()}_drift"
    services.copy_template(name)
    yield name
    with psycopg.connect(superuser_url(data_folder()), autocommit=True) as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def said(database: str, drift: str, *, by: str) -> list[str]:
    """What the check says as `web` after that change, which is then undone."""
    with psycopg.connect(superuser_url(data_folder(), database)) as admin:
        if by != "postgres":
            admin.execute(f"SET LOCAL SESSION AUTHORIZATION {by}".encode())
        admin.execute(drift.encode())
        admin.execute("SET LOCAL SESSION AUTHORIZATION web")
        found = [str(finding) for finding in findings(admin.cursor())]
        admin.rollback()
    return found


@pytest.mark.parametrize(("drift", "finding"), BY_THE_OWNER.values(), ids=BY_THE_OWNER)
def test_what_the_owner_of_the_tables_can_spoil_is_named(scratch: str, drift: str, finding: str) -> None:
    assert finding in said(scratch, drift, by="owner")


@pytest.mark.parametrize(("drift", "finding"), BY_A_SUPERUSER.values(), ids=BY_A_SUPERUSER)
def test_what_a_superuser_can_spoil_is_named(scratch: str, drift: str, finding: str) -> None:
    found = said(scratch, drift, by="postgres")
    assert any(line.startswith(finding) for line in found), found


def test_a_table_made_as_it_should_be_is_no_fault(scratch: str) -> None:
    assert said(scratch, NOTES, by="owner") == []
    assert said(scratch, LEAKY_VIEW.replace(" AS ", " WITH (security_invoker = true) AS "), by="owner") == []


# --- the command and the check at the start --------------------------------------------------------------


def check() -> tuple[str, str]:
    out, faults = StringIO(), StringIO()
    try:
        call_command("check_isolation", stdout=out, stderr=faults)
    except CommandError as error:
        return str(error), faults.getvalue()
    return out.getvalue().strip(), faults.getvalue()


@pytest.mark.parametrize("role", ["web", "worker"])
def test_the_real_database_has_no_fault(role: str) -> None:
    with connected_as(role):
        assert check() == ("check_isolation: no fault found", "")
        verify_login()


def test_a_table_without_a_policy_fails_the_check() -> None:
    name = f"{database_name()}_fault"
    services.copy_template(name)
    try:
        with connected_as("owner", database=name), connection.cursor() as cursor:
            cursor.execute("CREATE TABLE notes (id uuid PRIMARY KEY, tenant_id uuid NOT NULL)")
        with connected_as("web", database=name):
            assert check() == (
                "check_isolation: 1 faults",
                "table notes: has a tenant and no row-level security\n",
            )
    finally:
        with psycopg.connect(superuser_url(data_folder()), autocommit=True) as admin:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_on_the_login_that_owns_the_tables_nothing_starts() -> None:
    with connected_as("owner"):
        verdict, faults = check()
        assert "faults" in verdict
        assert "role owner: owns" in faults
        with pytest.raises(env.Misconfigured, match="'owner' owns tables"):
            verify_login()


def test_on_a_superuser_nothing_starts() -> None:
    with connected_as_superuser():
        verdict, faults = check()
        assert "faults" in verdict
        assert "role postgres: is a superuser" in faults
        with pytest.raises(env.Misconfigured, match="is a superuser and has BYPASSRLS"):
            verify_login()


def test_no_alias_may_have_such_a_login() -> None:
    verify_start()
    with connected_as_superuser("support"), pytest.raises(env.Misconfigured, match="is a superuser"):
        verify_start()


@pytest.mark.parametrize(
    ("power", "named"),
    [
        ("ALTER ROLE temporary BYPASSRLS", "has BYPASSRLS"),
        ("CREATE ROLE between; GRANT between TO temporary; GRANT owner TO between", "owns tables"),
        ("GRANT postgres TO temporary", "is a superuser"),
    ],
    ids=["its own", "of a role's role", "of a superuser"],
)
def test_borrowed_powers_count(power: str, named: str) -> None:
    """The roles are the whole server's, so it is asked in a transaction that is undone."""
    from memberintel.tenancy import guard

    with psycopg.connect(superuser_url(data_folder(), database_name())) as admin:
        admin.execute(f"CREATE ROLE temporary; {power}; SET LOCAL SESSION AUTHORIZATION temporary".encode())
        found: Any = admin.execute(guard._POWERS).fetchone()
        admin.rollback()
    superuser, bypass, owns = found
    assert {"has BYPASSRLS": bypass, "owns tables": owns, "is a superuser": superuser}[named]


def test_a_database_that_cannot_be_reached_is_named() -> None:
    with connected_as("web", database="nowhere"), pytest.raises(env.Misconfigured, match="DATABASE_URL_WEB"):
        verify_login()
