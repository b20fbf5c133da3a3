"""How long content is kept, and deleting what is older: tenant by tenant, customer by customer, in short transactions.

What is deleted is deleted: a run that was killed leaves the rest to the next one, and two at once share the work.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from itertools import groupby
from typing import Final, Literal
from uuid import UUID

from django.db.models import Q

from memberintel.lib import clock
from memberintel.privacy import participants
from memberintel.tenancy.context import Scope, current_tenant_id, scope
from memberintel.tenancy.models import Tenant, User
from memberintel.usage.runs import LeaseLost, Recorded
from memberintel.vault import keyring
from memberintel.vault.errors import KeyDestroyed

type Kind = Literal["events", "wrap_ups", "journal", "memory"]
KINDS: Final[tuple[Kind, ...]] = ("events", "wrap_ups", "journal", "memory")
RUN: Final = "retention"  # as DAILY_STEPS calls it
_PAGE: Final = 200

logger = logging.getLogger(__name__)


class SomeKept(Exception):
    """What was to be deleted of some customers could not be; of all others it was."""


def days_of(tenant: Tenant) -> dict[Kind, int | None]:
    """How many days each kind is kept; None is for good. What the account says goes before what its tier says."""
    found: dict[Kind, int | None] = {}
    for kind in KINDS:
        own: int | None = getattr(tenant, f"keep_{kind}")
        found[kind] = (getattr(tenant.tier, f"keep_{kind}") if own is None else own) or None
    return found


def here() -> dict[Kind, int | None]:
    """The same of the current scope's tenant."""
    return days_of(Tenant.objects.select_related("tier").get(pk=current_tenant_id()))


@dataclass(frozen=True)
class Kept:
    """How long a kind is kept, for a person: `what` it is, and a sentence. `days` is None for good."""

    kind: Kind
    what: str
    says: str
    days: int | None


def told() -> list[Kept]:
    """The same in words, of the current scope's tenant."""
    return [Kept(kind, WHAT[kind], _says(kind, days), days) for kind, days in here().items()]


WHAT: Final[dict[Kind, str]] = {
    "events": "Conversations, word for word",
    "wrap_ups": "Wrap-ups",
    "journal": "Journal",
    "memory": "MEMORY",
}
_FOR_GOOD: Final[dict[Kind, str]] = {
    "events": "Kept until you delete a conversation.",
    "wrap_ups": "Kept until you delete one.",
    "journal": "Kept until you delete the conversation an entry is of.",
    "memory": "Kept until you delete an entry. So is what it, SOUL and BIBLE said before.",
}
_FOR_DAYS: Final[dict[Kind, str]] = {
    "events": "Kept for {days} after the last message. Then the words go, and so does finding them; that you talked,"
    " and when, stays on the list.",
    "wrap_ups": "Kept for {days} after the last message of the conversation. Then they go, also from what I am told.",
    "journal": "Kept for {days} after the last message of the conversation.",
    "memory": "An entry is kept for {days} after it was last changed; what it, SOUL and BIBLE said before, for {days}"
    " after that was replaced.",
}


def _says(kind: Kind, days: int | None) -> str:
    if days is None:
        return _FOR_GOOD[kind]
    return _FOR_DAYS[kind].format(days="1 day" if days == 1 else f"{days:,} days")


def before(days: int, now: datetime) -> datetime:
    """What was last touched before then is older than so many days: whole ones, in UTC."""
    return datetime.combine(now.astimezone(UTC).date(), time(), UTC) - timedelta(days=days)


def step(run: Recorded) -> None:
    """A step of the daily run. Counts what was deleted, by what it was. SomeKept when it broke for somebody."""
    broken = 0
    for whose in _concerned():
        try:
            _purge(whose, clock.now(), run.count)
        except LeaseLost:
            raise
        except KeyDestroyed:
            continue  # an erasure deletes what is left
        except Exception as error:
            broken += 1
            logger.error("retention broke for customer %s: %s", whose.customer_id, type(error).__name__)
    if broken:
        run.count("customers_kept", broken)
        raise SomeKept(str(broken))


def past() -> Iterator[tuple[UUID, dict[str, int]]]:
    """(tenant, counts by what it is) of what `step` would delete, for every tenant that has anything of it."""
    for tenant, people in groupby(_concerned(), key=lambda each: each.tenant_id):
        counts: Counter[str] = Counter()
        for whose in people:
            with scope(whose):
                for kind, limit in _limits(clock.now()):
                    for count in participants.taking_part("past"):
                        counts.update(count(kind, limit))
        if counts.total():
            yield tenant, dict(counts)


def _purge(whose: Scope, now: datetime, count: Callable[[str, int], None]) -> None:
    with scope(whose):
        keyring.customer_key()  # a key that cannot be had is never followed by a deletion
        for kind, limit in _limits(now):
            for purge in participants.taking_part("purge"):
                for deleted in purge(kind, limit):
                    for name, number in deleted.items():
                        count(name, number)


def _limits(now: datetime) -> list[tuple[Kind, datetime]]:
    """What is too old of which kind in the current scope. Asked for each customer anew: a run takes long, and somebody
    may have decided meanwhile that more is kept."""
    return [(kind, before(days, now)) for kind, days in here().items() if days]


def _concerned() -> Iterator[Scope]:
    """Everybody of a tenant that does not keep everything."""
    for tenant in _tenants():
        people = User.objects.filter(tenant_id=tenant.pk).order_by("id")
        for person in people.values_list("id", flat=True):
            yield Scope(tenant.pk, person)


def _tenants() -> Iterator[Tenant]:
    """Those that do not keep everything, a page at a time."""
    some = Q()
    for kind in KINDS:
        own, default = f"keep_{kind}", f"tier__keep_{kind}"
        some |= Q(**{f"{own}__gt": 0}) | Q(**{own: None, f"{default}__gt": 0})
    found = Tenant.objects.select_related("tier").filter(some).order_by("id")
    after = UUID(int=0)
    while page := list(found.filter(id__gt=after)[:_PAGE]):
        yield from page
        after = page[-1].pk
