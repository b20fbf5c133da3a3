"""The right to write for a turn, kept on the session row. The database's clock alone counts."""

from __future__ import annotations

import os
import secrets
import socket
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import F, Q
from django.db.models.functions import Now

from sessions.log import LeaseLost, Turn
from sessions.models import Session

OWNER: Final = f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(4)}"
"""This process, as the owner of leases."""


def _until() -> object:
    return Now() + timedelta(seconds=settings.TURN_LEASE_SECONDS)


# Plain SQL, since each running turn does it every two seconds.
_RENEW: Final = (
    "UPDATE sessions SET turn_lease_until = statement_timestamp() + make_interval(secs => %s)"
    " WHERE id = %s AND closed_at IS NULL AND turn_id = %s AND turn_attempt = %s AND turn_owner = %s"
    " AND turn_lease_until > statement_timestamp() RETURNING turn_stop"
)


def renew(session: UUID, turn: Turn) -> bool:
    """Keep the lease for another while; whether a stop was asked for. LeaseLost when it is no longer held."""
    with connection.cursor() as cursor:
        cursor.execute(_RENEW, [settings.TURN_LEASE_SECONDS, session, turn.id, turn.attempt, turn.owner])
        found = cursor.fetchone()
    if found is None:
        raise LeaseLost("the turn is no longer held")
    return bool(found[0])


def ask_to_stop(session: UUID, turn: UUID) -> bool:
    """Mark the running turn to stop, whichever process runs it; False when it does not run."""
    running = Session.objects.filter(id=session, turn_id=turn, turn_lease_until__gt=Now())
    return bool(running.update(turn_stop=True))


def revoke(session: UUID, turn: UUID) -> None:
    """Take the lease from a turn that did not stop in time: its process can write nothing more."""
    Session.objects.filter(id=session, turn_id=turn).update(turn_lease_until=None)


def take_again(session: UUID, turn: Turn) -> bool:
    """Take the lease for the next attempt at the session's last turn.

    True for the one caller who gets it: the attempt before is the latest, and nothing runs.
    """
    free = Session.objects.filter(
        Q(turn_lease_until=None) | Q(turn_lease_until__lte=Now()),
        id=session,
        closed_at=None,
        turn_id=turn.id,
        turn_attempt=turn.attempt - 1,
    )
    taken = free.update(
        turn_attempt=F("turn_attempt") + 1,
        turn_owner=turn.owner,
        turn_stop=False,
        turn_lease_until=_until(),
    )
    return bool(taken)
