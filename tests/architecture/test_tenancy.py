"""Rules of tenancy that hold for all code and every model, also for those not yet written."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from celery import Task
from django.apps import apps
from django.conf import settings
from django.db import connection, models
from django.utils.module_loading import import_string

from memberintel.celery import app as queue
from memberintel.tenancy import tenantless
from memberintel.tenancy.context import Scope, scope
from memberintel.tenancy.models import PrivateModel, TenantModel
from memberintel.tenancy.operations import Protect
from memberintel.tenancy.tasks import SystemTask, TenantTask
from memberintel.vault.fields import SealedField
from tests.services import ROOT

PACKAGES = ("memberintel", "brain", "sessions", "wrapups", "evals", "tests")
PRODUCT = PACKAGES[:-1]
TABLES = [model for model in apps.get_models(include_auto_created=True) if model._meta.managed]
each_table = pytest.mark.parametrize("model", TABLES, ids=lambda model: model._meta.label)


def sources(*packages: str) -> list[Path]:
    return [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]


def table_name(model: type[models.Model]) -> str:
    return model._meta.db_table.replace('"', "")


def named(node: ast.AST) -> str:
    """The last name of a call's or an attribute's dotted path."""
    if isinstance(node, ast.Call):
        return named(node.func)
    return getattr(node, "attr", getattr(node, "id", ""))


# --- models ----------------------------------------------------------------------------------------------


@each_table
def test_every_table_is_listed_as_tenantless_or_is_customer_content(model: type[models.Model]) -> None:
    listed = table_name(model) in tenantless.TENANTLESS
    assert listed is not issubclass(model, TenantModel), (
        f"{model._meta.label}: list it or make it a TenantModel"
    )


@each_table
def test_a_model_with_a_tenant_has_the_base_for_it(model: type[models.Model]) -> None:
    columns = {field.column: field for field in model._meta.concrete_fields}
    if table_name(model) in tenantless.TENANTLESS or "tenant_id" not in columns:
        return
    assert issubclass(model, TenantModel)
    assert not columns["tenant_id"].null
    if "customer_id" in columns and not columns["customer_id"].null:
        assert issubclass(model, PrivateModel)


def protections() -> dict[str, Protect]:
    """What the migrations say of each table, by model label in lower case."""
    from django.db.migrations.loader import MigrationLoader

    return {
        f"{app}.{operation.model}".lower(): operation
        for (app, _), migration in MigrationLoader(None).disk_migrations.items()
        for operation in migration.operations
        if isinstance(operation, Protect)
    }


def test_the_migrations_protect_every_tenant_model() -> None:
    wanted = {model._meta.label_lower for model in TABLES if issubclass(model, TenantModel)}
    assert protections().keys() == wanted


def test_a_private_model_is_protected_as_private() -> None:
    found = protections()
    for model in TABLES:
        if issubclass(model, PrivateModel):
            protection = found[model._meta.label_lower]
            assert protection.private or "customer_id" in protection.policy, model._meta.label


def test_the_list_of_append_only_tables_is_that_of_the_migrations() -> None:
    append_only = {label for label, protection in protections().items() if protection.append_only}
    assert {table_name(apps.get_model(label)) for label in append_only} == tenantless.APPEND_ONLY


def test_every_listed_table_is_there_unless_its_app_is_not() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT format('%s.%s', n.nspname, c.relname) FROM pg_class c, pg_namespace n"
            " WHERE n.oid = c.relnamespace AND c.relkind = 'r'"
        )
        there = {name.removeprefix("public.") for (name,) in cursor.fetchall()}
    assert {table_name(model) for model in TABLES} <= there


@each_table
def test_what_is_shown_of_a_sealed_row_holds_no_text(model: type[models.Model]) -> None:
    """It lands in the admin's log and in error reports."""
    sealed = [field.attname for field in model._meta.fields if isinstance(field, SealedField)]
    if not sealed:
        return
    assert "__str__" in vars(model), f"{model._meta.label} needs a __str__ of its own"
    with scope(Scope(uuid4(), uuid4())):
        row = model()
    for name in sealed:
        setattr(row, name, "a customer's words")
    assert "words" not in str(row) + repr(row)


# --- tasks -----------------------------------------------------------------------------------------------


