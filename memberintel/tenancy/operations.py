"""Migration operations that put a table, a function or a key under the tenancy rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.migrations.operations.base import Operation
from django_rls.migration_operations import CreatePolicy, EnableRLS
from django_rls.policies import CustomPolicy

TENANT = "tenant_id = (SELECT app.current_tenant())"
PRIVATE = f"{TENANT} AND customer_id = (SELECT app.current_customer())"
# For rows that may belong to the tenant as a whole: the scope's customer, or NULL. It asks for the tenant too,
# since the planner may look at this half of a rule first, and a scope without ids must be refused by either.
CUSTOMER_OR_NONE = (
    "(SELECT nullif(current_setting('app.customer_id', true), '')::uuid"
    " WHERE app.current_tenant() IS NOT NULL)"
)
EVERYTHING = "true"
# Keyed on the login, not on the current role: a definer function owned by `owner` must see nothing.
AS_OWNER = "session_user = 'owner'"


class _Forward(Operation):
    """An operation that changes the database and not the model state."""

    reduces_to_sql = False
    reversible = False

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Nothing: tables stay as the models say."""


class Protect(_Forward):
    """Row-level security for one table: enable, force, policies, grants, keys to tenants and users.

    `private` binds rows to the customer too. `web` and `worker` are the privileges of their group roles,
    `definers` those of a definer role (which sees every row), `append_only` refuses UPDATE, DELETE and
    TRUNCATE to everybody (DELETE only as `eraser`), `referenced` adds the key other tenant tables point to,
    `policy` replaces the rule for a scope, `keys=False` leaves the keys to the table's own migration, `staff` are
    the logins that may read across tenants.
    """

    def __init__(
        self,
        model: str,
        *,
        private: bool = True,
        web: str = "SELECT, INSERT, UPDATE, DELETE",
        worker: str = "SELECT, INSERT, UPDATE, DELETE",
        definers: Mapping[str, str] | None = None,
        append_only: bool = False,
        referenced: bool = False,
        policy: str = "",
        keys: bool = True,
        staff: Sequence[str] = ("support", "backup"),
    ) -> None:
        self.model, self.private, self.web, self.worker = model, private, web, worker
        self.definers, self.append_only, self.referenced = dict(definers or {}), append_only, referenced
        self.policy, self.keys, self.staff = policy, keys, tuple(staff)

    def describe(self) -> str:
        return f"Protect {self.model} by row-level security"

    def database_forwards(self, app_label: str, editor: Any, from_state: Any, to_state: Any) -> None:
        model = to_state.apps.get_model(app_label, self.model)
        table = editor.quote_name(model._meta.db_table)
        EnableRLS(self.model).database_forwards(app_label, editor, from_state, to_state)
        editor.force_rls(model)
        for policy in self._policies(model._meta.db_table.replace('"', "").replace(".", "_")):
            CreatePolicy(self.model, policy).database_forwards(app_label, editor, from_state, to_state)
        for statement in (*self._grants(table), *self._keys(table, model), *self._triggers(table)):
            editor.execute(statement)

    def _policies(self, name: str) -> list[Any]:
        rule = self.policy or (PRIVATE if self.private else TENANT)
        policies = [
            CustomPolicy(f"{name}_scope", rule, roles="web_tenant, worker_tenant"),
            CustomPolicy(f"{name}_owner", AS_OWNER, roles="owner"),
        ]
        policies += [
            CustomPolicy(f"{name}_{who}", EVERYTHING, roles=who, operation="SELECT") for who in self.staff
        ]
        policies += [CustomPolicy(f"{name}_{who}", EVERYTHING, roles=who) for who in self.definers]
        return policies

    def _grants(self, table: str) -> list[str]:
        grants = {"web_tenant": self.web, "worker_tenant": self.worker, **self.definers}
        grants |= dict.fromkeys(self.staff, "SELECT")
        return [f"GRANT {what} ON {table} TO {who}" for who, what in grants.items() if what]

    def _keys(self, table: str, model: Any) -> list[str]:
        fields = {field.column for field in model._meta.fields}
        if not self.keys:
            return []
        keys = [f"ALTER TABLE {table} ADD FOREIGN KEY (tenant_id) REFERENCES tenants (id)"]
        if "customer_id" in fields:
            keys = [
                f"ALTER TABLE {table} ADD FOREIGN KEY (tenant_id, customer_id) REFERENCES users (tenant_id, id)",
                *(keys if model._meta.get_field("customer_id").null else []),
            ]
        if self.referenced:
            owner = "tenant_id, customer_id" if self.private else "tenant_id"
            keys.append(f"ALTER TABLE {table} ADD UNIQUE ({owner}, id)")
        return keys

    def _triggers(self, table: str) -> list[str]:
        if not self.append_only:
            return []
        return [
            f"CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {table}"
            " FOR EACH ROW EXECUTE FUNCTION app.refuse_change()",
            f"CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON {table}"
            " FOR EACH STATEMENT EXECUTE FUNCTION app.refuse_change()",
            f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER append_only",
            f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER append_only_truncate",
        ]


