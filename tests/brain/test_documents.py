from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import DatabaseError, connections

from brain import actions, queries
from brain.domain.documents import DocumentText, Kind, Stale, TooLong
from brain.models import Document, DocumentVersion
from memberintel.tenancy.context import scope
from memberintel.vault.errors import CannotOpen
from tests.conftest import Person


def save(body: str, base_version: int, kind: Kind = "soul") -> DocumentText:
    return actions.save_document(
        kind=kind, body=body, base_version=base_version, by="customer", reason="told to"
    )


def test_every_version_is_kept_with_who_and_why(alice: Person) -> None:
    with scope(alice.scope):
        assert queries.document("soul") == DocumentText("soul")
        save("Be direct.", 0)
        save("Be direct and brief.", 1)
        assert queries.document("soul").text == "Be direct and brief."
        kept = queries.versions("soul")
    assert [(each.version, each.text, each.author, each.reason) for each in kept] == [
        (2, "Be direct and brief.", "customer", "told to"),
        (1, "Be direct.", "customer", "told to"),
    ]


def test_an_edit_of_an_old_version_is_refused_with_the_fresh_text(alice: Person) -> None:
    with scope(alice.scope):
        save("one", 0)
        save("two", 1)
        with pytest.raises(Stale) as refused:
            save("mine", 1)
        assert (refused.value.fresh.version, refused.value.fresh.text) == (2, "two")
        with pytest.raises(Stale):
            save("mine", 0)
        assert queries.document("soul").text == "two"


def test_of_many_edits_at_once_one_is_saved_and_the_others_hear_of_it(alice: Person) -> None:
    def edit(number: int) -> str:
        try:
            with scope(alice.scope):
                return f"version {save(f'edit {number} of {base}', base).version}"
        except Stale as stale:
            return f"stale, {stale.fresh.version} stands"
        finally:
            connections.close_all()

    for base in (0, 1):
        with ThreadPoolExecutor(4) as threads:
            results = sorted(threads.map(edit, range(4)))
        assert results == [f"stale, {base + 1} stands"] * 3 + [f"version {base + 1}"]


def test_saving_what_stands_makes_no_version(alice: Person) -> None:
    with scope(alice.scope):
        save("the same", 0)
        assert save("  the same\r\n", 1).version == 1
        assert len(queries.versions("soul")) == 1


def test_a_document_over_its_cap_is_refused_in_words(alice: Person) -> None:
    with scope(alice.scope):
        with pytest.raises(TooLong, match=r"SOUL is [\d,]+ tokens long; at most 2,000 fit"):
            save("member " * 3000, 0)
        assert save("member " * 3000, 0, kind="bible").version == 1


def test_control_characters_are_removed_and_the_rest_kept(alice: Person) -> None:
    with scope(alice.scope):
        save("line one\r\nline\x00 two\ud800\x07", 0)
        assert queries.document("soul").text == "line one\nline two"


def test_a_colleague_and_a_stranger_see_nothing_of_it(alice: Person, bob: Person, charlie: Person) -> None:
    with scope(alice.scope):
        save("private", 0)
    for other in (bob, charlie):
        with scope(other.scope):
            assert queries.document("soul").version == 0
            assert queries.versions("soul") == []
            assert save("their own", 0).version == 1


def test_without_a_scope_the_database_refuses() -> None:
    with pytest.raises(DatabaseError, match="permission denied"):
        list(Document.objects.all())


def test_kept_versions_cannot_be_changed_or_deleted(alice: Person) -> None:
    with scope(alice.scope):
        save("one", 0)
        with pytest.raises(DatabaseError, match="permission denied"):
            DocumentVersion.objects.update(author="staff")
        with pytest.raises(DatabaseError, match="permission denied"):
            DocumentVersion.objects.all()._raw_delete("default")


def test_a_damaged_document_is_an_error_and_nothing_is_written_over_it(alice: Person) -> None:
    with scope(alice.scope):
        save("one", 0)
        with connections["default"].cursor() as cursor:
            cursor.execute("UPDATE documents SET text = set_byte(text, 20, get_byte(text, 20) # 1)")
        with pytest.raises(CannotOpen):
            queries.document("soul")
        with pytest.raises(CannotOpen):
            save("two", 1)
        assert [each.version for each in queries.versions("soul")] == [1]
