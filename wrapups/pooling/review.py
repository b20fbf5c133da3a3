"""A review: what several tenants decided or left open alike, made anew from the wrap-ups by a step of the daily run.

Decisions and open items alone are read, each customer's in their own scope and with their own key, and redacted before
anything else is done with them; what is embedded and compared is redacted already. They are read three times, so that
none has to be kept: to find groups, to count the phrases of groups that enough tenants share, and to record who
stands behind what will be shown. That last record is what decides: the database counts it before it shows anything,
and whenever staff look.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import Q

from brain import embedding
from brain.domain.memory import Vector
from memberintel.lib import clock
from memberintel.tenancy.context import SYSTEM, SYSTEM_TENANT_ID, Scope, outside_scopes, scope
from memberintel.tenancy.locks import one_at_a_time
from memberintel.tenancy.models import User
from memberintel.usage.models import Run
from memberintel.usage.runs import Recorded
from memberintel.vault.errors import Damaged, VaultError
from wrapups.domain.pooling import ENTERS, Leaders, Phrase, Wording, sampled
from wrapups.domain.redaction import phrases, redact
from wrapups.models import SessionLog
from wrapups.pooling import choices
from wrapups.pooling.models import PooledGroup, PooledSupport

KIND: Final = "pooling"
PAGE: Final = 200  # customers
NEWEST: Final = 200  # wrap-ups of a customer
BATCH: Final = 50  # texts a call of an embedder takes

Kind = PooledGroup.Kind
type _Key = tuple[str, int]  # kind, and number of the group among those of its kind


class NoEmbedder(Exception):
    """No embedder answers, or another one than a moment ago; the review before stands."""


class SwitchedOff(Exception):
    """Pooling was turned off while the review was being made; nothing of it stays."""


@dataclass(frozen=True)
class Piece:
    """A redacted item. `edited_at` tells which words of the wrap-up it was made from."""

    wrap_up: UUID
    edited_at: datetime | None
    kind: str
    text: str


@dataclass(frozen=True)
class _Group:
    id: UUID
    phrases: list[Phrase]


def step(run: Recorded) -> None:
    """A step of the daily run: make a review where pooling is running, unless the newest is still young."""
    with outside_scopes():
        if choices.running() and due(clock.now()):
            _make(run)


def due(now: datetime) -> bool:
    """Whether it is time for another review. They are rare, so that comparing them tells little of anybody."""
    at = next_at()
    return at is None or at <= now


def next_at() -> datetime | None:
    """When the next review may be made; None where there was none yet."""
    made = Run.objects.filter(kind=KIND, error="", finished_at__isnull=False, counts__has_key="customers")
    newest = made.order_by("-started_at").values_list("started_at", flat=True).first()
    # An hour less, so that a clock that comes a little early does not put it off by a day.
    wait = timedelta(days=settings.POOLING_EVERY_DAYS, hours=-1)
    return newest + wait if newest else None


def _make(run: Recorded) -> None:
    reading = _Reading()
    large = _leaders(reading, run)
    groups = _keep(run.id, _wordings(reading, large))
    for who, pieces in reading:
        _support(who, pieces, large, groups)
    run.count("groups", _open(run.id))


def _leaders(reading: _Reading, run: Recorded) -> dict[str, Leaders]:
    """The groups that enough tenants share, by kind."""
    found: dict[str, Leaders] = {}
    run.count("customers", 0)
    for who, pieces in reading:
        run.count("customers")
        run.count("items", len(pieces))
        for piece, vector in pieces:
            leaders = found.setdefault(piece.kind, Leaders(reading.near))
            leaders.add(vector.values, who.tenant_id)
    return {kind: Leaders(reading.near, leaders.of_many(ENTERS)) for kind, leaders in found.items()}


def _wordings(reading: _Reading, large: Mapping[str, Leaders]) -> dict[_Key, list[Phrase]]:
    """What may be shown of each group; those without anything are left out."""
    counted: dict[_Key, Wording] = defaultdict(Wording)
    for who, pieces in reading:
        for piece, vector in pieces:
            if (key := _group_of(piece, vector, large)) is not None:
                counted[key].add(phrases(piece.text), who.tenant_id)
    return {key: found for key, wording in counted.items() if (found := wording.shown(ENTERS))}


def _group_of(piece: Piece, vector: Vector, large: Mapping[str, Leaders]) -> _Key | None:
    at = large[piece.kind].nearest(vector.values) if piece.kind in large else None
    return None if at is None else (piece.kind, at)


# --- reading ---------------------------------------------------------------------------------------------


class _Reading:
    """Reads the customers in a sample, tenant by tenant, as often as it is iterated. Who is in the sample is known to
    this review alone."""

    def __init__(self) -> None:
        self._drawn, self._embedder = secrets.token_bytes(32), ""

    def __iter__(self) -> Iterator[tuple[Scope, list[tuple[Piece, Vector]]]]:
        read: list[tuple[Scope, list[Piece]]] = []
        for who in _customers(self._drawn):
            if pieces := _pieces(who):
                read.append((who, pieces))
            if sum(len(pieces) for _, pieces in read) >= BATCH:
                yield from self._embedded(read)
                read = []
        yield from self._embedded(read)

    def _embedded(
        self, read: list[tuple[Scope, list[Piece]]]
    ) -> Iterator[tuple[Scope, list[tuple[Piece, Vector]]]]:
        vectors = iter(_vectors([piece.text for _, pieces in read for piece in pieces]))
        for who, pieces in read:
            pairs = list(zip(pieces, vectors, strict=False))  # the next customer's follow
            self._embedder = self._embedder or pairs[0][1].embedder
            if any(vector.embedder != self._embedder for _, vector in pairs):
                raise NoEmbedder
            yield who, pairs

    @property
    def near(self) -> float:
        """From which cosine on two items mean alike."""
        return embedding.likeness().of(self._embedder)


def _customers(drawn: bytes) -> Iterator[Scope]:
    """The customers of tenants in the sample, tenant by tenant, in pages."""
    everybody = User.objects.filter(is_active=True, tenant__isnull=False).exclude(tenant_id=SYSTEM_TENANT_ID)
    past = Q()
    while page := list(
        everybody.filter(past).order_by("tenant_id", "id").values_list("tenant_id", "id")[:PAGE]
    ):
        for tenant, customer in page:
            if tenant is not None and sampled(drawn, tenant, settings.POOLING_SHARE):
                yield Scope(tenant, customer)
        tenant, customer = page[-1]
        past = Q(tenant_id__gt=tenant) | Q(tenant_id=tenant, id__gt=customer)


def _pieces(who: Scope) -> list[Piece]:
    """The customer's items, redacted, as far as something is left of them; none where the tenant takes no part."""
    try:
        with scope(who), transaction.atomic():
            if not choices.standing().takes_part:
                return []
            rows = SessionLog.objects.only("tenant_id", "customer_id", "edited_at", "decisions", "open_items")
            return [
                piece
                for row in rows.order_by("-session_last_activity_at", "-id")[:NEWEST]
                for piece in _of(row)
            ]
    except VaultError:
        return []  # their key is gone, or out of reach: nothing of theirs is used


