"""Erasing a customer, or a tenant with all its customers: keys first, then every row, in steps that can be repeated.

Each step does what is left of it and nothing when nothing is left, so a run that was killed is simply run again, and
two at once do no harm. From the first step on nobody can sign in; from the second on nobody can read.

A process that had the key at hand, or an answer under way, may still write for a while. So an erasure is done only
when all has been swept once more after that while.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Final
from uuid import UUID

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session as SignIn
from django.db import IntegrityError, connection, transaction
from django.db.models import F

from memberintel.accounts import colleagues
from memberintel.lib import clock
from memberintel.privacy import audit, participants, reach
from memberintel.privacy.models import Erasure, StaffRequest
from memberintel.tenancy.context import Scope, scope
from memberintel.tenancy.models import Tenant, User
from memberintel.vault import destroy

BATCH: Final = 1_000  # rows in a transaction
STRAGGLERS: Final = timedelta(minutes=10)
"""So long after its key is gone somebody may still write for a customer: a key is kept for a minute, the longest answer
takes five (`TURN_DEADLINES`)."""

logger = logging.getLogger(__name__)

LAST_OWNER: Final = (
    "You are the only owner, and colleagues are still here. Make one of them an owner first, or erase the whole"
    " account."
)


class Refused(Exception):
    """It may not be done; the text is for the person who asked for it."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(text)


class NotAllowed(Refused):
    """Not by this person, or not with this password."""


class LastOwner(Refused):
    """Colleagues would be left without an owner."""


def asked_for(user: User, password: str, *, whole: bool = False) -> Erasure:
    """Begin what a customer asks for with their password: to be erased, or with `whole`, as an owner, the account.

    Raises NotAllowed, Refused.
    """
    if user.tenant_id is None:
        raise NotAllowed("Staff have no content of their own.")
    if whole and not user.is_owner:
        raise NotAllowed("Only an owner can erase the whole account.")
    if not user.check_password(password):
        raise NotAllowed("That is not your password. Nothing was erased.")
    return begin(Scope(user.tenant_id, None if whole else user.pk), by=user.pk)


def begin(whose: Scope, *, by: UUID, request: UUID | None = None) -> Erasure:
    """Begin to erase a customer, or without one in `whose` the tenant; nobody of them can sign in from now on.

    `request` is that of staff, approved by a second person. Goes on in `proceed`. The one under way if there is one.
    Raises Refused for the last owner of a tenant with colleagues.
    """
    with scope(whose), transaction.atomic():
        colleagues.lock_tenant()
        if whose.customer_id is not None:
            _refuse_last_owner(whose.customer_id)
        if request is not None and not _approved(request, whose):
            raise Refused("A second person has not approved this.")
        erasure = _row(whose, by, request)
        for person in _people(whose):
            _close_doors(person)
        audit.record("erasure_begun", actor=by, subject=whose.customer_id, tenant=whose.tenant_id)
    return erasure


def _approved(request: UUID, whose: Scope) -> bool:
    """Whether two people of the staff want this very customer (or tenant) erased, and it was not done yet. Neither of
    them can withdraw it from here on."""
    wanted = StaffRequest.objects.filter(pk=request, decision="approved", done_at=None)
    return wanted.filter(customer_id=whose.customer_id).select_for_update().first() is not None


def _row(whose: Scope, by: UUID, request: UUID | None) -> Erasure:
    try:
        with transaction.atomic():
            return Erasure.objects.create(
                account=whose.tenant_id, person=whose.customer_id, asked_by=by, request=request
            )
    except IntegrityError:
        return Erasure.objects.get(account=whose.tenant_id, person=whose.customer_id, finished_at=None)


