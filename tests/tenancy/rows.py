"""A row of every tenant table, made from the fields of its model: a new table is tested without being named."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import date, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.apps import apps
from django.db import connection, models

from memberintel.lib import clock
from memberintel.tenancy.context import current_customer_id, scope
from memberintel.tenancy.models import TenantModel
from memberintel.vault import keyring
from memberintel.vault.fields import SealedField, SealedJSON
from memberintel.vault.models import DataKey
from tests.conftest import Person

# What the type of a field cannot tell: values that constraints ask for, or functions that make one.
MORE: dict[str, dict[str, Any]] = {
    # One a month for a tenant, and two of the cast are colleagues.
    "usage.ChargeCounter": {"month": lambda: date(2000, 1, 1) + timedelta(days=uuid4().int % 9_000)},
    "usage.TenantMonth": {"month": lambda: date(2000, 1, 1) + timedelta(days=uuid4().int % 9_000)},
    "usage.LedgerEntry": {"outcome": "complete"},
    "brain.PromptPart": {"text": "a part"},
    "brain.DocumentVersion": {"text": "a text", "reason": "a reason"},
    "brain.MemoryVersion": {
        "entry_id": lambda: apps.get_model("brain", "MemoryEntry").objects.latest("id").pk
    },
    "privacy.StaffRequest": {"decision": "declined", "decided_by": UUID(int=2), "decided_at": clock.now()},
}
# What rows of other tenant tables belong to.
PARENTS = {"session": "chat.Session", "site": "brain.Site", "wrap_up": "wrapups.SessionLog"}
SIMPLE: tuple[tuple[type[models.Field[Any, Any]], Callable[[], Any]], ...] = (
    (models.UUIDField, uuid4),
    (models.JSONField, dict),
    (models.BinaryField, lambda: b"sealed"),
    (models.DateTimeField, clock.now),
    (models.DateField, lambda: clock.now().date()),
    (models.BooleanField, bool),
    (models.IntegerField, lambda: 1),
    (models.EmailField, lambda: f"{uuid4().hex}@example.com"),
    (models.CharField, lambda: "x"),
    (models.TextField, lambda: "x"),
)


def tenant_models() -> list[type[TenantModel]]:
    """Every model of customer content, in a stable order."""
    found = [model for model in apps.get_models() if issubclass(model, TenantModel)]
    return sorted(found, key=lambda model: model._meta.label)


def table_of(model: type[models.Model]) -> str:
    """The table's name as it stands in a statement."""
    return connection.ops.quote_name(model._meta.db_table)


def make_rows(person: Person, owner: AbstractContextManager[None]) -> dict[str, str]:
    """A row of that person in each tenant table, as JSON by the model's label. `owner` is that login, entered."""
    made: dict[str, str] = {}
    with owner, scope(person.scope):
        first: dict[str, models.Model] = {}
        for label in PARENTS.values():
            session = first.get(PARENTS["session"])
            first[label] = saved(apps.get_model(label), session.pk if session else None)
        for model in tenant_models():
            made[model._meta.label] = _as_json(first.get(model._meta.label) or _row_of(model, first))
    return made


def _row_of(model: type[TenantModel], first: dict[str, models.Model]) -> models.Model:
    if model is DataKey:
        keyring.customer_key()  # it stands already when a sealed field was saved before
        return DataKey.objects.get(kind="customer", customer_id=current_customer_id())
    columns = {field.attname for field in model._meta.concrete_fields}
    parents = {"site_id": "site", "wrap_up_id": "wrap_up"}
    given = {column: first[PARENTS[name]].pk for column, name in parents.items() if column in columns}
    return saved(model, first[PARENTS["session"]].pk, **given)


def saved(model: type[TenantModel], session: UUID | None, **given: Any) -> models.Model:
    """A row of the model with values that fit, and those given."""
    values = {field.attname: _value(field) for field in model._meta.concrete_fields if _needed(field)}
    for name in ("session_id", "session"):
        if name in values:
            values[name] = session
    more = MORE.get(model._meta.label, {})
    values |= {name: value() if callable(value) else value for name, value in more.items()}
    row = model(**values | given)
    row.save(force_insert=True)
    return row


def _needed(field: models.Field[Any, Any]) -> bool:
    composite = isinstance(field, models.CompositePrimaryKey)
    return not (composite or field.null or field.has_default() or field.has_db_default())


def _value(field: models.Field[Any, Any]) -> Any:
    if isinstance(field, SealedField):
        return {} if isinstance(field, SealedJSON) else "text"
    if field.choices:
        return next(value for value, _ in field.flatchoices)
    if field.blank and isinstance(field, models.CharField):
        return ""
    for kind, make in SIMPLE:
        if isinstance(field, kind):
            return make()
    raise NotImplementedError(f"{field}: say in tests/tenancy/rows.py what a value of it is")


def _as_json(row: models.Model) -> str:
    key = row._meta.pk_fields
    where = " AND ".join(f"{connection.ops.quote_name(str(field.column))} = %s" for field in key)
    with connection.cursor() as cursor:
        values = [getattr(row, field.attname) for field in key]
        cursor.execute(f"SELECT to_jsonb(t)::text FROM {table_of(type(row))} t WHERE {where}", values)
        found: str = cursor.fetchone()[0]
    return found
