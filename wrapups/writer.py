"""Writes one wrap-up: reads the session, asks the model, gives what may be stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from brain.domain.prompt import day_in_words
from memberintel.accounts.queries import person
from memberintel.lib import tokens
from memberintel.lib.extract import Line
from memberintel.lib.ids import uuid7
from memberintel.lib.language import differ
from memberintel.llm import windows
from memberintel.llm.seam import complete
from memberintel.llm.types import Completion
from memberintel.tenancy.context import Scope
from memberintel.tenancy.rows import insert
from memberintel.tenancy.unit import unit
from sessions import queries as sessions
from wrapups import marks, prompting, queries
from wrapups.domain.draft import CAP_WORDS, AskShorter, Draft, Keep, Kept, WrapUpOutput, merge, validate
from wrapups.domain.open_items import Earlier, OpenItem, short_ids
from wrapups.handover import actions as handover
from wrapups.jobs import Claim, Store
from wrapups.models import MarkState, SessionLog
from wrapups.prompting import Said
from wrapups.work import NothingMade

LEAST_WORDS = 40  # of one part's notes, however many parts a session has; the merged notes keep to the cap
_ANSWER_KEPT = 20_000  # characters of a too long answer that are shown to the model again


@dataclass(frozen=True)
class Provenance:
    """Who wrote a wrap-up: "provider:model", and the version of the prompt."""

    model: str
    prompt_version: str


@dataclass(frozen=True)
class _Around:
    """What the notes are made with beside the transcript. `items` are the earlier open items by their short ids;
    a request has room for `most` tokens of the transcript."""

    zone: ZoneInfo
    most: int
    earlier: list[Earlier]
    items: dict[str, OpenItem]


@dataclass(frozen=True)
class _Stretch:
    """Messages that fit one request, and whether there are more after them."""

    said: list[Said]
    more: bool


@dataclass
class _Places:
    """Where things are: the place in the log by a message's number, an earlier open item by its short id."""

    seqs: dict[int, int]
    items: Mapping[str, OpenItem]


