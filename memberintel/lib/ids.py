"""Identifiers that sort by the time they were made."""

from __future__ import annotations

import os
from datetime import datetime
from uuid import UUID

from memberintel.lib import clock


def uuid7(at: datetime | None = None, entropy: bytes | None = None) -> UUID:
    """A version 7 UUID (RFC 9562, 5.7): milliseconds of `at` (default: now), then ten bytes of entropy.

    With both arguments given the result is a pure function of them, which is how an import names the same
    session the same way twice.
    """
    milliseconds = int((at or clock.now()).timestamp() * 1000)
    tail = (entropy or os.urandom(10))[:10]
    raw = bytearray(milliseconds.to_bytes(6, "big") + tail)
    raw[6] = (raw[6] & 0x0F) | 0x70
    raw[8] = (raw[8] & 0x3F) | 0x80
    return UUID(bytes=bytes(raw))
