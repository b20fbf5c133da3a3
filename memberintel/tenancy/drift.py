"""What in the database's catalogue would let one tenant reach another's rows.

Reads only system catalogues, as whichever login the process has; finds nothing in a healthy database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from memberintel.tenancy.roles import DEFINERS, GROUPS, LOGINS
from memberintel.tenancy.tenantless import APPEND_ONLY, TENANTLESS, privileges

SCOPED = frozenset({"web_tenant", "worker_tenant"})
READERS = frozenset({"support", "backup"})
ACROSS = frozenset({"owner", *READERS, *DEFINERS})
# Who may become or inherit whom; nothing else.
MEMBERS = frozenset(
    {(login, "app_common") for login in ("web", "worker", *SCOPED)}
    | {("web", "web_tenant"), ("worker", "worker_tenant")}
    | {("owner", definer) for definer in DEFINERS}
)

type Ask = Callable[[str], list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Finding:
    """One fault: the object and what is wrong with it, in words."""

    subject: str
    fault: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.fault}"


def findings(cursor: Any) -> list[Finding]:
    """Every drift from the tenancy rules, in a stable order."""
    cursor.execute(
        "SELECT array_agg(nspname::text) FROM pg_catalog.pg_namespace"
        " WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"
    )
    parameters = {"schemas": cursor.fetchone()[0], "ours": [*LOGINS, *GROUPS, *DEFINERS]}

    def ask(sql: str) -> list[tuple[Any, ...]]:
        cursor.execute(sql, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows

    checks = (
        *(_login, _members, _defaults, _tables, _policies, _grants, _listed_grants),
        *(_definers, _views, _uniques, _foreign_keys, _append_only),
    )
    return [finding for check in checks for finding in check(ask)]


def _name(schema: str, table: str) -> str:
    return table if schema == "public" else f"{schema}.{table}"


def _login(ask: Ask) -> Iterator[Finding]:
    for login, superuser, bypass in ask(
        "SELECT rolname, rolsuper, rolbypassrls FROM pg_catalog.pg_roles WHERE rolname = session_user OR"
        " rolname = ANY(%(ours)s) ORDER BY 1",
    ):
        if superuser:
            yield Finding(f"role {login}", "is a superuser, which row-level security does not bind")
        if bypass:
            yield Finding(f"role {login}", "has BYPASSRLS")
    for login, owned in ask(
        "SELECT o.rolname, count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
        " ON n.oid = c.relnamespace JOIN pg_catalog.pg_roles o ON o.oid = c.relowner WHERE c.relkind IN"
        " ('r','p','v','m') AND n.nspname = ANY(%(schemas)s) AND (o.rolname <> 'owner' OR"
        " o.rolname = session_user) GROUP BY 1 ORDER BY 1",
    ):
        yield Finding(f"role {login}", f"owns {owned} tables; run the application as web or worker")


def _members(ask: Ask) -> Iterator[Finding]:
    for member, role, inherits in ask(
        """SELECT m.rolname::text, r.rolname::text, am.inherit_option FROM pg_catalog.pg_auth_members am
           JOIN pg_catalog.pg_roles r ON r.oid = am.roleid JOIN pg_catalog.pg_roles m ON m.oid = am.member
           WHERE (m.rolname = ANY(%(ours)s) OR r.rolname = ANY(%(ours)s)) AND NOT m.rolsuper
             AND (am.inherit_option OR am.set_option) ORDER BY 1, 2""",
    ):
        if (member, role) not in MEMBERS:
            yield Finding(f"role {member}", f"may act as {role}")
        elif inherits and role in SCOPED | set(DEFINERS):
            yield Finding(f"role {member}", f"holds {role} without entering a scope")


def _defaults(ask: Ask) -> Iterator[Finding]:
    """Settings that would stand before any scope is entered."""
    for who, setting in ask(
        """SELECT coalesce(r.rolname::text, 'every role'), split_part(s.setting, '=', 1)
           FROM pg_catalog.pg_db_role_setting d LEFT JOIN pg_catalog.pg_roles r ON r.oid = d.setrole
           CROSS JOIN LATERAL unnest(d.setconfig) AS s (setting)
           WHERE (d.setrole = 0 OR r.rolname = ANY(%(ours)s) OR r.rolname = session_user)
             AND (d.setdatabase = 0 OR d.setdatabase = (SELECT oid FROM pg_catalog.pg_database
                                                        WHERE datname = current_database()))
             AND (s.setting LIKE 'app.%%' OR split_part(s.setting, '=', 1) IN ('role', 'row_security'))
           ORDER BY 1, 2""",
    ):
        yield Finding(f"role {who}", f"starts with a {setting} of its own")


def _tables(ask: Ask) -> Iterator[Finding]:
    for schema, table, tenant, required, enabled, forced in ask(
        """SELECT n.nspname, c.relname, a.attnum IS NOT NULL, a.attnotnull, c.relrowsecurity, c.relforcerowsecurity
           FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
           LEFT JOIN pg_catalog.pg_attribute a
             ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
           WHERE c.relkind IN ('r', 'p', 'f') AND n.nspname = ANY(%(schemas)s) AND NOT EXISTS
             (SELECT FROM pg_catalog.pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e') ORDER BY 1, 2""",
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
        elif not required:
            yield Finding(f"table {name}", "may have rows without a tenant")


def _policies(ask: Ask) -> Iterator[Finding]:
    protected: set[str] = set()
    for schema, table, policy, roles, command, rule, check, private in ask(
        """SELECT p.schemaname, p.tablename, p.policyname, p.roles::text[], p.cmd,
                  coalesce(p.qual, p.with_check), coalesce(p.with_check, p.qual),
                  EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attname = 'customer_id'
                          AND a.attrelid = format('%%I.%%I', p.schemaname, p.tablename)::regclass)
           FROM pg_catalog.pg_policies p WHERE p.schemaname = ANY(%(schemas)s) ORDER BY 1, 2, 3""",
    ):
        name = _name(schema, table)
        subject = f"policy {policy} on {name}"
        if set(roles) <= SCOPED:
            protected.add(name)
            if not all("current_tenant()" in part for part in (rule, check)):
                yield Finding(subject, "does not compare with the tenant in scope")
            if private and not all("customer_id" in part for part in (rule, check)):
                yield Finding(subject, "does not compare with the customer in scope")
        elif not set(roles) <= ACROSS:
            yield Finding(subject, f"applies to {', '.join(sorted(roles))}")
        elif set(roles) & READERS and command != "SELECT":
            yield Finding(subject, f"lets {', '.join(sorted(roles))} write")
    for schema, table in ask(
        "SELECT n.nspname, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
        " ON n.oid = c.relnamespace WHERE c.relrowsecurity AND n.nspname = ANY(%(schemas)s) ORDER BY 1, 2",
    ):
        if _name(schema, table) not in protected:
            yield Finding(f"table {_name(schema, table)}", "has row-level security and no policy for a scope")


def _grants(ask: Ask) -> Iterator[Finding]:
    """On tables and on single columns."""
    for schema, table, grantee, privilege in ask(
        """SELECT DISTINCT n.nspname, c.relname, coalesce(r.rolname::text, 'PUBLIC'), x.privilege_type
           FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
           CROSS JOIN LATERAL (
             SELECT a.grantee, a.privilege_type FROM aclexplode(c.relacl) a
             UNION ALL
             SELECT a.grantee, a.privilege_type FROM pg_catalog.pg_attribute k, aclexplode(k.attacl) a
             WHERE k.attrelid = c.oid AND NOT k.attisdropped) x
           LEFT JOIN pg_catalog.pg_roles r ON r.oid = x.grantee
           WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname = ANY(%(schemas)s) ORDER BY 1, 2, 3, 4""",
    ):
        name = _name(schema, table)
        if name in TENANTLESS:
            continue
        if grantee not in SCOPED | ACROSS:
            yield Finding(
                f"table {name}", f"is granted to {grantee}, which acts without a scope ({privilege})"
            )
        elif grantee in READERS and privilege != "SELECT":
            yield Finding(f"table {name}", f"lets {grantee} {privilege}")
        elif name in APPEND_ONLY and _breaks_append_only(grantee, privilege):
            yield Finding(f"table {name}", f"is append-only, yet {grantee} may {privilege}")


def _listed_grants(ask: Ask) -> Iterator[Finding]:
    """On the tables without tenants, more than their list gives."""
    for schema, table, column, grantee, privilege in ask(
        """SELECT n.nspname, c.relname, x.attname, coalesce(r.rolname::text, 'PUBLIC'), x.privilege_type
           FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
           CROSS JOIN LATERAL (
             SELECT '' AS attname, a.grantee, a.privilege_type FROM aclexplode(c.relacl) a
             UNION ALL
             SELECT k.attname, a.grantee, a.privilege_type FROM pg_catalog.pg_attribute k, aclexplode(k.attacl) a
             WHERE k.attrelid = c.oid AND NOT k.attisdropped) x
           LEFT JOIN pg_catalog.pg_roles r ON r.oid = x.grantee
           WHERE c.relkind IN ('r', 'p') AND n.nspname = ANY(%(schemas)s) ORDER BY 1, 2, 4, 5, 3""",
    ):
        name = _name(schema, table)
        if name not in TENANTLESS or grantee in ("owner", *DEFINERS):
            continue
        grants = TENANTLESS[name]
        listed = dict(grants.by_role()).get(grantee, "")
        if not {(privilege, column), (privilege, "")} & privileges(listed):
            where = f" of {column}" if column else ""
            yield Finding(f"table {name}", f"gives {grantee} {privilege}{where}, which its list does not")


def _breaks_append_only(grantee: str, privilege: str) -> bool:
    if grantee == "owner":
        return False  # owns the table; the triggers stop it
    return privilege in {"UPDATE", "TRUNCATE"} or (privilege == "DELETE" and grantee != "eraser")


def _definers(ask: Ask) -> Iterator[Finding]:
    for schema, function, owner, path, public in ask(
        """SELECT n.nspname, p.proname, o.rolname, coalesce(p.proconfig::text, '') LIKE '%%search_path=%%',
                  EXISTS (SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
                          WHERE a.grantee = 0)
           FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
           JOIN pg_catalog.pg_roles o ON o.oid = p.proowner
           WHERE p.prosecdef AND n.nspname = ANY(%(schemas)s) AND NOT EXISTS
             (SELECT FROM pg_catalog.pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e') ORDER BY 1, 2""",
    ):
        subject = f"function {schema}.{function}"
        if not path:
            yield Finding(subject, "is SECURITY DEFINER without a search_path")
        if owner not in DEFINERS:
            yield Finding(subject, f"is SECURITY DEFINER owned by {owner}")
        if public:
            yield Finding(subject, "may be called by PUBLIC")


def _views(ask: Ask) -> Iterator[Finding]:
    for schema, view, kind, options in ask(
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


def _uniques(ask: Ask) -> Iterator[Finding]:
    """A unique index over tenants answers "does it exist" to anybody, unless its values cannot be guessed."""
    for schema, table, index, first, columns, only_uuids in ask(
        """SELECT n.nspname, c.relname, i.relname, a.attname,
                  (SELECT array_agg(k.attname::text ORDER BY k.attnum) FROM pg_catalog.pg_attribute k
                   WHERE k.attrelid = i.oid),
                  a.atttypid = 'uuid'::regtype
           FROM pg_catalog.pg_index x
           JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid JOIN pg_catalog.pg_class c ON c.oid = x.indrelid
           JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
           LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = x.indkey[0]
           WHERE (x.indisunique OR x.indisexclusion) AND n.nspname = ANY(%(schemas)s) AND c.relkind IN ('r', 'p')
           ORDER BY 1, 2, 3""",
    ):
        name = _name(schema, table)
        random_key = only_uuids and columns in (["id"], ["session_id", "seq"])
        if name not in TENANTLESS and first != "tenant_id" and not random_key:
            yield Finding(f"index {index} on {name}", "is unique across tenants")


def _foreign_keys(ask: Ask) -> Iterator[Finding]:
    for schema, table, key, target_schema, target in ask(
        """SELECT n.nspname, c.relname, k.conname, tn.nspname, t.relname
           FROM pg_catalog.pg_constraint k
           JOIN pg_catalog.pg_class c ON c.oid = k.conrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
           JOIN pg_catalog.pg_class t ON t.oid = k.confrelid JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace
           WHERE k.contype = 'f' AND n.nspname = ANY(%(schemas)s) AND NOT EXISTS
             (SELECT FROM generate_subscripts(k.conkey, 1) AS i
              JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.conkey[i]
              JOIN pg_catalog.pg_attribute b ON b.attrelid = t.oid AND b.attnum = k.confkey[i]
              WHERE a.attname = 'tenant_id' AND b.attname = 'tenant_id') ORDER BY 1, 2, 3""",
    ):
        if _name(target_schema, target) not in TENANTLESS:
            yield Finding(f"foreign key {key} on {_name(schema, table)}", "does not carry the tenant")


def _append_only(ask: Ask) -> Iterator[Finding]:
    """Triggers refuse what privileges might come to allow; `A`: also while a replica is loaded."""
    found: dict[str, set[str]] = {}
    for schema, table, trigger, enabled in ask(
        "SELECT n.nspname, c.relname, g.tgname, g.tgenabled::text FROM pg_catalog.pg_trigger g"
        " JOIN pg_catalog.pg_class c ON c.oid = g.tgrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
        " WHERE g.tgname IN ('append_only', 'append_only_truncate') AND n.nspname = ANY(%(schemas)s)"
        " ORDER BY 1, 2, 3",
    ):
        name = _name(schema, table)
        found.setdefault(name, set()).add(trigger)
        if enabled != "A":
            yield Finding(f"table {name}", f"has its trigger {trigger} not always on")
    for name in sorted(APPEND_ONLY):
        for trigger in sorted({"append_only", "append_only_truncate"} - found.get(name, set())):
            yield Finding(f"table {name}", f"is append-only, yet has no trigger {trigger}")
    for name in sorted(found.keys() - APPEND_ONLY):
        yield Finding(
            f"table {name}", "has append-only triggers and is not in the list of append-only tables"
        )