async def make(held: Claim, scope: Scope) -> Store:
    """Have the session's wrap-up written. Raises ModelError, NothingMade or a VaultError.

    A session larger than the model's window is read and written stretch by stretch, and merged: never more than a
    stretch of it is in memory.
    """
    around, stretch, requests = await unit(scope, _beginning, held, await windows.window("wrap_up"))
    most, by = around.most, ""
    cap = max(CAP_WORDS // requests, LEAST_WORDS)
    places = _Places({}, around.items)
    drafts: list[Draft] = []
    while stretch.said:
        places.seqs |= {one.line.number: one.seq for one in stretch.said}
        for piece in prompting.pieces(stretch.said, most):
            draft, by = await _ask(piece, around, cap, held, scope)
            drafts.append(draft)
        if not stretch.more:
            break
        stretch = await unit(scope, _stretch, held.session, stretch.said[-1], most)
    if not drafts:
        raise NothingMade("no_transcript")
    whole = merge(drafts) if len(drafts) > 1 else drafts[0]
    return storing(whole, Provenance(by, prompting.VERSION), places)


def _beginning(held: Claim, window: int) -> tuple[_Around, _Stretch, int]:
    """What the notes are made with, the first messages, and about how many requests the session takes."""
    around = _around(held, window)
    stretch = _stretch(held.session, None, around.most)
    if not stretch.more and len(stretch.said) > 1:
        return around, stretch, 1
    return around, stretch, sessions.transcript_tokens(held.session) // around.most + 1


def _stretch(session: UUID, last: Said | None, most: int) -> _Stretch:
    """The messages after `last` that fit one request."""
    after, count = (last.through, last.line.number) if last else (0, 0)
    lines = sessions.lines_after(session, after=after, count=count)
    read = 0

    def reading() -> Iterator[Said]:
        nonlocal read
        for one in lines:
            read += 1
            yield Said(Line(one.number, one.role, one.text), one.at, one.seq, one.through)

    said = list(prompting.stretch(reading(), most))
    return _Stretch(said, more=read > len(said))


def storing(draft: Draft, by: Provenance, places: _Places | None = None) -> Store:
    """What inserts the wrap-up, and the marks of the earlier open items it settled or came back to."""
    places = places or _Places({}, {})

    def store(held: Claim, now: datetime) -> None:
        open_items = _stored(draft.open_items, places)
        row = SessionLog(
            session_id=held.session,
            session_started_at=held.session_started_at,
            session_last_activity_at=held.session_last_activity_at,
            created_at=now,
            summary=draft.summary,
            decisions=_stored(draft.decisions, places),
            open_items=open_items,
            open_item_ids=[item["id"] for item in open_items],
            new_context=_stored(draft.new_context, places),
            next_session_note=draft.next_session_note,
            model=by.model[:120],
            prompt_version=by.prompt_version,
            word_count=draft.words,
            shortened=draft.shortened,
            dropped=draft.dropped,
        )
        if not insert(row, unless=("tenant_id", "session_id")):
            return  # written before, by a claim whose state was put back by hand
        then = held.session_last_activity_at  # notes can be written long after
        for settled in draft.settled:
            seq = places.seqs.get(settled.message)
            marks.by_session(places.items[settled.item], MarkState.RESOLVED, held.session, seq, then)
        for short in draft.touched:
            marks.by_session(places.items[short], MarkState.TOUCHED, held.session, None, then)
        handover.session_changed(held.session)

    return store


def _stored(items: Sequence[Kept], places: _Places) -> list[dict[str, object]]:
    return [
        {
            "id": str(uuid7()),
            "text": item.text,
            "messages": list(item.messages),
            "seqs": [places.seqs[number] for number in item.messages if number in places.seqs],
        }
        for item in items
    ]


def _around(held: Claim, window: int) -> _Around:
    zone = person().zone
    items = queries.open_before(held.session, held.session_last_activity_at)
    texts = queries.texts_of(items)
    named = short_ids(item.id for item in items if item.id in texts)
    by_id = {item.id: item for item in items}
    earlier = [Earlier(short, texts[item], _day(by_id[item], zone)) for short, item in named.items()]
    beside = tokens.count(prompting.open_before(earlier)) if earlier else 0
    return _Around(
        zone=zone,
        most=prompting.budget(window, beside),
        earlier=earlier,
        items={short: by_id[item] for short, item in named.items()},
    )


def _day(item: OpenItem, zone: ZoneInfo) -> str:
    return day_in_words(item.session_started_at.astimezone(zone).date())


async def _ask(
    said: Sequence[Said], around: _Around, cap: int, held: Claim, scope: Scope
) -> tuple[Draft, str]:
    """A valid draft of this stretch, and "provider:model" of who wrote it; asked again while it is too long, and once
    where it is in another language than the customer's. Notes in another language are better than none."""
    roles = {one.line.number: one.line.role for one in said}
    own = "\n".join(one.line.text for one in said if one.line.role == "customer")
    first = prompt = prompting.first_prompt(said, around.zone, cap, around.earlier)
    tries, told = 0, False
    while True:
        tries += 1
        answer = await complete("wrap_up", prompt, scope=scope, output=WrapUpOutput, session=held.session)
        intent = validate(_output(answer), roles, tries=tries, cap=cap, earlier=around.earlier)
        if isinstance(intent, Keep) and not told and differ("\n".join(intent.draft.texts), own):
            told = True
            prompt = prompting.in_their_language(first, answer.text[:_ANSWER_KEPT], cap)
            continue
        if isinstance(intent, Keep):
            return intent.draft, f"{answer.provider}:{answer.model}"
        if not isinstance(intent, AskShorter):
            raise NothingMade(intent.code)
        prompt = prompting.tighter(first, answer.text[:_ANSWER_KEPT], intent.words, cap)


def _output(answer: Completion[WrapUpOutput]) -> WrapUpOutput:
    if answer.output is None:
        raise NothingMade("no_output")
    return answer.output
