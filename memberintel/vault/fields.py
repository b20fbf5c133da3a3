"""Model fields whose text the database only ever sees sealed.

    title = SealedText(owner="customer")

Assign plain values; saving the instance seals them, bound to (tenant, customer, table, column, row). Reading
the attribute opens the value then and not before, so one damaged value hides nothing else of its row: it
raises CannotOpen there. A value that was not touched is saved back byte for byte. Queries never see text:
`values()` gives `Sealed` bytes; `update()`, `bulk_update()` and lookups other than `isnull` are refused.
Renaming the table or column of a sealed field means sealing its values anew.
"""

from __future__ import annotations

import json
import logging
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Never, cast
from uuid import UUID

from django.core import checks
from django.db import models
from django.db.models.lookups import IsNull
from django.db.models.query_utils import DeferredAttribute

from memberintel.tenancy.context import SYSTEM_TENANT_ID
from memberintel.vault import cipher, damage
from memberintel.vault.cipher import Place
from memberintel.vault.errors import CannotOpen, Damaged, SealedFieldError
from memberintel.vault.keyring import key_of
from memberintel.vault.owner import Owner, OwnerKind

logger = logging.getLogger(__name__)


class Sealed(bytes):
    """Sealed bytes as they stand in the database. Shows its length, never its content."""

    def __repr__(self) -> str:
        return f"<sealed, {len(self)} bytes>"

    __str__ = __repr__


@dataclass(frozen=True, slots=True, repr=False)
class _Clear:
    """A value in the clear, with the sealed bytes that stood in its place before, if any."""

    value: Any
    before: Sealed | None

    def __reduce__(self) -> Never:
        raise SealedFieldError("an instance with an opened sealed field is not pickled: its text would leak")

    def __deepcopy__(self, memo: dict[int, Any]) -> _Clear:
        return _Clear(json.loads(json.dumps(self.value)), self.before)


class SealedAttribute(DeferredAttribute):
    """Keeps sealed bytes on the instance until the attribute is read."""

    field: SealedField

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        held = super().__get__(instance, owner)
        if isinstance(held, Sealed):
            held = _Clear(self.field.open_on(instance, held), held)
            instance.__dict__[self.field.attname] = held
        return held.value if isinstance(held, _Clear) else held

    def __set__(self, instance: Any, value: Any) -> None:
        if value is not None and not isinstance(value, Sealed):
            held = instance.__dict__.get(self.field.attname)
            value = _Clear(value, held.before if isinstance(held, _Clear) else held)
        instance.__dict__[self.field.attname] = value

    def fetch_one(self, instance: Any) -> None:
        """Load a deferred value sealed, where Django's own way would open it on the spot."""
        name = self.field.attname
        rows = type(instance)._base_manager.using(instance._state.db).filter(pk=instance.pk)
        instance.__dict__[name] = rows.values_list(name, flat=True).get()


if TYPE_CHECKING:
    _Field = models.Field
else:  # Generic in the stubs only.

    class _Field(models.Field):
        def __class_getitem__(cls, types):
            return cls


