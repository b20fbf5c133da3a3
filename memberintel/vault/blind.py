"""Terms a database may compare and cannot read: each is replaced by a keyed hash, under a key of its customer's.

The same term of two customers has two hashes. Who has the database and no key learns how many distinct terms a
text has and which texts share one, and neither a term nor their order.
"""

from __future__ import annotations

import hmac
from binascii import b2a_base64
from collections.abc import Iterable
from typing import Final

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from memberintel.vault import keyring

HASH_BYTES: Final = 6
"""Bytes kept of each hash, eight characters of base64. An index is made of hashes and little else, so they are
short: long enough that a word looked for meets another of a million terms once in 2^28 times, and such a hit is
then dropped, because its text is opened and does not have the word."""

_INFO: Final = b"memberintel search terms\x01"


class Blinder:
    """Hashes the terms of one customer. Make one for a piece of work and let it go: it holds a key."""

    __slots__ = ("_key",)

    def __init__(self, data_key: bytes) -> None:
        self._key = HKDF(SHA256(), 32, salt=None, info=_INFO).derive(data_key)

    def __repr__(self) -> str:
        return "<blinder>"

    def hash(self, term: str) -> str:
        """The term's hash: eight characters out of A-Z a-z 0-9 + /."""
        digest = hmac.digest(self._key, term.encode("utf-8", "surrogatepass"), "sha256")
        return b2a_base64(digest[:HASH_BYTES], newline=False).decode("ascii")

    def hashes(self, terms: Iterable[str]) -> list[str]:
        """The hash of each term, in the order given."""
        return [self.hash(term) for term in terms]


def blinder() -> Blinder:
    """That of the scope's customer; NoScope, or CannotOpen when their key cannot be had."""
    return Blinder(keyring.customer_key())