class LetDefinerIn(_Forward):
    """A policy and privileges for the functions of a definer role, on a table that was protected before."""

    def __init__(self, model: str, role: str, privileges: str) -> None:
        self.model, self.role, self.privileges = model, role, privileges

    def describe(self) -> str:
        return f"Let functions of {self.role} reach {self.model}"

    def database_forwards(self, app_label: str, editor: Any, from_state: Any, to_state: Any) -> None:
        table = to_state.apps.get_model(app_label, self.model)._meta.db_table
        policy = CustomPolicy(f"{table}_{self.role}", EVERYTHING, roles=self.role)
        CreatePolicy(self.model, policy).database_forwards(app_label, editor, from_state, to_state)
        editor.execute(f"GRANT {self.privileges} ON {editor.quote_name(table)} TO {self.role}")


class TenantForeignKey(_Forward):
    """A composite key (tenant_id, customer_id, column) to a private table protected with `referenced`.

    Composite, because foreign-key checks bypass row-level security and would otherwise tell one tenant that
    another's row exists. With `private=False` between tables of the tenant: (tenant_id, column).
    """

    def __init__(self, model: str, column: str, references: str, *, private: bool = True) -> None:
        self.model, self.column, self.references, self.private = model, column, references, private

    def describe(self) -> str:
        return f"Tie {self.model}.{self.column} to {self.references} inside the tenant"

    def database_forwards(self, app_label: str, editor: Any, from_state: Any, to_state: Any) -> None:
        table = editor.quote_name(to_state.apps.get_model(app_label, self.model)._meta.db_table)
        owner = "tenant_id, customer_id" if self.private else "tenant_id"
        editor.execute(
            f"ALTER TABLE {table} ADD FOREIGN KEY ({owner}, {self.column})"
            f" REFERENCES {self.references} ({owner}, id)"
        )


class Function(_Forward):
    """A function in schema `app`, given as `name(argument types)` and its CREATE statement.

    With `owner` it is handed to that definer role. `execute` lists who may call it. Rights are set before the
    ownership: afterwards the migrating login could not.
    """

    def __init__(self, signature: str, sql: str, *, execute: Sequence[str] = (), owner: str = "") -> None:
        self.signature, self.sql, self.execute, self.owner = signature, sql, tuple(execute), owner

    def describe(self) -> str:
        return f"Create function app.{self.signature}"

    def database_forwards(self, app_label: str, editor: Any, from_state: Any, to_state: Any) -> None:
        if self.owner and "search_path" not in self.sql:
            raise ValueError(f"definer function {self.signature} must set its search_path")
        editor.execute(self.sql, params=None)
        name = f"FUNCTION app.{self.signature}"
        editor.execute(f"REVOKE ALL ON {name} FROM PUBLIC")
        for who in self.execute:
            editor.execute(f"GRANT EXECUTE ON {name} TO {who}")
        if self.owner:
            editor.execute(f"GRANT CREATE ON SCHEMA app TO {self.owner}")
            editor.execute(f"ALTER {name} OWNER TO {self.owner}")
            editor.execute(f"REVOKE CREATE ON SCHEMA app FROM {self.owner}")


class ReplacedFunction(_Forward):
    """Another body for a function that belongs to a definer role, given as a CREATE OR REPLACE statement.

    Who may call it stays as it was. Replacing takes ownership, which the migrating login has only as that role.
    """

    def __init__(self, signature: str, sql: str, *, owner: str) -> None:
        self.signature, self.sql, self.owner = signature, sql, owner

    def describe(self) -> str:
        return f"Replace function app.{self.signature}"

    def database_forwards(self, app_label: str, editor: Any, from_state: Any, to_state: Any) -> None:
        if "search_path" not in self.sql:
            raise ValueError(f"definer function {self.signature} must set its search_path")
        editor.execute(f"GRANT CREATE ON SCHEMA app TO {self.owner}")
        editor.execute(f"SET LOCAL ROLE {self.owner}")
        editor.execute(self.sql, params=None)
        editor.execute("SET LOCAL ROLE NONE")
        editor.execute(f"REVOKE CREATE ON SCHEMA app FROM {self.owner}")
