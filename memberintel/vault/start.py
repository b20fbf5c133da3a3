"""The check a process makes before it serves: its key-encryption keys must fit the database."""

from __future__ import annotations

from django.db import connection, transaction

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
    finally:
        connection.close()


def register() -> Keks:
    """The configured KEKs, the current one now known to the database; KekRefused if they do not fit it.

    They fit when they include every KEK known here and not retired: then every living data key opens.
    """
    held = kek.configured()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_REGISTERING])
        known = dict(KnownKek.objects.values_list("fingerprint", "retired_at"))
        current = held.current.fingerprint
        if known.get(current):
            raise KekRefused(f"the key-encryption key {current} was retired on this database; set a new one.")
        missing = {name for name, retired_at in known.items() if not retired_at} - held.fingerprints()
        if missing:
            raise KekRefused(
                f"this database's data keys need the key-encryption key {' and '.join(sorted(missing))}, but "
                f"{' and '.join(sorted(held.fingerprints()))} is set. Set MEMBERINTEL_KEK_FILE (or "
                "MEMBERINTEL_KEK) to the right key; while rotating, the former one goes into "
                "MEMBERINTEL_KEK_OLD_FILE (or MEMBERINTEL_KEK_OLD)."
            )
        if current not in known:
            KnownKek.objects.create(fingerprint=current)
    return held
