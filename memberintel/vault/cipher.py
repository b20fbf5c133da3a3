"""Sealing and opening bytes with AES-256-GCM, each bound to the one place it may stand. Pure.

Sealed bytes: version (1) | nonce (12) | ciphertext | tag (16). The length of the text shows; nothing else does.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from memberintel.vault.errors import CannotOpen, Damaged

__all__ = ["KEY_BYTES", "CannotOpen", "Opener", "Place", "column_aad", "new_key", "open_", "seal"]

KEY_BYTES = 32
VERSION = b"\x01"
_NONCE_END = 13
_SHORTEST = _NONCE_END + 16


@dataclass(frozen=True, slots=True)
class Place:
    """Where a sealed value stands: a ciphertext moved anywhere else does not open."""

    tenant: UUID
    customer: UUID | None
    table: str
    column: str
    row: UUID

    def aad(self) -> bytes:
        """The associated data of this place."""
        return column_aad(self.tenant, self.customer, self.table, self.column) + self.row.bytes


@lru_cache(maxsize=4096)
def column_aad(tenant: UUID, customer: UUID | None, table: str, column: str) -> bytes:
    """The associated data shared by a column's rows of one owner; append `row.bytes` for a place's own.

    Ids have a fixed size and names carry their length, so no two places share their associated data.
    """
    names = b"".join(len(name).to_bytes(2, "big") + name for name in (table.encode(), column.encode()))
    owner = tenant.bytes + (b"\x01" + customer.bytes if customer else bytes(17))
    return VERSION + owner + names


class Opener:
    """Opens many values with one key. Make it once per key; opening costs under a microsecond."""

    __slots__ = ("_decrypt",)

    def __init__(self, key: bytes) -> None:
        self._decrypt = AESGCM(key).decrypt

    def open(self, sealed: bytes, aad: bytes) -> bytes:
        """The plaintext of `sealed`, whose place has the associated data `aad`; else Damaged."""
        if sealed[:1] != VERSION or len(sealed) < _SHORTEST:
            raise Damaged("not a sealed value of a known version")
        try:
            return self._decrypt(sealed[1:_NONCE_END], sealed[_NONCE_END:], aad)
        except InvalidTag:
            raise Damaged("altered, moved, or sealed with another key") from None


def new_key() -> bytes:
    """A fresh random data key."""
    return os.urandom(KEY_BYTES)


def seal(key: bytes, plaintext: bytes, place: Place) -> bytes:
    """`plaintext` under `key`, openable at `place` only."""
    return seal_with(key, plaintext, place.aad())


def seal_with(key: bytes, plaintext: bytes, aad: bytes) -> bytes:
    """As `seal`, with the associated data already at hand."""
    nonce = os.urandom(_NONCE_END - 1)
    return VERSION + nonce + AESGCM(key).encrypt(nonce, plaintext, aad)


def open_(key: bytes, sealed: bytes, place: Place) -> bytes:
    """The plaintext of `sealed`; Damaged if it was altered, moved here, or sealed with another key."""
    return Opener(key).open(sealed, place.aad())
