"""The tables without tenant content, and what the runtime logins may do with them.

The one list `check_isolation` reads: a table that is neither here nor protected is a fault. After each
`migrate` the owner grants exactly this.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

READ = "SELECT"
WRITE = "SELECT, INSERT, UPDATE, DELETE"
# What web and worker may change of a person.
USER_COLUMNS = ("email", "password", "last_login", "is_active", "is_owner", "removed_at", "sign_outs")


@dataclass(frozen=True)
class Grants:
    """Privileges of app_common (web and worker, in and out of a scope), of support, and what the worker has beside."""

    common: str = READ
    support: str = READ
    worker: str = ""

    def by_role(self) -> list[tuple[str, str]]:
        """(role, its privileges), that of the backup login too."""
        return [
            ("app_common", self.common),
            ("support", self.support),
            ("worker", self.worker),
            ("backup", READ),
        ]


def privileges(listed: str) -> set[tuple[str, str]]:
    """What a list of privileges gives, as (privilege, column); the column is empty for the whole table."""
    found: set[tuple[str, str]] = set()
    for privilege, columns in re.findall(r"([A-Z]+)(?: \(([^)]*)\))?", listed):
        found |= {(privilege, column.strip()) for column in columns.split(",")}
    return found


TENANTLESS: dict[str, Grants] = {
    "tiers": Grants(READ, "SELECT, UPDATE"),
    "tier_budgets": Grants(READ, "SELECT, UPDATE"),
    "tenants": Grants("SELECT, INSERT, UPDATE"),
    # Nobody who serves makes a person staff, or somebody of another tenant: see User.save.
    "users": Grants(f"SELECT, INSERT, UPDATE ({', '.join(USER_COLUMNS)})", "SELECT, INSERT, UPDATE"),
    "users_groups": Grants(READ, WRITE),
    "users_user_permissions": Grants(READ, WRITE),
    "auth_group": Grants(READ, WRITE),
    "auth_group_permissions": Grants(READ, WRITE),
    "auth_permission": Grants(READ, READ),
    "django_content_type": Grants(READ, READ),
    "django_migrations": Grants(READ, READ),
    "django_session": Grants(WRITE, WRITE),
    "django_admin_log": Grants("SELECT, INSERT, UPDATE (object_repr)", "SELECT, INSERT"),
    "account_emailaddress": Grants(WRITE, READ),
    "account_emailconfirmation": Grants(WRITE, READ),
    "mfa_authenticator": Grants(WRITE, ""),
    "monthly_reports": Grants(READ, READ, "INSERT, UPDATE"),
    "knowledge": Grants(READ, WRITE, "UPDATE (vector, embedder, changed_at)"),
    "knowledge_drafts": Grants("", WRITE),
    "erasures": Grants("SELECT, INSERT, UPDATE", READ),
    "runs": Grants("SELECT, INSERT, UPDATE", READ),
    "unopened": Grants("SELECT, INSERT, UPDATE", READ),
    "legal_reviews": Grants(READ, "SELECT, INSERT, UPDATE (running, ended_at)"),
    "external_deletions": Grants("SELECT, INSERT, UPDATE, DELETE", READ),
    "vault.keks": Grants("SELECT, INSERT", ""),
}

# Tables whose rows are added and never changed; only `eraser` deletes. Their migrations Protect them so.
APPEND_ONLY = frozenset({"session_events", "document_versions", "audit"})


def grant_tenantless(sender: Any, using: str, **kwargs: Any) -> None:
    """After `migrate`: give each what the list says, and backup a look. Runs as the owner."""
    from django.db import connections, transaction

    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        cursor.execute("SELECT session_user")
        if cursor.fetchone() != ("owner",):
            return
        for table, grants in TENANTLESS.items():
            cursor.execute("SELECT to_regclass(%s)", [table])
            if cursor.fetchone() == (None,):
                continue
            cursor.execute(
                f"REVOKE ALL ON {table} FROM app_common, support, worker"
            )  # what an earlier list gave
            for who, what in grants.by_role():
                if what and not (who == "backup" and table.startswith("vault.")):
                    cursor.execute(f"GRANT {what} ON {table} TO {who}")
        cursor.execute("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO app_common, support")
        cursor.execute("GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO backup")
