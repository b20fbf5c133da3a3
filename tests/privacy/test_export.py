"""What a customer takes along is whole, readable, theirs alone, and comes back into an empty account as it was."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.db import connection

from memberintel.privacy import rows
from memberintel.tenancy.context import scope
from sessions import log, queries
from sessions.models import Session, SessionEvent
from tests.conftest import Person, login_as, make_person
from tests.privacy.scene import WORD, filled, lines, taken

KEPT_IN = [
    *("sessions", "session_events", "session_logs", "closing_jobs", "documents", "document_versions"),
    *("memory_entries", "memory_versions"),
]


@pytest.fixture
def erin() -> Person:
    """Somebody who has just signed up."""
    return make_person(tier="free", name="erin")


def test_everything_is_in_it_and_can_be_read(alice: Person, settings: LazySettings) -> None:
    session = filled(alice, settings)
    archive = taken(alice)
    manifest = json.loads(archive.read("manifest.json"))
    assert manifest["format"] == "memberintel-export/1"
    assert manifest["unreadable"] == {}
    for table in (*KEPT_IN, "prompt_parts", "profiles"):
        assert manifest["rows"][table] == len(lines(archive, table)) > 0, table
        assert WORD in archive.read(f"data/{table}.jsonl").decode() or table in {"sessions", "closing_jobs"}
    (page,) = (name for name in archive.namelist() if str(session) in name)
    for name in (page, "brain/SOUL.md", "brain/MEMORY.md", "wrap-ups.md"):
        assert WORD in archive.read(name).decode()
    remembered = archive.read("brain/MEMORY.md").decode()
    assert remembered.index(f"Members love {WORD}") < remembered.index(f"Members ask for {WORD}")
    with scope(alice.scope):
        assert manifest["rows"]["session_events"] == SessionEvent.objects.count()


def test_no_table_of_customers_is_forgotten(alice: Person, settings: LazySettings) -> None:
    filled(alice, settings)
    with scope(alice.scope):
        full = {table for table, model in rows.private_tables().items() if model._default_manager.exists()}
    without = {"session_terms", "search_progress"}  # made anew from the texts
    assert full - without <= set(json.loads(taken(alice).read("manifest.json"))["rows"])


def test_nothing_of_a_colleague_or_stranger_is_in_it(
    alice: Person, bob: Person, charlie: Person, settings: LazySettings
) -> None:
    filled(bob, settings)
    filled(charlie, settings)
    archive = taken(alice)
    for name in archive.namelist():
        assert WORD not in archive.read(name).decode(), name


def test_what_is_damaged_is_named_and_the_rest_is_there(
    alice: Person, erin: Person, settings: LazySettings, tmp_path: Path
) -> None:
    session = filled(alice, settings)
    with login_as("owner"), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO session_events (session_id, seq, id, tenant_id, customer_id, attempt, kind, payload, sealed,"
            " created_at) SELECT session_id, seq + 1, gen_random_uuid(), tenant_id, customer_id, 0, kind, payload,"
            " sealed, created_at FROM session_events WHERE session_id = %s ORDER BY seq DESC LIMIT 1",
            [session],
        )
        cursor.execute("UPDATE sessions SET last_seq = last_seq + 1 WHERE id = %s", [session])
        cursor.execute("UPDATE session_logs SET summary = '\\x00' WHERE session_id = %s", [session])
    archive = taken(alice)
    assert json.loads(archive.read("manifest.json"))["unreadable"] == {"session_events": 1, "session_logs": 1}
    (bad,) = (line for line in lines(archive, "session_events") if line.get("unreadable"))
    assert (bad["session_id"], bad["content"]) == (str(session), None)
    assert (lines(archive, "session_logs")[0]["summary"], WORD in archive.read("brain/SOUL.md").decode()) == (
        None,
        True,
    )
    bring(archive, erin, tmp_path)
    with scope(erin.scope):
        assert SessionEvent.objects.filter(kind="unreadable").count() == 1


# --- back again ------------------------------------------------------------------------------------------


def test_what_comes_back_is_what_was_taken(
    alice: Person, erin: Person, settings: LazySettings, tmp_path: Path
) -> None:
    filled(alice, settings)
    first = taken(alice)
    bring(first, erin, tmp_path)
    again = taken(erin)
    tables = set(json.loads(first.read("manifest.json"))["rows"]) - {"users", "ledger", "audit", "api_tokens"}
    for table in tables:
        assert nameless(first, table) == nameless(again, table), table
    ids = [{line["id"] for line in lines(archive, "sessions")} for archive in (first, again)]
    assert ids[0].isdisjoint(ids[1])
    with scope(erin.scope):
        for session in Session.objects.all():
            assert all(event.content.get("unreadable") is None for event in log.load(session.id))
            assert queries.get_session(session.id) is not None


BAD: list[tuple[Callable[[dict[str, bytes]], Any], str]] = [
    (lambda files: files.update({"manifest.json": b'{"format": "memberintel-export/9"}'}), "manifest.json"),
    (lambda files: files.pop("manifest.json"), "manifest.json is missing"),
    (lambda files: files.update({"../../etc/passwd": b"x"}), "not the name of a file"),
    (lambda files: files.update({"data/zebras.jsonl": b"{}"}), "does not know"),
    (lambda files: broken(files, "session_events", 2, b"{nonsense"), "data/session_events.jsonl, line 2"),
    (lambda files: broken(files, "session_events", 2, b"[]"), "data/session_events.jsonl, line 2"),
    (lambda files: broken(files, "documents", 1, b'{"id": 1}'), "data/documents.jsonl, line 1"),
    (lambda files: replaced(files, "session_logs", "word_count", "many"), "data/session_logs.jsonl, line 1"),
    (lambda files: replaced(files, "session_logs", "summary", "a\ud800b"), "data/session_logs.jsonl, line 1"),
    (lambda files: replaced(files, "sessions", "close_reason", "whim"), "data/sessions.jsonl, line 1"),
    (lambda files: replaced(files, "session_events", "seq", 10**12), "data/session_events.jsonl, line 1"),
    (lambda files: replaced(files, "session_events", "seq", -1), "data/session_events.jsonl, line 1"),
    (lambda files: replaced(files, "session_events", "payload", "x"), "data/session_events.jsonl, line 1"),
    (lambda files: files.update({"data/sessions.jsonl": b"0" * 50_000_000}), "would unpack"),
    (lambda files: files.pop("data/prompt_parts.jsonl"), "names a text of a prompt"),
    (lambda files: cut(files, "session_events"), "session_events.jsonl"),
]


def test_a_bad_archive_is_refused_by_file_and_line_and_leaves_nothing(
    alice: Person,
    erin: Person,
    settings: LazySettings,
    tmp_path: Path,
) -> None:
    filled(alice, settings)
    archive = taken(alice)
    whole = {name: archive.read(name) for name in archive.namelist()}
    for change, says in BAD:
        files = dict(whole)
        change(files)
        with pytest.raises(CommandError, match=re.escape(says)):
            bring(packed(files), erin, tmp_path)
    with scope(erin.scope):
        for table, model in rows.private_tables().items():
            assert not model._default_manager.exists(), table


def test_only_an_empty_account_takes_one(alice: Person, settings: LazySettings, tmp_path: Path) -> None:
    filled(alice, settings)
    with pytest.raises(CommandError, match="not empty"):
        bring(taken(alice), alice, tmp_path)


def test_it_is_for_the_owner_of_the_database(alice: Person, tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"")
    with pytest.raises(CommandError, match="as the owner"):
        call_command("import_export", str(tmp_path / "a.zip"), customer=alice.user.email)


def bring(archive: zipfile.ZipFile, who: Person, folder: Path) -> None:
    path = folder / "export.zip"
    path.write_bytes(archive.fp.getvalue())  # type: ignore[union-attr]
    with login_as("owner"):
        call_command("import_export", str(path), customer=who.user.email, stdout=io.StringIO())


def packed(files: dict[str, bytes]) -> zipfile.ZipFile:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in files.items():
            made.writestr(name, content)
    return zipfile.ZipFile(out)


def broken(files: dict[str, bytes], table: str, number: int, line: bytes) -> None:
    found = files[f"data/{table}.jsonl"].splitlines()
    found[number - 1] = line
    files[f"data/{table}.jsonl"] = b"\n".join(found)


def replaced(files: dict[str, bytes], table: str, name: str, value: Any) -> None:
    line = json.loads(files[f"data/{table}.jsonl"].splitlines()[0])
    broken(files, table, 1, json.dumps({**line, name: value}).encode())


def cut(files: dict[str, bytes], table: str) -> None:
    files[f"data/{table}.jsonl"] = b"\n".join(files[f"data/{table}.jsonl"].splitlines()[:-1])


_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_DIGEST = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def nameless(archive: zipfile.ZipFile, table: str) -> list[str]:
    """The lines of a table, their ids down to the time in them and without digests, in order of their text."""
    found = archive.read(f"data/{table}.jsonl").decode().splitlines()
    return sorted(_ID.sub(lambda id_: id_[0][:18], _DIGEST.sub("digest", line)) for line in found)
