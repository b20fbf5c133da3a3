"""Turns what a model returned into a wrap-up that may be stored, or says what to do instead.

Nothing here asks a model or touches a row: the writer carries out the intents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from memberintel.lib.extract import sentences
from memberintel.lib.sanitise import kept
from memberintel.lib.text import count_words, shorten, shorten_words, visible
from wrapups.domain.open_items import Earlier, restated

CAP_WORDS = 400
TRIES_AT_THE_CAP = 3  # the first answer and two more with a tighter prompt

_SUMMARY_SENTENCES = 3
_FIELD_CHARACTERS = {"summary": 3000, "item": 800, "note": 800}
_RAW_CHARACTERS = 60_000
_ITEMS_READ = 100  # of one list: more than fit under any cap that is asked for, and read in no time

Role = Literal["customer", "advisor"]


class Item(BaseModel):
    """One decision, open item or fact, and the numbers of the messages it rests on."""

    model_config = ConfigDict(extra="ignore")
    text: str = Field(description="One short statement, understandable without the conversation.")
    messages: list[int] = Field(description="Numbers of the messages this rests on.")


class Resolved(BaseModel):
    """An open item of an earlier session that this one settled, by its short id, and the message that did."""

    model_config = ConfigDict(extra="ignore")
    item: str = Field(description="The short id of the earlier open item.")
    message: int = Field(description="Number of the message that settled it.")


class WrapUpOutput(BaseModel):
    """The notes on one finished session."""

    model_config = ConfigDict(extra="ignore")
    summary: str = Field(description="Two or three sentences: what it was about and where it ended.")
    decisions: list[Item] = Field(
        description="What the customer decided, each resting on a customer message."
    )
    open_items: list[Item] = Field(description="What is still to be done or answered.")
    new_context: list[Item] = Field(description="Lasting facts and preferences learned about the customer.")
    next_session_note: str = Field(description="One sentence: what to take up first next time.")
    resolved: list[Resolved] = Field(
        default_factory=list, description="Earlier open items this session settled."
    )


@dataclass(frozen=True)
class Kept:
    """An item that may be stored; `messages` are numbers of this session's messages, never empty."""

    text: str
    messages: tuple[int, ...]


@dataclass(frozen=True)
class Settled:
    """An earlier open item, by its short id, and the message that settled it."""

    item: str
    message: int


@dataclass(frozen=True)
class Draft:
    """A wrap-up as it may be stored. `dropped` counts items refused or resting on nothing.

    `settled` are the earlier open items this session resolved, `touched` those it came back to without.
    """

    summary: str
    decisions: tuple[Kept, ...]
    open_items: tuple[Kept, ...]
    new_context: tuple[Kept, ...]
    next_session_note: str
    dropped: int = 0
    shortened: bool = False
    settled: tuple[Settled, ...] = ()
    touched: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """All it says."""
        items = (*self.decisions, *self.open_items, *self.new_context)
        return (self.summary, self.next_session_note, *(item.text for item in items))

    @property
    def words(self) -> int:
        """Words of all texts together, which the cap limits."""
        return sum(map(count_words, self.texts))


@dataclass(frozen=True)
class Keep:
    """Store this."""

    draft: Draft


@dataclass(frozen=True)
class AskShorter:
    """Ask again with a tighter prompt: it had this many words."""

    words: int


@dataclass(frozen=True)
class Reject:
    """No valid wrap-up can be made of it; `code` is stored, and holds no content."""

    code: str


Intent = Keep | AskShorter | Reject


def validate(
    output: WrapUpOutput,
    roles: Mapping[int, Role],
    *,
    tries: int,
    cap: int = CAP_WORDS,
    earlier: Sequence[Earlier] = (),
) -> Intent:
    """What to do with an answer, given who wrote each message, how often the model has been asked so far (1 for the
    first answer), and the open items of earlier sessions it was shown."""
    draft = _carried(_checked(output, roles), output.resolved, roles, earlier)
    if not draft.summary:
        return Reject("no_summary")
    if not draft.next_session_note:
        return Reject("no_note")
    if draft.words > cap and tries < TRIES_AT_THE_CAP:
        return AskShorter(draft.words)
    return Keep(_fitted(draft, cap))


def merge(parts: Sequence[Draft], *, cap: int = CAP_WORDS) -> Draft:
    """One draft of the drafts of a long session's parts, in their order, within the cap."""
    openings = [sentence for part in parts for sentence in sentences(part.summary)[:1]]
    summary = openings[:1] + openings[-2:] if len(openings) > _SUMMARY_SENTENCES else openings
    merged = Draft(
        summary=" ".join(summary),
        decisions=_distinct(item for part in parts for item in part.decisions),
        open_items=_distinct(item for part in parts for item in part.open_items),
        new_context=_distinct(item for part in parts for item in part.new_context),
        next_session_note=parts[-1].next_session_note,
        dropped=sum(part.dropped for part in parts),
        shortened=any(part.shortened for part in parts),
        settled=_once(settled for part in parts for settled in part.settled),
    )
    done = {settled.item for settled in merged.settled}
    touched = dict.fromkeys(item for part in parts for item in part.touched if item not in done)
    return _fitted(replace(merged, touched=tuple(touched)), cap)