def test_every_task_carries_a_scope_or_has_none() -> None:
    queue.loader.import_default_modules()
    ours: dict[str, Task] = {
        name: task for name, task in queue.tasks.items() if not name.startswith("celery.")
    }
    assert ours
    for name, task in ours.items():
        assert isinstance(task, TenantTask | SystemTask), f"{name}: give it base=TenantTask or SystemTask"


def test_the_clock_calls_system_tasks_that_exist() -> None:
    queue.loader.import_default_modules()
    for entry in queue.conf.beat_schedule.values():
        assert isinstance(queue.tasks[entry["task"]], SystemTask)


# --- source ----------------------------------------------------------------------------------------------

# A session's context outlives its transaction, and behind a pool it is the next customer's.
SESSION_LEVEL = re.compile(
    r"""set_config\s*\([^)]*,\s*(false|'f'|'false')\s*\)
      | \bSET\s+SESSION\b
      | \bSET\s+ROLE\b
      | \bRESET\s+ROLE\b
      | \bSET\s+(?!LOCAL\b)['"]?(app\.\w+|role)\b\s*(=|TO\b)
      | \bassume_role\b""",
    re.IGNORECASE | re.VERBOSE,
)


def sqls() -> list[Path]:
    return [path for package in PRODUCT for path in sorted((ROOT / package).rglob("*.sql"))]


def test_context_is_never_set_for_a_database_session() -> None:
    for path in [*sources(*PRODUCT), *sqls()]:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not SESSION_LEVEL.search(line), f"{path.relative_to(ROOT)}:{number}"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("SELECT set_config('app.tenant_id', %s, false)", True),
        ("set role web_tenant", True),
        ("SET app.tenant_id = 'x'", True),
        ("SET SESSION AUTHORIZATION owner", True),
        ("SELECT set_config('role', %s, true)", False),
        ("SET LOCAL ROLE web_tenant", False),
        ("UPDATE x SET role_name = 1", False),
        ("INHERIT FALSE, SET TRUE", False),
    ],
)
def test_the_search_for_it_finds_it(line: str, found: bool) -> None:
    assert bool(SESSION_LEVEL.search(line)) is found


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_of_the_policy_library_only_what_declares_is_used() -> None:
    """Its context functions and middleware set the session and fail open."""
    allowed = ("django_rls.backends.postgresql", "django_rls.migration_operations", "django_rls.policies")
    for path in sources(*PACKAGES):
        used = [name for name in imports(ast.parse(path.read_text())) if name.startswith("django_rls")]
        if used:
            assert path.is_relative_to(ROOT / "memberintel" / "tenancy"), path
        for name in used:
            assert name.startswith(allowed), f"{path.relative_to(ROOT)}: {name}"
    assert not [entry for entry in settings.MIDDLEWARE if "rls" in entry]
    assert settings.DJANGO_RLS == {
        "AUTO_ENABLE_RLS": False,
        "RESET_CONTEXT_ON_CONNECT": False,
        "STRICT_MIGRATE_RLS": True,
    }


def test_a_scope_is_never_yielded_out_of() -> None:
    """A generator runs in the context of its reader, who would then act in its scope."""
    for path in sources("memberintel", "brain", "sessions", "wrapups"):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and not manages_context(function):
                for block in own_nodes(function):
                    if isinstance(block, ast.With) and any(
                        named(i.context_expr) == "scope" for i in block.items
                    ):
                        inside = [n for n in own_nodes(block) if isinstance(n, ast.Yield | ast.YieldFrom)]
                        assert not inside, f"{path.relative_to(ROOT)}:{block.lineno}"


def manages_context(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(named(d) in {"contextmanager", "asynccontextmanager"} for d in function.decorator_list)


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes inside, without those of nested functions."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from own_nodes(child)


def test_transactions_are_not_opened_for_whole_requests() -> None:
    for alias, entry in settings.DATABASES.items():
        assert import_string(f"{entry['ENGINE']}.base.DatabaseWrapper")
        assert entry["ENGINE"] == "memberintel.tenancy.backend", alias
        assert entry["ATOMIC_REQUESTS"] is False
        assert entry["CONN_MAX_AGE"] == 0
        assert entry["DISABLE_SERVER_SIDE_CURSORS"] is True
