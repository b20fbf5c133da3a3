"""Key-encryption keys: what wraps the data keys. From a file or a variable here; a cloud KMS fits the Protocol."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.module_loading import import_string

from memberintel.vault import cipher
from memberintel.vault.errors import Damaged, KekRefused, WrongKey
from memberintel.vault.owner import Owner


class Kek(Protocol):
    """One key-encryption key. A KMS implements it by calling its service with the owner as context."""

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits that name the key and say nothing about it."""

    def wrap(self, data_key: bytes, owner: Owner) -> bytes:
        """The data key, wrapped and bound to its owner."""

    def unwrap(self, wrapped: bytes, owner: Owner) -> bytes:
        """The data key; WrongKey if this KEK did not wrap these bytes for this owner."""


class LocalKek:
    """A KEK held in memory. Wrapping and naming use keys derived apart, so the name cannot help to unwrap."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) != cipher.KEY_BYTES:
            raise KekRefused(f"a key-encryption key has {cipher.KEY_BYTES} bytes, not {len(secret)}")
        self._key = _derive(secret, b"wrap", cipher.KEY_BYTES)
        self._opener = cipher.Opener(self._key)
        self._fingerprint = _derive(secret, b"fingerprint", 16).hex()

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def wrap(self, data_key: bytes, owner: Owner) -> bytes:
        return cipher.seal_with(self._key, data_key, owner.aad())

    def unwrap(self, wrapped: bytes, owner: Owner) -> bytes:
        try:
            return self._opener.open(wrapped, owner.aad())
        except Damaged:
            raise WrongKey(
                f"the key {self._fingerprint} does not unwrap this {owner.kind}'s data key"
            ) from None

    def __repr__(self) -> str:
        return f"LocalKek({self._fingerprint})"


@dataclass(frozen=True, slots=True)
class Keks:
    """The KEKs of a process: new data keys are wrapped by `current`; `old` ones still unwrap."""

    current: Kek
    old: tuple[Kek, ...] = ()

    def named(self, fingerprint: str) -> Kek:
        """The KEK of that fingerprint, or WrongKey."""
        for kek in (self.current, *self.old):
            if kek.fingerprint == fingerprint:
                return kek
        raise WrongKey(f"a data key needs the key-encryption key {fingerprint}, which is not set")

    def fingerprints(self) -> set[str]:
        """The names of all KEKs held."""
        return {kek.fingerprint for kek in (self.current, *self.old)}


def configured() -> Keks:
    """The KEKs that the settings name, read afresh; KekRefused with a sentence on what to set."""
    return cast(Callable[[], Keks], import_string(settings.KEK_SOURCE))()


def from_settings() -> Keks:
    """KEKs from MEMBERINTEL_KEK or MEMBERINTEL_KEK_FILE, and MEMBERINTEL_KEK_OLD or its file."""
    current = _read("MEMBERINTEL_KEK", settings.KEK, settings.KEK_FILE)
    if current is None:
        raise KekRefused(
            "No key-encryption key is set. Set MEMBERINTEL_KEK_FILE to a file, or MEMBERINTEL_KEK to a value, "
            "holding 32 bytes in base64 (for a new database: openssl rand -base64 32)."
        )
    old = _read("MEMBERINTEL_KEK_OLD", settings.KEK_OLD, settings.KEK_OLD_FILE)
    return Keks(current, (old,) if old else ())


def _read(name: str, value: str, file: str) -> LocalKek | None:
    if value and file:
        raise KekRefused(f"Set {name} or {name}_FILE, not both.")
    if file:
        name += "_FILE"
        try:
            value = Path(file).read_text("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise KekRefused(f"{name} names {file}, which cannot be read: {error}.") from None
        if not value:
            raise KekRefused(f"{name} names {file}, which is empty.")
    return _decode(name, value) if value else None


def _decode(name: str, value: str) -> LocalKek:
    try:
        return LocalKek(base64.b64decode(value, validate=True))
    except binascii.Error:
        raise KekRefused(
            f"{name} is not base64. It must be 32 random bytes in base64; see .env.example for how to make them."
            " On one machine leave it unset: `make run` keeps a key of its own in the data folder."
        ) from None
    except KekRefused as error:
        raise KekRefused(f"{name}: {error}.") from None


def _derive(secret: bytes, purpose: bytes, length: int) -> bytes:
    info = b"memberintel kek " + purpose
    return HKDF(algorithm=SHA256(), length=length, salt=None, info=info).derive(secret)
