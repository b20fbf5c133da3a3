"""What the model sees of a session: a pure function of its log.

Every turn becomes two messages, the customer's and the advisor's; only the last one, while unanswered, is
the customer's alone. So roles alternate by construction, whatever the log holds and whatever the texts say.

Prefix stability rests on one rule: how a turn is rendered is settled before the next turn begins. Between
two turn starts messages are only ever added at the end (the provider reuses its cache of all before), except
where `compaction_applied` or `prompt_refreshed` says otherwise.

Tool traffic of a turn is known to the turn that made it, while it runs; here, answers carry its residue
(TurnMemory), so a call can never be parted from its result.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

from memberintel.llm.types import Message, Prompt, Tool
from sessions.domain import events as kinds
from sessions.domain import marks, turn_memory
from sessions.domain.events import Event
from sessions.domain.turns import Attempt, Turn, fold


def provider_prompt(events: Sequence[Event]) -> Prompt:
    """The first request for the turn these events end in. What its tools bring follows it, see `rounds`."""
    return Prompt(system_sections(events), tuple(llm_context(events)), tools_offered(events))


def tools_offered(events: Sequence[Event]) -> tuple[Tool, ...]:
    """The tools a model is offered: those the prompt was frozen with, which the code may no longer have."""
    frozen = prompt_event(events)
    return () if frozen is None else kinds.tools_offered(frozen)


def llm_context(events: Sequence[Event]) -> list[Message]:
    """The messages the model sees; the same for the whole log and for its live part."""
    summary = newest_compaction(events)
    turns = live_turns(events)
    messages = [] if summary is None else _summary(summary)
    for turn in turns[:-1]:
        messages += (_question(turn), _answer(turn))
    for turn in turns[-1:]:
        messages += _last(turn)
    return messages


def live_turns(events: Sequence[Event]) -> list[Turn]:
    """The turns the model sees word for word: those no summary stands for."""
    return fold(_tail(events, newest_compaction(events)))


def system_sections(events: Sequence[Event]) -> tuple[str, ...]:
    """The texts of the frozen system prompt in its order; () before it is frozen, and for an import."""
    frozen = prompt_event(events)
    return () if frozen is None else tuple(_section_texts(frozen))


# --- the live part ---------------------------------------------------------------------------------------


def live_start(events: Sequence[Event]) -> int:
    """The sequence number the live part starts from: the one after what the newest summary stands for.

    The live part is every event from there on (the compaction itself is among them), and before those the
    newest event that states the prompt, if it is older. A loader that asks the database for just these gets
    the same context.
    """
    return _start(newest_compaction(events))


def live(events: Sequence[Event]) -> list[Event]:
    """The live part, see `live_start`."""
    tail = list(_tail(events, newest_compaction(events)))
    frozen = prompt_event(events)
    if frozen is not None and (not tail or frozen.seq < tail[0].seq):
        return [frozen, *tail]
    return tail


def newest_compaction(events: Sequence[Event]) -> Event | None:
    """The compaction whose summary the model sees, if there is one."""
    for event in reversed(events):
        if event.kind == kinds.COMPACTION_APPLIED and kinds.known(event):
            return event
    return None


def prompt_event(events: Sequence[Event]) -> Event | None:
    """The event that states the system prompt as it stands."""
    for event in reversed(events):
        if event.kind in kinds.PROMPT_KINDS and kinds.known(event):
            return event
    return None


def part_digests(events: Sequence[Event]) -> list[str]:
    """The digests of the parts the model has before it: those of the prompt as it stands, and of what was recalled
    for messages that no compaction covers."""
    prompt = prompt_event(events)
    recalled = [event for event in live(events) if event.kind == kinds.RECALL]
    stated = [*([prompt] if prompt else []), *recalled]
    return [part["digest"] for event in stated for part in event.payload.get("sections", ())]


def _start(compaction: Event | None) -> int:
    return 1 if compaction is None else int(compaction.payload.get("replaces_through_seq", 0)) + 1


def _tail(events: Sequence[Event], compaction: Event | None) -> Sequence[Event]:
    if compaction is None:
        return events
    return events[bisect_right(events, _start(compaction) - 1, key=attrgetter("seq")) :]


# --- rendering -------------------------------------------------------------------------------------------


def summary_text(summary: str, method: str) -> str:
    """A summary as the model sees it."""
    label = marks.EXTRACT_LABEL if method == "extractive" else marks.SUMMARY_LABEL
    return marks.enclose("summary", label, summary)


def said_by_customer(turn: Turn) -> str:
    """The question of a turn as the model sees it, without what was recalled for it."""
    return marks.NO_QUESTION if turn.question is None else _said(turn.question, marks.EMPTY_MESSAGE)


def said_by_advisor(turn: Turn) -> str:
    """What became of the answer of a turn that is over, as the model sees it."""
    return _answer(turn).text


def _summary(compaction: Event) -> list[Message]:
    text = kinds.text_of(compaction, "summary") if kinds.readable(compaction) else marks.UNREADABLE
    method = str(compaction.payload.get("method"))
    return [Message("user", summary_text(text, method)), Message("assistant", marks.SUMMARY_READ)]


def _last(turn: Turn) -> list[Message]:
    """The last turn: until it is answered a retry must send the same bytes, so what failed is left out."""
    if turn.answer is not None:
        return [_question(turn), _answer(turn)]
    return [] if turn.question is None else [_question(turn)]


def _question(turn: Turn) -> Message:
    text = said_by_customer(turn)
    if turn.question is None or turn.recall is None:
        return Message("user", text)
    return Message("user", marks.joined(text, *_section_texts(turn.recall)))


def _answer(turn: Turn) -> Message:
    if turn.answer is None:
        return Message("assistant", _cut_off(turn, turn.latest()))
    text = _said(turn.answer, marks.EMPTY_ANSWER)
    mark = marks.STOPPED if turn.answer.payload.get("outcome") == "stopped" else ""
    memory = turn_memory.render(turn_memory.of_content(turn.answer.content))
    return Message("assistant", marks.joined(text, mark, memory) if mark or memory else text)


def _cut_off(turn: Turn, latest: Attempt | None) -> str:
    """What stands for an answer that never ended. Tools of every attempt count: their writes are done."""
    if latest is None:
        return marks.NO_ANSWER
    text = latest.text()
    traffic = [call for number in sorted(turn.attempts) for call in turn.attempts[number].tools()]
    memory = turn_memory.render(turn_memory.compute(traffic))
    if not text.strip():
        return marks.joined(marks.NO_ANSWER, memory)
    return marks.joined(text, marks.INTERRUPTED, memory)


def _said(event: Event, empty: str) -> str:
    """The event's text, byte for byte; providers refuse a blank message, so a fixed line stands for one."""
    if not kinds.readable(event):
        return marks.UNREADABLE
    text = kinds.text_of(event)
    return text if text.strip() else empty


def _section_texts(event: Event) -> list[str]:
    """Section texts were rendered (delimited, labelled, escaped) when they were stored: taken as they are."""
    return [
        text if (text := section.get("text")) is not None else marks.removed_section(section["name"])
        for section in kinds.sections_of(event)
    ]
