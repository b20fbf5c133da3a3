"""What can go wrong with sealed text. None of these may be followed by a write or a delete of that text."""

from __future__ import annotations


class VaultError(Exception):
    """The vault cannot do what it was asked."""


class CannotOpen(VaultError):
    """A sealed value cannot be opened."""


class Damaged(CannotOpen):
    """The sealed bytes were altered, cut, moved to another place, or sealed with another key."""


class WrongKey(CannotOpen):
    """A data key was wrapped by a key-encryption key that this process does not hold."""


class KeyUnavailable(CannotOpen):
    """The data key cannot be had: another owner's, or its database row is out of reach."""


class KeyDestroyed(KeyUnavailable):
    """The data key was destroyed on purpose; what it sealed is gone for good."""


class KekRefused(KeyUnavailable):
    """The key-encryption key is missing, malformed, or not the one this database was sealed with."""


class SealedFieldError(VaultError):
    """A sealed field was used in a way that would compare, move or store its text in the clear."""
