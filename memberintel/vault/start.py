"""The check a process makes before it serves: its key-encryption keys must fit the database."""

from __future__ import annotations

from django.db import DatabaseError, connection, transaction

from memberintel import env
from memberintel.vault import kek
from memberintel.vault.errors import KekRefused
from memberintel.vault.kek import Keks
from memberintel.vault.models import KnownKek

# Two processes with different keys on a new database: one becomes known, the other is refused.
_REGISTERING = 0x4B454B


def verify_keks() -> None:
    """Misconfigured, with a sentence on what to set, when the KEK is missing or is not this database's."""
    try:
        register()
    except KekRefused as error:
        raise env.Misconfigured(f"Refusing to start: {error}") from None
    except DatabaseError as error:
        raise env.Misconfigured(
            f"Refusing to start: the list of key-encryption keys cannot be read ({str(error).splitlines()[0]}). "
            "Run `manage.py migrate`, and check that this process uses the login `web` or `worker`."
        ) from None
    finally:
        connection.close()


def register() -> Keks:
    """The configured KEKs, the current one now known to the database; KekRefused if they do not fit it.

    They fit when they include every KEK known here and not retired: then every living data key opens.
    """
    held = kek.configured()
    with transaction.atomic():
        _lock()
        living = KnownKek.objects.filter(retired_at=None).values_list("fingerprint", flat=True)
        missing = set(living) - held.fingerprints()
        if missing:
            raise KekRefused(
                f"this database's data keys need the key-encryption key {_names(missing)}, but "
                f"{_names(held.fingerprints())} is set. Set MEMBERINTEL_KEK_FILE (or MEMBERINTEL_KEK) to the "
                "right key; while rotating, the former one goes into MEMBERINTEL_KEK_OLD_FILE (or "
                "MEMBERINTEL_KEK_OLD) until `manage.py rotate_kek --retire-old` is through."
            )
        make_known(held.current.fingerprint)
    return held


def make_known(fingerprint: str) -> None:
    """Let a KEK wrap data keys from now on; KekRefused if it was retired here."""
    with transaction.atomic():
        _lock()
        known = KnownKek.objects.filter(fingerprint=fingerprint).first()
        if known is None:
            KnownKek.objects.create(fingerprint=fingerprint)
        elif known.retired_at:
            raise KekRefused(f"the key-encryption key {fingerprint} was retired here; set a new one.")


def _lock() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_REGISTERING])


def _names(fingerprints: set[str]) -> str:
    return " and ".join(sorted(fingerprints))
