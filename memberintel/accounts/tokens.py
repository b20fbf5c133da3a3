"""Personal tokens as values: what one looks like, what is kept of it, what its scopes allow."""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import Final

SCOPES: Final = {
    "read": "Read conversations, documents, wrap-ups and settings",
    "chat": "Talk to the advisor: send, follow, stop and retry, open and end conversations",
    "brain": "Read and change SOUL and BIBLE",
    "wrapups": "Read, edit and delete wrap-ups",
    "journal": "Read and edit the journal",
    "account": "Read and change settings, list and revoke tokens",
}
SHOWN: Final = 9  # characters of a token that stay visible, to tell it from others

_FORM = re.compile(r"mi_[A-Za-z0-9_-]{43}")


def new() -> str:
    """A token nobody can guess: 256 random bits."""
    return f"mi_{secrets.token_urlsafe(32)}"


def is_token(text: str) -> bool:
    """Whether the text has the form of a token."""
    return _FORM.fullmatch(text) is not None


def digest(token: str) -> bytes:
    """What is stored in place of the token, 32 bytes.

    One round of SHA-256 is enough: a slow hash protects words people choose, and 256 random bits cannot be
    tried out. It is looked up on every request.
    """
    return hashlib.sha256(token.encode()).digest()
