"""The one way the events of a session are deleted. What checks the reason is `app.erase_session`, not this module."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db import DatabaseError, connection

from memberintel.tenancy.context import Scope, current_customer_id, current_tenant_id
from sessions.log import SessionMissing
from sessions.models import EraseReason


class NotAllowed(Exception):
    """The reason does not hold for this session; nothing was erased."""


class NothingErased(Exception):
    """The session has no events (any more); nothing was erased."""


def erase(session: UUID, reason: EraseReason, *, before: datetime | None = None) -> int:
    """Delete the session's events, search terms and title in the caller's scope; how many events there were.

    The row stays as a shell that says when and why. `customer` is for a closed session and the login `web`;
    `off_record` for one that was; `retention` for one without a sign of life since `before` (a day ago or longer)
    and with no notes owed; `account` once the customer's key is destroyed, also for an open session. Raises
    SessionMissing, NotAllowed or NothingErased; a transaction it was called in must then roll back.
    """
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT app.erase_session(%s, %s, %s)", [session, reason.value, before])
            return int(cursor.fetchone()[0])
    except DatabaseError as error:
        raise _meaning(error) from error


# What `app.erase_session` lets go by for its age; that function decides.
_EXPIRED = """
SELECT s.id, s.last_seq FROM sessions s
WHERE s.tenant_id = %(tenant)s AND s.customer_id = %(customer)s AND s.erased_at IS NULL AND s.id > %(past)s
  AND s.closed_at < %(before)s AND s.last_activity_at < %(before)s
  AND NOT EXISTS (
    SELECT FROM closing_jobs job
    WHERE job.tenant_id = s.tenant_id AND job.customer_id = s.customer_id AND job.session_id = s.id
      AND (job.state = 'queued' OR job.state = 'failed' AND job.daily_tries < 5
           OR job.state = 'unfunded' AND s.closed_at > clock_timestamp() - interval '7 days'))
ORDER BY s.id LIMIT %(limit)s
"""


def expired(before: datetime, *, past: UUID, limit: int) -> list[tuple[UUID, int]]:
    """(session, how many events) of closed sessions without a sign of life since `before` for which no notes are
    owed, in the current scope, those after the id `past`."""
    values = {"tenant": current_tenant_id(), "customer": current_customer_id()}
    with connection.cursor() as cursor:
        cursor.execute(_EXPIRED, {**values, "before": before, "past": past, "limit": limit})
        return list(cursor.fetchall())


def _meaning(error: DatabaseError) -> Exception:
    meanings = {"MI404": SessionMissing, "MI004": NotAllowed, "P0002": NothingErased}
    meaning = meanings.get(getattr(error.__cause__, "sqlstate", ""))
    return meaning(str(error.__cause__)) if meaning else error


def unkept(*, limit: int) -> list[tuple[UUID, Scope]]:
    """(session, scope) of sessions off the record that are over and still have their events, across tenants."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT session_id, tenant_id, customer_id FROM app.sessions_to_erase(%s)", [limit])
        return [(session, Scope(tenant, customer)) for session, tenant, customer in cursor]