def _of(row: SessionLog) -> Iterator[Piece]:
    try:
        said = ((Kind.DECISION, row.decisions), (Kind.OPEN_ITEM, row.open_items))
    except Damaged:
        return
    for kind, items in said:
        for item in items:
            if text := redact(item["text"]):
                yield Piece(row.id, row.edited_at, kind, text)


def _vectors(texts: Sequence[str]) -> list[Vector]:
    found: list[Vector] = []
    for begin in range(0, len(texts), BATCH):
        made = asyncio.run(embedding.vectors(texts[begin : begin + BATCH], SYSTEM))
        if made is None:
            raise NoEmbedder
        found += made
    return found


# --- keeping ---------------------------------------------------------------------------------------------


def _keep(run: UUID, wordings: Mapping[_Key, list[Phrase]]) -> dict[_Key, _Group]:
    """Keep the groups, which nobody sees until they are opened."""
    kept = {}
    with scope(SYSTEM), transaction.atomic():
        _lock_while_running()
        for key, found in wordings.items():
            row = PooledGroup(run=run, kind=key[0], phrases=len(found))
            row.wording = [" ".join(phrase) for phrase in found]
            row.save(force_insert=True)
            kept[key] = _Group(row.id, found)
    return kept


def _support(
    who: Scope,
    pieces: list[tuple[Piece, Vector]],
    large: Mapping[str, Leaders],
    groups: Mapping[_Key, _Group],
) -> None:
    """Record what of the customer's stands behind which group, unless their tenant has left meanwhile."""
    behind: dict[tuple[UUID, UUID], set[int]] = defaultdict(set)
    made_from = {piece.wrap_up: piece.edited_at for piece, _ in pieces}
    for piece, vector in pieces:
        key = _group_of(piece, vector, large)
        group = groups.get(key) if key is not None else None
        if group is not None:
            said = phrases(piece.text)
            numbers = {number for number, phrase in enumerate(group.phrases) if phrase in said}
            behind[piece.wrap_up, group.id] |= numbers
    if not behind:
        return
    try:
        with scope(who), transaction.atomic():
            _lock_while_running()
            if not choices.standing().takes_part:
                return
            asked = SessionLog.objects.filter(id__in={wrap_up for wrap_up, _ in behind})
            stands = {id for id, edited in asked.values_list("id", "edited_at") if made_from[id] == edited}
            PooledSupport.objects.bulk_create(
                PooledSupport(wrap_up_id=wrap_up, group_id=group, phrases=sorted(numbers))
                for (wrap_up, group), numbers in sorted(behind.items())
                if wrap_up in stands and numbers
            )
    except IntegrityError:
        return  # a wrap-up was deleted at this moment: they stand behind nothing until the next review


def _open(run: UUID) -> int:
    """Show the groups in place of those before, as far as enough tenants stand behind them now; how many."""
    with scope(SYSTEM), transaction.atomic(), connection.cursor() as cursor:
        _lock_while_running()
        cursor.execute("SELECT app.open_pool(%s, %s)", [run, ENTERS])
        return int(cursor.fetchone()[0])


def _lock_while_running() -> None:
    one_at_a_time(choices.LOCK)
    if not choices.running():
        raise SwitchedOff
