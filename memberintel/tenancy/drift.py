"""What in the database's catalogue would let one tenant reach another's rows.

Reads only system catalogues, as whichever login the process has; finds nothing in a healthy database.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memberintel.tenancy.roles import DEFINERS
from memberintel.tenancy.tenantless import TENANTLESS

SCOPED = frozenset({"web_tenant", "worker_tenant"})
ACROSS = frozenset({"owner", "support", "backup", *DEFINERS})
OURS = ("public", "app", "vault")


@dataclass(frozen=True)
class Finding:
    """One fault: the object and what is wrong with it, in words."""

    subject: str
    fault: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.fault}"


def findings(cursor: Any) -> list[Finding]:
    """Every drift from the tenancy rules, in a stable order."""
    checks = (_login, _tables, _policies, _grants, _definers, _views, _uniques, _foreign_keys, _append_only)
    return [finding for check in checks for finding in check(cursor)]


def _rows(cursor: Any, sql: str) -> list[tuple[Any, ...]]:
    cursor.execute(sql, {"schemas": list(OURS)})
    rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _name(schema: str, table: str) -> str:
    return table if schema == "public" else f"{schema}.{table}"


def _login(cursor: Any) -> Iterator[Finding]:
    for login, superuser, bypass in _rows(
        cursor,
        "SELECT rolname, rolsuper, rolbypassrls FROM pg_catalog.pg_roles WHERE rolname = session_user OR"
        " rolname IN ('owner','web','worker','support','backup','web_tenant','worker_tenant','app_common',"
        "'searcher','sweeper','eraser') ORDER BY 1",
    ):
        if superuser:
            yield Finding(f"role {login}", "is a superuser, which row-level security does not bind")
        if bypass:
            yield Finding(f"role {login}", "has BYPASSRLS")
    for login, owned in _rows(
        cursor,
        "SELECT o.rolname, count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
        " ON n.oid = c.relnamespace JOIN pg_catalog.pg_roles o ON o.oid = c.relowner WHERE c.relkind IN"
        " ('r','p','v','m') AND n.nspname = ANY(%(schemas)s) AND (o.rolname <> 'owner' OR"
        " o.rolname = session_user) GROUP BY 1 ORDER BY 1",
    ):
        yield Finding(f"role {login}", f"owns {owned} tables; run the application as web or worker")


def _tables(cursor: Any) -> Iterator[Finding]:
    for schema, table, tenant, enabled, forced in _rows(
        cursor,
        """SELECT n.nspname, c.relname,
                  EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid
                          AND a.attname = 'tenant_id' AND NOT a.attisdropped),
                  c.relrowsecurity, c.relforcerowsecurity
           FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
           WHERE c.relkind IN ('r', 'p') AND n.nspname = ANY(%(schemas)s) ORDER BY 1, 2""",
    ):
        name = _name(schema, table)
        if name in TENANTLESS:
            continue
        if not tenant:
            yield Finding(f"table {name}", "has no tenant_id and is not in the list of tenant-less tables")
        elif not enabled:
            yield Finding(f"table {name}", "has a tenant and no row-level security")
        elif not forced:
            yield Finding(f"table {name}", "does not force row-level security on its owner")


def _policies(cursor: Any) -> Iterator[Finding]:
    protected: set[str] = set()
    for schema, table, policy, roles, rule, check in _rows(
        cursor,
        "SELECT schemaname, tablename, policyname, roles::text[], coalesce(qual, ''), coalesce(with_check, '')"
        " FROM pg_catalog.pg_policies WHERE schemaname = ANY(%(schemas)s) ORDER BY 1, 2, 3",
    ):
        name = _name(schema, table)
        if set(roles) <= SCOPED:
            protected.add(name)
            if "current_tenant()" not in rule or "current_tenant()" not in (check or rule):
                yield Finding(f"policy {policy} on {name}", "does not compare with the tenant in scope")
        elif not set(roles) <= ACROSS:
            yield Finding(f"policy {policy} on {name}", f"applies to {', '.join(sorted(roles))}")
    for schema, table in _rows(
        cursor,
        "SELECT n.nspname, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
        " ON n.oid = c.relnamespace WHERE c.relrowsecurity AND n.nspname = ANY(%(schemas)s) ORDER BY 1, 2",
    ):
        if _name(schema, table) not in protected:
            yield Finding(f"table {_name(schema, table)}", "has row-level security and no policy for a scope")


def _grants(cursor: Any) -> Iterator[Finding]:
    loose = ("PUBLIC", "web", "worker", "app_common")
    for schema, table, grantee in _rows(
        cursor,
        """SELECT DISTINCT n.nspname, c.relname, coalesce(r.rolname, 'PUBLIC')
           FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
           CROSS JOIN LATERAL aclexplode(c.relacl) a LEFT JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
           WHERE c.relkind IN ('r', 'p', 'v', 'm') AND n.nspname = ANY(%(schemas)s) ORDER BY 1, 2, 3""",
    ):
        name = _name(schema, table)
        if name not in TENANTLESS and grantee in loose:
            yield Finding(f"table {name}", f"is granted to {grantee}, which acts without a scope")
    for role, member in _rows(
        cursor,
        """SELECT r.rolname, m.rolname FROM pg_catalog.pg_auth_members am
           JOIN pg_catalog.pg_roles r ON r.oid = am.roleid JOIN pg_catalog.pg_roles m ON m.oid = am.member
           WHERE (am.inherit_option AND r.rolname IN ('web_tenant', 'worker_tenant'))
              OR (r.rolname IN ('owner', 'searcher', 'sweeper', 'eraser') AND m.rolname <> 'owner'
                  AND NOT m.rolsuper)
           ORDER BY 1, 2""",
    ):
        yield Finding(f"role {member}", f"holds {role} without entering a scope")


def _definers(cursor: Any) -> Iterator[Finding]:
    for schema, function, owner, path, public in _rows(
        cursor,
        """SELECT n.nspname, p.proname, o.rolname, coalesce(p.proconfig::text, '') LIKE '%%search_path=%%',
                  EXISTS (SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
                          WHERE a.grantee = 0)
           FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
           JOIN pg_catalog.pg_roles o ON o.oid = p.proowner
           WHERE p.prosecdef AND n.nspname = ANY(%(schemas)s) ORDER BY 1, 2""",
    ):
        subject = f"function {schema}.{function}"
        if not path:
            yield Finding(subject, "is SECURITY DEFINER without a search_path")
        if owner not in DEFINERS:
            yield Finding(subject, f"is SECURITY DEFINER owned by {owner}")
        if public:
            yield Finding(subject, "may be called by PUBLIC")


def _views(cursor: Any) -> Iterator[Finding]:
    for schema, view, kind, options in _rows(
        cursor,
        "SELECT n.nspname, c.relname, c.relkind::text, coalesce(c.reloptions::text, '') FROM pg_catalog.pg_class c"
        " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('v', 'm')"
        " AND n.nspname = ANY(%(schemas)s) ORDER BY 1, 2",
    ):
        if kind == "m":
            yield Finding(
                f"view {_name(schema, view)}", "is materialised, which row-level security does not bind"
            )
        elif "security_invoker=true" not in options and "security_invoker=on" not in options:
            yield Finding(f"view {_name(schema, view)}", "lacks security_invoker")


def _uniques(cursor: Any) -> Iterator[Finding]:
    """A unique index over tenants answers "does it exist" to anybody, unless its values cannot be guessed."""
    for schema, table, index, first, columns, only_uuids in _rows(
        cursor,
        """SELECT n.nspname, c.relname, i.relname, a.attname,
                  (SELECT array_agg(k.attname::text ORDER BY k.attnum) FROM pg_catalog.pg_attribute k
                   WHERE k.attrelid = i.oid),
                  a.atttypid = 'uuid'::regtype
           FROM pg_catalog.pg_index x
           JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid JOIN pg_catalog.pg_class c ON c.oid = x.indrelid
           JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
           LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = x.indkey[0]
           WHERE x.indisunique AND n.nspname = ANY(%(schemas)s) AND c.relkind IN ('r', 'p') ORDER BY 1, 2, 3""",
    ):
        name = _name(schema, table)
        random_key = only_uuids and columns in (["id"], ["session_id", "seq"])
        if name not in TENANTLESS and first != "tenant_id" and not random_key:
            yield Finding(f"index {index} on {name}", "is unique across tenants")


def _foreign_keys(cursor: Any) -> Iterator[Finding]:
    for schema, table, key, target_schema, target, columns in _rows(
        cursor,
        """SELECT n.nspname, c.relname, k.conname, tn.nspname, t.relname,
                  (SELECT array_agg(a.attname::text) FROM pg_catalog.pg_attribute a
                   WHERE a.attrelid = c.oid AND a.attnum = ANY(k.conkey))
           FROM pg_catalog.pg_constraint k
           JOIN pg_catalog.pg_class c ON c.oid = k.conrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
           JOIN pg_catalog.pg_class t ON t.oid = k.confrelid JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace
           WHERE k.contype = 'f' AND n.nspname = ANY(%(schemas)s) ORDER BY 1, 2, 3""",
    ):
        into_tenant_table = _name(target_schema, target) not in TENANTLESS
        if _name(schema, table) not in TENANTLESS and into_tenant_table and "tenant_id" not in columns:
            yield Finding(f"foreign key {key} on {_name(schema, table)}", "does not carry the tenant")


def _append_only(cursor: Any) -> Iterator[Finding]:
    for schema, table, trigger, enabled in _rows(
        cursor,
        "SELECT n.nspname, c.relname, g.tgname, g.tgenabled::text FROM pg_catalog.pg_trigger g"
        " JOIN pg_catalog.pg_class c ON c.oid = g.tgrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
        " WHERE g.tgname LIKE 'append\\_only%%' AND n.nspname = ANY(%(schemas)s) ORDER BY 1, 2, 3",
    ):
        if enabled != "A":
            yield Finding(f"table {_name(schema, table)}", f"has its trigger {trigger} not always on")
    for schema, table, grantee, privilege in _rows(
        cursor,
        """SELECT n.nspname, c.relname, coalesce(r.rolname, 'PUBLIC'), a.privilege_type
           FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
           CROSS JOIN LATERAL aclexplode(c.relacl) a LEFT JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
           WHERE EXISTS (SELECT FROM pg_catalog.pg_trigger g WHERE g.tgrelid = c.oid AND g.tgname = 'append_only')
             AND a.privilege_type IN ('UPDATE', 'DELETE', 'TRUNCATE') AND n.nspname = ANY(%(schemas)s)
             AND coalesce(r.rolname, 'PUBLIC') NOT IN ('owner', 'eraser') ORDER BY 1, 2, 3, 4""",
    ):
        yield Finding(f"table {_name(schema, table)}", f"is append-only, yet {grantee} may {privilege}")
