"""What inserts and reads many rows keeps to the scope, and gives what the usual ways give."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connection, transaction

from memberintel.tenancy.context import ScopeChange, scope
from memberintel.tenancy.rows import binary_cursor, insert
from sessions.models import Session
from tests.conftest import Person
from wrapups.models import JournalEntry

VALUES = "SELECT session_id, session_id::text, feeling, blob_by, 2::bigint, 0.5::float8 FROM journal_entries"
UNIQUE = ("tenant_id", "session_id")


def entry(blob: str, session: Session | None = None) -> JournalEntry:
    """A place in the journal, of a new session if none is given."""
    session = session or Session.objects.create()
    at = session.started_at
    return JournalEntry(
        session_id=session.id,
        session_started_at=at,
        session_last_activity_at=at,
        blob=blob,
        feeling={"mood": 1},
    )


def test_a_row_is_inserted_as_it_is_saved(alice: Person) -> None:
    with scope(alice.scope):
        made = entry("We planned the campaign.")
        assert insert(made)
        found = JournalEntry.objects.get(id=made.id)
        assert (found.blob, found.feeling) == ("We planned the campaign.", {"mood": 1})
        assert (found.created_at, found.owner_ids) == (made.created_at, made.owner_ids)
        made.blob = "We planned the spring campaign."
        made.save()
        assert JournalEntry.objects.get(id=made.id).blob == "We planned the spring campaign."


def test_a_row_that_is_there_stays(alice: Person) -> None:
    with scope(alice.scope):
        session = Session.objects.create()
        assert insert(entry("first", session), unless=UNIQUE)
        assert not insert(entry("second", session), unless=UNIQUE)
        with pytest.raises(DatabaseError):
            insert(entry("third", session))
        assert [row.blob for row in JournalEntry.objects.all()] == ["first"]


def test_no_row_is_inserted_for_somebody_else(alice: Person, charlie: Person) -> None:
    with scope(alice.scope):
        stray = entry("stray")
    stray.blob, stray.feeling = None, None  # what is sealed is refused without the database
    with scope(charlie.scope), pytest.raises(DatabaseError):
        insert(stray)


def test_bytes_are_read_as_they_are_in_the_same_scope(alice: Person, charlie: Person) -> None:
    with scope(alice.scope), transaction.atomic():
        insert(entry("first"))
        binary, usual = binary_cursor(), connection.cursor()
        binary.execute(VALUES)
        usual.execute(VALUES)
        assert binary.fetchall() == usual.fetchall() != []
    with scope(alice.scope), transaction.atomic():
        cursor = binary_cursor()
        with pytest.raises(ScopeChange), scope(charlie.scope):
            cursor.execute(VALUES)
    with binary_cursor() as cursor, pytest.raises(DatabaseError):
        cursor.execute(VALUES)
