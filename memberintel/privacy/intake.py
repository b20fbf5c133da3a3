"""Reading an archive back into an empty account: whole or not at all, whatever is in the file."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, cast
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import DatabaseError, connection, models, transaction

from memberintel.privacy import participants, rows
from memberintel.privacy.archive import FORMAT
from memberintel.privacy.rows import Renamer, Unfit
from memberintel.tenancy.context import current_scope
from memberintel.vault import keyring

LINE_AT_MOST: Final = 16 * 1024 * 1024  # bytes
FILE_AT_MOST: Final = 64 * 1024**3
RATIO_AT_MOST: Final = 200  # of what is packed; text takes a tenth or so
ENTRIES_AT_MOST: Final = 2_000_000
NOT_BROUGHT_IN: Final = frozenset({"api_tokens", "access_grants", "hand_overs", "forgot_reports"})
"""Tables of this installation alone: what lets in, who looked, what lies elsewhere."""


class Refused(Exception):
    """The archive cannot be brought in; nothing was. The text names file and line."""


def bring_in(path: Path, *, told: Callable[[str, int], None] = lambda table, count: None) -> Counter[str]:
    """Fill the empty account of the current scope; counts by table. Refused, and then nothing is there.

    For the login of the database's owner: no process that serves may write all of it. One transaction.
    """
    keyring.customer_key()
    try:
        with zipfile.ZipFile(path) as archive, transaction.atomic():
            return _Intake(archive, told).run()
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        raise Refused(f"{path.name} is no whole archive of ours ({type(error).__name__})") from None


class _Intake:
    def __init__(self, archive: zipfile.ZipFile, told: Callable[[str, int], None]) -> None:
        self._archive, self._told = archive, told
        self._tables, self._hidden = rows.private_tables(), participants.hidden()
        self._counts: Counter[str] = Counter()

    def run(self) -> Counter[str]:
        """Check the whole, then read file after file."""
        names = _checked(self._archive)
        manifest = _manifest(self._archive, names)
        self._refuse_unless_empty()
        renamer = Renamer(_owners(manifest))
        known = [table for table in self._tables if f"data/{table}.jsonl" in names]
        _refuse_unknown(names, set(self._tables) | participants.shared() | {"users", "ledger", "audit"})
        for table in known:
            if table not in NOT_BROUGHT_IN:
                self._fill(table, renamer)
        self._refuse_unless_complete(manifest)
        return self._counts

    def _fill(self, table: str, renamer: Renamer) -> None:
        own = table in participants.left_out()
        for number, line in _lines(self._archive, f"data/{table}.jsonl"):
            try:
                if own:
                    for restore in participants.taking_part("restore"):
                        restore(table, line, renamer)
                else:
                    self._save(self._tables[table], line, renamer)
            except (Unfit, ValidationError) as error:
                raise Refused(f"data/{table}.jsonl, line {number}: {error}") from None
            except DatabaseError as error:
                reason = type(error).__name__
                raise Refused(f"data/{table}.jsonl, line {number}: it cannot be stored ({reason})") from None
            self._counts[table] += 1
            self._told(table, self._counts[table])

    def _save(self, model: type[models.Model], line: dict[str, Any], renamer: Renamer) -> None:
        hidden = self._hidden.get(model._meta.db_table, frozenset())
        row = rows.from_line(model, line, renamer, hidden)
        for change in participants.taking_part("restored"):
            change(row, renamer)
        row.save(force_insert=True)

    def _refuse_unless_empty(self) -> None:
        for table, model in self._tables.items():
            held = table not in NOT_BROUGHT_IN and table not in participants.left_out()
            if held and table != "profiles" and model._default_manager.exists():
                raise Refused(f"the account is not empty: it has rows in {table}")
        self._tables["profiles"]._default_manager.all().delete()  # made by a visit to the settings

    def _refuse_unless_complete(self, manifest: dict[str, Any]) -> None:
        for problem in participants.taking_part("restored_all"):
            if said := problem():
                raise Refused(f"data/session_events.jsonl: {said}")
        counted = manifest.get("rows")
        for table in self._counts:
            if not isinstance(counted, dict) or counted.get(table) != self._counts[table]:
                raise Refused(f"data/{table}.jsonl: it has not as many lines as manifest.json says")
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def _checked(archive: zipfile.ZipFile) -> frozenset[str]:
    """The names in the archive, once they are harmless."""
    entries = archive.infolist()
    if len(entries) > ENTRIES_AT_MOST:
        raise Refused("the archive has too many files")
    for entry in entries:
        name = entry.filename
        if name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/") or ":" in name:
            raise Refused(f"{name[:100]!r} is not the name of a file of ours")
        if entry.flag_bits & 0x1:
            raise Refused(f"{name[:100]!r} is locked with a password")
        if (
            entry.file_size > FILE_AT_MOST
            or entry.file_size > 1_000_000 + RATIO_AT_MOST * entry.compress_size
        ):
            raise Refused(f"{name[:100]!r} would unpack to {entry.file_size:,} bytes")
    names = [entry.filename for entry in entries]
    if len(set(names)) != len(names):
        raise Refused("the archive has two files of the same name")
    return frozenset(names)


def _refuse_unknown(names: frozenset[str], known: set[str]) -> None:
    for name in sorted(names):
        if name.startswith("data/") and name.removeprefix("data/").removesuffix(".jsonl") not in known:
            raise Refused(f"{name[:100]!r} holds something this version does not know")


def _manifest(archive: zipfile.ZipFile, names: frozenset[str]) -> dict[str, Any]:
    if "manifest.json" not in names:
        raise Refused("manifest.json is missing: this is not an archive of ours, or not the whole of it")
    with archive.open("manifest.json") as file:
        raw = file.read(LINE_AT_MOST)
    try:
        manifest = json.loads(raw)
    except (ValueError, RecursionError):
        raise Refused("manifest.json is not JSON") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise Refused(f"manifest.json: the format must be {FORMAT}")
    return cast("dict[str, Any]", manifest)


def _owners(manifest: dict[str, Any]) -> dict[UUID, UUID]:
    """The customer and tenant of the archive, with those of the scope."""
    who = current_scope()
    try:
        customer, tenant = UUID(str(manifest.get("customer"))), UUID(str(manifest.get("tenant")))
    except ValueError:
        raise Refused("manifest.json: `customer` and `tenant` must be ids") from None
    return {customer: cast(UUID, who.customer_id), tenant: who.tenant_id}


def _lines(archive: zipfile.ZipFile, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number, object) of each line."""
    with archive.open(name) as file:
        number = 0
        while raw := file.readline(LINE_AT_MOST + 1):
            number += 1
            if len(raw) > LINE_AT_MOST:
                raise Refused(f"{name}, line {number}: longer than {LINE_AT_MOST:,} bytes")
            try:
                line = json.loads(raw)
            except (ValueError, RecursionError):
                raise Refused(f"{name}, line {number}: not JSON") from None
            if not isinstance(line, dict):
                raise Refused(f"{name}, line {number}: not an object")
            yield number, line