def _checked(output: WrapUpOutput, roles: Mapping[int, Role]) -> Draft:
    decisions, first = _items(output.decisions, roles, customer_only=True)
    open_items, second = _items(output.open_items, roles)
    new_context, third = _items(output.new_context, roles)
    return Draft(
        summary=_prose(output.summary),
        decisions=decisions,
        open_items=open_items,
        new_context=new_context,
        next_session_note=_prose(output.next_session_note),
        dropped=first + second + third,
    )


def _carried(
    draft: Draft, resolved: Sequence[Resolved], roles: Mapping[int, Role], earlier: Sequence[Earlier]
) -> Draft:
    """The draft with what became of earlier open items: settled by a message there is, and not written down again.

    One that is restated word for word stays the item it was.
    """
    known = {each.short for each in earlier}
    settled = _once(
        Settled(each.item.strip().strip("[]"), each.message)
        for each in resolved[:_ITEMS_READ]
        if each.item.strip().strip("[]") in known and each.message in roles
    )
    again = {item: restated(item.text, earlier) for item in draft.open_items}
    done = {each.item for each in settled}
    touched = dict.fromkeys(short for short in again.values() if short and short not in done)
    new = tuple(item for item in draft.open_items if again[item] is None)
    return replace(draft, open_items=new, settled=settled, touched=tuple(touched))


def _once(settled: Iterable[Settled]) -> tuple[Settled, ...]:
    """Each item once, with the last message that settled it."""
    return tuple({each.item: each for each in settled}.values())


def _items(
    items: Sequence[Item], roles: Mapping[int, Role], *, customer_only: bool = False
) -> tuple[tuple[Kept, ...], int]:
    """The items that can be traced and may be stored, each text once; and how many could not."""
    kept: list[Kept] = []
    dropped = max(0, len(items) - _ITEMS_READ)
    for item in items[:_ITEMS_READ]:
        messages = tuple(sorted({number for number in item.messages if number in roles}))
        text = _line(item.text)
        if customer_only and not any(roles[number] == "customer" for number in messages):
            messages = ()
        if not messages or not count_words(text):
            dropped += 1
        else:
            kept.append(Kept(text, messages))
    return _distinct(kept), dropped


def _distinct(items: Iterable[Kept]) -> tuple[Kept, ...]:
    return tuple({item.text.casefold(): item for item in reversed(tuple(items))}.values())[::-1]


def _line(text: str) -> str:
    """One clean line, without the bullet a model may have put before it; empty when it is refused."""
    flat = " ".join(visible(text).split()).lstrip("-*•–— ")
    return kept(flat, limit=_RAW_CHARACTERS)


def _prose(text: str) -> str:
    """Clean prose on one line. A refused sentence goes alone, so that one line of a hostile message repeated in
    a summary does not cost the customer the whole wrap-up."""
    whole = _line(text)
    if whole:
        return whole if count_words(whole) else ""
    kept = " ".join(part for part in map(_line, sentences(visible(text)[:_RAW_CHARACTERS])) if part)
    kept = _line(kept)  # harmless halves can make a harmful whole
    return kept if count_words(kept) else ""


def _fitted(draft: Draft, cap: int) -> Draft:
    """The draft within the cap and the field limits: whole items go, from the end of the last list on."""
    fitted = replace(
        draft,
        summary=shorten(_first(draft.summary, _SUMMARY_SENTENCES), _FIELD_CHARACTERS["summary"]),
        next_session_note=shorten(_first(draft.next_session_note, 1), _FIELD_CHARACTERS["note"]),
        decisions=_capped(draft.decisions),
        open_items=_capped(draft.open_items),
        new_context=_capped(draft.new_context),
    )
    while fitted.words > cap and (fitted.new_context or fitted.open_items or fitted.decisions):
        fitted = _without_last(fitted)
    if fitted.words > cap:
        note = shorten_words(fitted.next_session_note, cap // 4)
        fitted = replace(
            fitted, next_session_note=note, summary=shorten_words(fitted.summary, cap - count_words(note))
        )
    return fitted if fitted == draft else replace(fitted, shortened=True)


def _without_last(draft: Draft) -> Draft:
    if draft.new_context:
        return replace(draft, new_context=draft.new_context[:-1])
    if draft.open_items:
        return replace(draft, open_items=draft.open_items[:-1])
    return replace(draft, decisions=draft.decisions[:-1])


def _capped(items: tuple[Kept, ...]) -> tuple[Kept, ...]:
    return tuple(replace(item, text=shorten(item.text, _FIELD_CHARACTERS["item"])) for item in items)


def _first(text: str, most: int) -> str:
    found = sentences(text)
    return text if len(found) <= most else " ".join(found[:most])
