"""Sealed fields: plain in Python, sealed in the database, opened late, and never moved, compared or lost."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.core import serializers
from django.core.exceptions import FieldError
from django.db import connection, models
from django.db.models import F, Value
from django.test.utils import CaptureQueriesContext, isolate_apps

from memberintel.lib import clock
from memberintel.tenancy.context import Scope, scope
from memberintel.vault import damage, keyring
from memberintel.vault.errors import CannotOpen, Damaged, KeyUnavailable, SealedFieldError, WrongKey
from memberintel.vault.fields import Sealed, SealedText
from tests.vault.conftest import KekRoom, new_kek, new_scope, undone
from tests.vault.notes import Note

pytestmark = pytest.mark.usefixtures("notes")


@pytest.fixture
def note(anna: Scope) -> Note:
    return Note.objects.create(title="Churn", body="We cut churn by 3 %.", themes=["churn", {"b": 1, "a": 2}])


def again(note: Note) -> Note:
    return Note.objects.get(id=note.id)


def raw(note: Note, column: str) -> bytes:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {column} FROM vault_test_notes WHERE id = %s", [note.id])
        return bytes(cursor.fetchone()[0])


def put(note: Note, column: str, value: bytes) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE vault_test_notes SET {column} = %s WHERE id = %s", [value, note.id])


# --- there and back ------------------------------------------------------------------------------------------


def test_what_is_assigned_is_read_back(note: Note) -> None:
    note.shared, note.secret = "for the tenant", "for the house"
    assert note.body == "We cut churn by 3 %."
    note.save()
    found = again(note)
    assert (found.title, found.body) == ("Churn", "We cut churn by 3 %.")
    assert (found.shared, found.secret) == ("for the tenant", "for the house")
    assert found.themes == ["churn", {"b": 1, "a": 2}]
    assert list(found.themes[1]) == ["b", "a"], "the order of keys is kept"


def test_the_database_holds_no_text(note: Note) -> None:
    for column in ("title", "body", "themes"):
        assert b"hurn" not in raw(note, column)


def test_nothing_is_null_and_empty_is_empty(anna: Scope) -> None:
    note = Note.objects.create(body="")
    assert again(note).title is None
    assert again(note).body == ""
    assert Note.objects.filter(title__isnull=True).count() == 1
    note = again(note)
    note.title = "named"
    note.save()
    note.title = None
    note.save()
    assert again(note).title is None


def test_rows_made_in_bulk_are_sealed_too(anna: Scope) -> None:
    Note.objects.bulk_create(Note(body=f"note {n}") for n in range(5))
    assert sorted(note.body for note in Note.objects.all()) == [f"note {n}" for n in range(5)]


def test_a_colleague_shares_the_tenants_key_only(note: Note) -> None:
    note.shared = "for the tenant"
    note.save()
    found = again(note)
    with scope(new_scope(note.tenant_id)):
        assert found.shared == "for the tenant"
        with pytest.raises(KeyUnavailable):
            _ = found.body


def test_an_instance_of_another_scope_is_not_saved(note: Note) -> None:
    with scope(new_scope()):
        note.body = "slipped in"
        with pytest.raises(KeyUnavailable):
            note.save()


# --- late opening, damage ------------------------------------------------------------------------------------


def test_opening_waits_for_the_attribute(note: Note, monkeypatch: pytest.MonkeyPatch) -> None:
    found = again(note)
    monkeypatch.setattr(keyring.cache, "get", lambda owner: pytest.fail("opened"))
    assert found.colour == "red"
    found.colour = "blue"
    found.save()
    assert again(note).colour == "blue"


def test_damage_shows_at_its_attribute_only_and_is_logged_without_content(
    note: Note, caplog: pytest.LogCaptureFixture
) -> None:
    put(note, "title", raw(note, "title")[:-1] + b"\0")
    found = again(note)
    assert found.body == "We cut churn by 3 %."
    with pytest.raises(Damaged):
        _ = found.title
    assert caplog.messages == [f"sealed value cannot be opened: vault_test_notes.title of {note.id}, Damaged"]
    found.body = "Still writable."
    found.save()
    assert again(note).body == "Still writable."
    told = [seen for seen in damage.seen(clock.now()) if seen.row_id == note.id]
    assert [seen.place for seen in told] == ["vault_test_notes.title"]
    assert note.id not in {seen.row_id for seen in damage.seen(clock.now() + damage.RINGS_FOR)}


def test_a_damaged_value_can_be_replaced(note: Note) -> None:
    put(note, "title", b"rubbish")
    found = again(note)
    found.title = "New title"
    found.save()
    assert again(note).title == "New title"


@pytest.mark.parametrize("column", ["title", "shared"])
def test_a_ciphertext_moved_to_another_row_or_column_does_not_open(note: Note, column: str) -> None:
    other = Note.objects.create(title="x", body="y", shared="z")
    put(other, column, raw(note, "title"))
    with pytest.raises(Damaged):
        getattr(again(other), column)


def test_a_ciphertext_of_another_customer_does_not_open(note: Note) -> None:
    stolen = raw(note, "body")
    with scope(new_scope(note.tenant_id)):
        mine = Note.objects.create(body="mine")
        put(mine, "body", stolen)
        with pytest.raises(Damaged):
            _ = again(mine).body


def test_deferred_values_are_loaded_sealed(note: Note) -> None:
    found = Note.objects.only("colour").get(id=note.id)
    assert found.body == "We cut churn by 3 %."
    assert Note.objects.defer("title").get(id=note.id).title == "Churn"
    put(note, "title", b"rubbish")
    found = Note.objects.defer("title").get(id=note.id)
    with pytest.raises(Damaged):
        _ = found.title


def test_a_refreshed_instance_reads_the_new_value(note: Note) -> None:
    copy_ = again(note)
    copy_.body = "Changed elsewhere."
    copy_.save()
    note.refresh_from_db()
    assert note.body == "Changed elsewhere."
    note.save()
    assert again(note).body == "Changed elsewhere."


# --- what is not touched is not written anew -----------------------------------------------------------------


def untouched(note: Note) -> None:
    note.colour = "green"


def read(note: Note) -> None:
    assert note.body
    assert note.themes


def assigned_the_same(note: Note) -> None:
    note.body, note.themes = "We cut churn by 3 %.", ["churn", {"b": 1, "a": 2}]


def cleaned(note: Note) -> None:
    note.full_clean()


@pytest.mark.parametrize("handle", [untouched, read, assigned_the_same, cleaned])
def test_the_same_value_keeps_its_bytes(note: Note, handle: Callable[[Note], None]) -> None:
    before = [raw(note, column) for column in ("title", "body", "themes")]
    found = again(note)
    handle(found)
    found.save()
    assert [raw(note, column) for column in ("title", "body", "themes")] == before


def test_a_value_changed_in_place_is_saved(note: Note) -> None:
    found = again(note)
    assert found.themes is not None
    found.themes.append("pricing")
    found.save()
    assert again(note).themes == ["churn", {"b": 1, "a": 2}, "pricing"]


def test_saving_some_fields_leaves_the_others(note: Note) -> None:
    before = raw(note, "title")
    note.title, note.body = "not saved", "saved"
    note.save(update_fields=["body"])
    assert raw(note, "title") == before
    assert again(note).body == "saved"


def test_a_save_repeated_after_a_rollback_is_sealed_with_the_key_that_stands(anna: Scope) -> None:
    note = Note(body="survives")
    with undone():
        note.save()
    note.save(force_insert=True)
    keyring.cache.clear()
    assert again(note).body == "survives"


# --- keys that fail ------------------------------------------------------------------------------------------


def test_under_a_wrong_kek_reading_fails_and_nothing_is_written(note: Note, keks: KekRoom) -> None:
    before = raw(note, "body")
    keks.use(new_kek())
    found = again(note)
    with pytest.raises(WrongKey):
        _ = found.body
    found.body = "overwritten?"
    with pytest.raises(WrongKey):
        found.save()
    with pytest.raises(CannotOpen):
        Note.objects.create(body="new")
    assert raw(note, "body") == before
    assert Note.objects.count() == 1
    keks.use(keks.base)
    assert again(note).body == "We cut churn by 3 %."


# --- queries never carry text --------------------------------------------------------------------------------


def test_values_are_sealed_bytes(note: Note) -> None:
    (row,) = Note.objects.values_list("title", "body")
    for value in row:
        assert isinstance(value, Sealed)
        assert b"hurn" not in bytes(value)
        assert repr(value) == str(value) == f"<sealed, {len(value)} bytes>"
    (found,) = Note.objects.values("body")
    assert isinstance(found["body"], Sealed)


@pytest.mark.parametrize(
    "query",
    [
        lambda rows: rows.update(title="plain"),
        lambda rows: rows.update(themes=["plain"]),
        lambda rows: rows.update(title=Value("plain", output_field=Note._meta.get_field("title"))),
        lambda rows: rows.filter(title="Churn").count(),
        lambda rows: rows.exclude(title="Churn").count(),
        lambda rows: rows.filter(title__icontains="churn").count(),
        lambda rows: rows.filter(title__in=["Churn"]).count(),
        lambda rows: rows.filter(themes__0="churn").count(),
        lambda rows: rows.filter(title=F("body")).count(),
        lambda rows: rows.bulk_update([row_with("title", "plain", rows)], ["title"]),
    ],
)
def test_a_query_with_text_is_refused(note: Note, query: Callable[[Any], Any]) -> None:
    with CaptureQueriesContext(connection) as sent, pytest.raises((SealedFieldError, FieldError)):
        query(Note.objects.all())
    assert not [entry for entry in sent if "plain" in entry["sql"] or "churn" in entry["sql"].lower()]
    assert again(note).title == "Churn"


def row_with(name: str, value: str, rows: Any) -> Note:
    row: Note = rows.get()
    setattr(row, name, value)
    return row


def test_sealed_columns_can_be_emptied_by_a_query(note: Note) -> None:
    Note.objects.update(title=None)
    assert again(note).title is None


# --- ways a text could slip out or be lost -------------------------------------------------------------------


def test_sealed_bytes_are_not_saved_under_another_id(note: Note) -> None:
    found = again(note)
    found.pk, found._state.adding = uuid4(), True
    with pytest.raises(SealedFieldError, match="another row"):
        found.save()


def test_an_opened_value_moves_by_being_sealed_anew(anna: Scope) -> None:
    note = again(Note.objects.create(body="copied"))
    assert note.body
    note.pk, note._state.adding = uuid4(), True
    note.save()
    assert [found.body for found in Note.objects.all()] == ["copied", "copied"]


def test_opened_instances_are_not_pickled_and_sealed_ones_carry_no_text(note: Note) -> None:
    with pytest.raises(SealedFieldError):
        pickle.dumps(note)
    found = again(note)
    assert b"hurn" not in repr(found.__dict__).encode()
    assert found.themes
    assert copy.deepcopy(found.__dict__["themes"]).value == found.themes
    assert "hurn" not in repr(note.__dict__)


def test_no_fixture_holds_text(note: Note) -> None:
    with pytest.raises(SealedFieldError):
        serializers.serialize("json", [note])


def test_only_the_right_kind_of_value_is_sealed(anna: Scope) -> None:
    for wrong in (b"bytes", 7, ["list"]):
        with pytest.raises(SealedFieldError, match="takes text"):
            Note.objects.create(body=wrong)
    with pytest.raises(ValueError, match="JSON"):
        Note.objects.create(body="x", themes=float("nan"))
    assert not Note.objects.exists()


@pytest.fixture
def registry() -> Iterator[None]:
    with isolate_apps("memberintel.vault"):
        yield


@pytest.mark.usefixtures("registry")
def test_a_model_without_a_uuid_of_its_own_is_refused() -> None:
    class Numbered(models.Model):
        text = SealedText()
        named = SealedText(row="uuid")
        uuid = models.UUIDField(default=uuid4)

        class Meta:
            app_label = "vault"

        def __str__(self) -> str:
            return ""

    assert [error.id for error in Numbered._meta.get_field("text").check()] == ["vault.E001"]
    assert Numbered._meta.get_field("named").check() == []


def test_migrations_can_rebuild_the_field() -> None:
    field = SealedText(owner="tenant", row="uuid", null=True)
    _, path, args, kwargs = field.deconstruct()
    assert path == "memberintel.vault.fields.SealedText"
    rebuilt = SealedText(*args, **kwargs)
    assert (rebuilt.owner, rebuilt.row, rebuilt.null, rebuilt.editable) == ("tenant", "uuid", True, False)