class SealedField[S = Any, G = Any](_Field[S, G]):
    """Base of the sealed fields. `owner`: whose data key; `row`: the attribute with the row's own UUID."""

    descriptor_class = SealedAttribute

    def __init__(self, *args: Any, owner: OwnerKind = "customer", row: str = "pk", **kwargs: Any) -> None:
        kwargs.setdefault("editable", False)
        super().__init__(*args, **kwargs)
        self.owner, self.row = owner, row

    # --- plain value <-> bytes ---------------------------------------------------------------------------

    def encode(self, value: Any) -> bytes:
        """The value as the bytes to seal."""
        raise NotImplementedError

    def decode(self, plain: bytes) -> Any:
        """The value from opened bytes."""
        raise NotImplementedError

    # --- sealing and opening -----------------------------------------------------------------------------

    def place_on(self, instance: models.Model) -> Place:
        """Where this field's value of that instance stands; SealedFieldError while it has no ids."""
        row = getattr(instance, self.row)
        tenant: Any = SYSTEM_TENANT_ID
        customer: Any = None
        if self.owner != "system":
            tenant = getattr(instance, "tenant_id", None)
        if self.owner == "customer":
            customer = getattr(instance, "customer_id", None)
        wanted = (row, tenant, customer) if self.owner == "customer" else (row, tenant)
        if not all(isinstance(part, UUID) for part in wanted):
            raise SealedFieldError(
                f"{self} needs the row's id and its owner before it can be sealed or opened"
            )
        return Place(tenant, customer, self.model._meta.db_table, str(self.column), row)

    def open_on(self, instance: models.Model, sealed: Sealed) -> Any:
        """The plain value of sealed bytes found on that instance; CannotOpen, and a line in the log."""
        place = self.place_on(instance)
        try:
            return self.decode(self._key(place).opener.open(sealed, place.aad()))
        except CannotOpen as error:
            logger.error(
                "sealed value cannot be opened: %s.%s of %s, %s",
                place.table,
                place.column,
                place.row,
                type(error).__name__,
            )
            if isinstance(error, Damaged):
                damage.note(place.table, place.column, place.row)
            raise

    def _key(self, place: Place) -> Any:
        return key_of(Owner(self.owner, place.tenant, place.customer))

    def pre_save(self, model_instance: models.Model, add: bool) -> Sealed | None:
        """The bytes to store: those that stand already when the value is the same, else freshly sealed."""
        held = model_instance.__dict__.get(self.attname)
        if isinstance(held, Sealed) and add:
            raise SealedFieldError(f"{self}: sealed bytes of another row do not open here; assign the value")
        if not isinstance(held, _Clear):
            return cast("Sealed | None", held)
        place, plain = self.place_on(model_instance), self.encode(held.value)
        key = self._key(place)
        if held.before is not None and self._opens_to(key.opener, held.before, place, plain):
            return held.before
        sealed = Sealed(cipher.seal_with(key.key, plain, place.aad()))
        model_instance.__dict__[self.attname] = _Clear(held.value, sealed)
        return sealed

    @staticmethod
    def _opens_to(opener: cipher.Opener, sealed: Sealed, place: Place, plain: bytes) -> bool:
        """Opened rather than remembered: after a rollback the bytes may be of a key that never came to be."""
        try:
            return opener.open(sealed, place.aad()) == plain
        except Damaged:
            return False

    # --- what Django asks of a field ---------------------------------------------------------------------

    def get_internal_type(self) -> str:
        return "BinaryField"

    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        kwargs.pop("editable", None)
        return name, path, args, kwargs | {"owner": self.owner, "row": self.row}

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Sealed | None:
        return None if value is None else Sealed(value)

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        if value is None:
            return None
        if not isinstance(value, Sealed):
            raise SealedFieldError(
                f"{self} is sealed when its instance is saved; no query may carry its text"
            )
        return connection.Database.Binary(bytes(value))

    def get_lookup(self, lookup_name: str) -> Any:
        if lookup_name != "isnull":
            raise SealedFieldError(f"{self} is sealed: the database cannot compare it ({lookup_name})")
        return IsNull

    def get_transform(self, lookup_name: str) -> Never:
        raise SealedFieldError(f"{self} is sealed: the database cannot look into it ({lookup_name})")

    def value_to_string(self, obj: Any) -> Never:
        raise SealedFieldError(f"{self} is not written to fixtures: its text would leak")

    def check(self, **kwargs: Any) -> list[checks.CheckMessage]:
        meta = self.model._meta
        row = meta.pk if self.row == "pk" else meta.get_field(self.row)
        if isinstance(row, models.UUIDField | models.ForeignKey | models.OneToOneField):
            return super().check(**kwargs)
        message = "A sealed field is bound to a UUID of its row that is known before the insert."
        return [checks.Error(message, hint="Name it with row=...", obj=self, id="vault.E001")]


class SealedText[S = Any, G = Any](SealedField[S, G]):
    """Text, sealed as UTF-8."""

    _pyi_private_set_type: str
    _pyi_private_get_type: str

    def encode(self, value: Any) -> bytes:
        if not isinstance(value, str):
            raise SealedFieldError(f"{self} takes text, not {type(value).__name__}")
        return value.encode()

    def decode(self, plain: bytes) -> str:
        return plain.decode()


class SealedJSON[S = Any, G = Any](SealedField[S, G]):
    """A value JSON can hold, sealed as the exact text: the order of keys is kept."""

    _pyi_private_set_type: Any
    _pyi_private_get_type: Any

    def encode(self, value: Any) -> bytes:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()

    def decode(self, plain: bytes) -> Any:
        return json.loads(plain)


class SealedVector[S = Any, G = Any](SealedField[S, G]):
    """A vector of numbers, sealed as 32-bit floats: as telling as the text it was made of."""

    _pyi_private_set_type: Sequence[float]
    _pyi_private_get_type: tuple[float, ...]

    def encode(self, value: Any) -> bytes:
        return struct.pack(f"<{len(value)}f", *value)

    def decode(self, plain: bytes) -> tuple[float, ...]:
        return struct.unpack(f"<{len(plain) // 4}f", plain)
