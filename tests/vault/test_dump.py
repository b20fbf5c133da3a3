"""A dump of the database holds no planted text, and the login that makes it cannot reach the keys."""

from __future__ import annotations

import base64

import pytest

from memberintel.tenancy.context import Scope
from memberintel.vault import keyring
from tests.vault.dump import backup, dump, shows
from tests.vault.notes import Note

PLANTED = ("the purple heron campaign of spring", "Größe zählt: 47 Mitglieder — naïve café")


def test_the_finder_finds() -> None:
    """The control: each form a text could leak in is recognised."""
    for text in PLANTED:
        for shift in range(3):
            padded = b"x" * shift + text.encode() + b"tail"
            assert shows(b"..." + base64.b64encode(padded), [text]) == [text]
        assert shows(b"\\x" + text.encode().hex().encode(), [text]) == [text]
        assert shows(text.encode(), [text]) == [text]
    assert shows(b"nothing of the kind", PLANTED) == []


@pytest.mark.usefixtures("notes")
def test_no_planted_text_is_in_a_dump(anna: Scope) -> None:
    first, second = PLANTED
    note = Note.objects.create(
        title=first, body=second, themes={first: [second]}, shared=first, secret=second, colour="mauve"
    )
    dumped = backup()
    assert str(note.id).encode() in dumped, "the row itself is in the dump"
    assert b"mauve" in dumped, "what may be read is there to be read"
    assert shows(dumped, PLANTED) == []
    key = keyring.customer_key()
    assert key.hex().encode() not in dumped
    assert b"data_keys" not in dumped.replace(b"vault.data_keys", b"")


def test_the_backup_login_cannot_dump_the_keys(anna: Scope) -> None:
    keyring.customer_key()
    done = dump("--schema=vault")
    assert done.returncode != 0
    assert b"permission denied" in done.stderr
    assert b"COPY vault.data_keys" not in done.stdout