def proceed(erasure: Erasure, *, told: Callable[[str], None] = lambda step: None) -> Erasure:
    """Do all that is left of it; `told` hears each step. What breaks leaves it to be done by the next run, and so does
    what must be swept once more when the last who may write have ended."""
    whose = Scope(erasure.account, erasure.person)

    def at(step: str, count: int = 0) -> None:
        if count:
            erasure.counts[step] = erasure.counts.get(step, 0) + count
        erasure.step = step[:60]
        erasure.save(update_fields=["step", "counts"])
        told(step)

    for person in _people(whose):
        _close_doors(person)
    at("signed out")
    if whose.customer_id is None:
        with scope(whose), transaction.atomic():
            destroy.destroy_tenant_keys()
        at("keys")
    for person in _people(whose):
        _erase_customer(Scope(whose.tenant_id, person.pk), person, at)
    if whose.customer_id is None:
        _erase_tenant(whose, at)
    if erasure.keys_gone_at is None:
        erasure.keys_gone_at = clock.now()
        erasure.save(update_fields=["keys_gone_at"])
    if clock.now() < erasure.keys_gone_at + STRAGGLERS:
        at("swept; once more later")
        return erasure
    return _finish(erasure, whose)


def of_customer(whose: Scope) -> Erasure | None:
    """The newest erasure of that customer, or None when none was ever begun."""
    return Erasure.objects.filter(account=whose.tenant_id, person=whose.customer_id).order_by("-id").first()


def unfinished() -> list[Erasure]:
    """Those that were begun and are not done, oldest first."""
    return list(Erasure.objects.filter(finished_at=None).order_by("id"))


# --- the steps -------------------------------------------------------------------------------------------


def _people(whose: Scope) -> list[User]:
    everybody = User.objects.filter(tenant_id=whose.tenant_id)
    return list(everybody if whose.customer_id is None else everybody.filter(pk=whose.customer_id))


def _refuse_last_owner(person: UUID) -> None:
    owners, members = colleagues.owners(), colleagues.members()
    if [owner.pk for owner in owners] == [person] and len(members) > 1:
        raise LastOwner(LAST_OWNER)


def _close_doors(person: User) -> None:
    User.objects.filter(pk=person.pk).update(is_active=False, sign_outs=F("sign_outs") + 1)


def _erase_customer(whose: Scope, person: User, at: Callable[..., None]) -> None:
    with scope(whose):
        with transaction.atomic():
            destroy.destroy_customer_key()
        at("keys")
        for erase in participants.taking_part("erase"):
            for name, count in erase().items():
                at(name, count)
        for table in reach.of_customers():
            for count in _batches("erase_rows", table):
                at(table, count)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT app.forget_names(%s)", [person.email])
    at("names")
    _forget_person(person)


def _erase_tenant(whose: Scope, at: Callable[..., None]) -> None:
    with scope(whose):
        for table in reach.of_tenants():
            for count in _batches("erase_tenant_rows", table):
                at(table, count)
    Tenant.objects.filter(pk=whose.tenant_id).update(name="")


def _batches(function: str, table: str) -> Iterator[int]:
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SELECT app.{function}(%s, %s)", [table, BATCH])
            (count,) = cursor.fetchone()
        if not count:
            return
        yield count


def _forget_person(person: User) -> None:
    """What stands outside of any tenant: the person's row becomes a tombstone, the rest goes."""
    with transaction.atomic():
        EmailAddress.objects.filter(user_id=person.pk).delete()
        Authenticator.objects.filter(user_id=person.pk).delete()
        LogEntry.objects.filter(object_repr=person.email[:200]).update(object_repr="erased")
        person.email = f"{person.pk}@erased.invalid"
        person.set_unusable_password()
        person.is_active = person.is_owner = False
        person.last_login = person.removed_at = None
        person.save(update_fields=["email", "password", "is_active", "is_owner", "last_login", "removed_at"])
    for row in SignIn.objects.iterator(chunk_size=BATCH):
        if str(row.get_decoded().get("_auth_user_id")) == str(person.pk):
            row.delete()


def _finish(erasure: Erasure, whose: Scope) -> Erasure:
    with scope(whose), transaction.atomic():
        audit.record("erased", actor=None, subject=whose.customer_id, tenant=whose.tenant_id)
        if erasure.request is not None:
            StaffRequest.objects.filter(pk=erasure.request, done_at=None).update(done_at=clock.now())
        erasure.finished_at, erasure.step = clock.now(), ""
        erasure.save(update_fields=["finished_at", "step"])
    return erasure
