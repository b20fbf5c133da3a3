"""The events of a session's log: their kinds, what each carries, and its exact bytes.

Every kind has two parts: `payload`, which may stand in the clear (numbers, codes, digests), and `content`,
which is sealed (everything anybody said). Both are versioned together by `payload["v"]`; a missing one means
1. The version of a kind goes up only when an old reader would misread it: new optional keys need none, and
readers take keys they do not know in their stride. A kind or version this code does not know is shown in the
transcript and skipped for the model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, NotRequired, TypedDict, cast
from uuid import UUID

from pydantic_core import from_json

from memberintel.llm.types import Prompt, Tool

SESSION_OPENED: Final = "session_opened"
USER_MESSAGE: Final = "user_message"
CONTEXT_FROZEN: Final = "context_frozen"
RECALL: Final = "recall"
PENDING_STATE: Final = "pending_state"
ASSISTANT_TURN: Final = "assistant_turn"
TURN_FAILED: Final = "turn_failed"
COMPACTION_APPLIED: Final = "compaction_applied"
PROMPT_REFRESHED: Final = "prompt_refreshed"
SESSION_CLOSED: Final = "session_closed"

VERSIONS: Final[Mapping[str, int]] = {
    SESSION_OPENED: 1,
    USER_MESSAGE: 1,
    CONTEXT_FROZEN: 1,
    RECALL: 1,
    PENDING_STATE: 1,
    ASSISTANT_TURN: 1,
    TURN_FAILED: 1,
    COMPACTION_APPLIED: 1,
    PROMPT_REFRESHED: 1,
    SESSION_CLOSED: 1,
}
KINDS: Final = frozenset(VERSIONS)

PROMPT_KINDS: Final = frozenset({CONTEXT_FROZEN, PROMPT_REFRESHED})
"""Kinds that state the whole system prompt anew."""

TURN_KINDS: Final = frozenset({USER_MESSAGE, PENDING_STATE, ASSISTANT_TURN, TURN_FAILED})
"""Kinds that are a part of a turn's words: what was asked, and what became of the answer."""

TOUCHING_KINDS: Final = frozenset({USER_MESSAGE, PENDING_STATE, ASSISTANT_TURN})
"""Kinds that move a session to the front of the list."""

UNREADABLE: Final[Mapping[str, Any]] = {"unreadable": True}
"""The content a loader gives an event whose sealed bytes cannot be opened."""

Outcome = Literal["complete", "stopped"]
Method = Literal["model", "extractive"]


class Undecodable(ValueError):
    """The bytes are not the content of an event."""


@dataclass(frozen=True, slots=True)
class Event:
    """One row of the log, opened: `payload` was in the clear, `content` was sealed."""

    seq: int
    id: UUID
    kind: str
    turn: UUID | None
    attempt: int
    payload: Mapping[str, Any]
    content: Mapping[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True)
class Draft:
    """What a writer hands to the log; the log adds sequence number, id and time."""

    kind: str
    payload: Mapping[str, Any]
    content: Mapping[str, Any]


# --- what each kind carries ------------------------------------------------------------------------------


class Payload(TypedDict):
    """What every payload has."""

    v: int


class SectionDigest(TypedDict):
    """A part of the prompt or of a recall: its section's name, the digest its text is stored under, and what
    that text weighs, so that no turn counts it again."""

    name: str
    digest: str
    tokens: NotRequired[int]


class Section(TypedDict):
    """A section with its text as the loader found it; `None` when the text has been removed since."""

    name: str
    text: str | None
    removed_on: NotRequired[str | None]


class ToolTraffic(TypedDict):
    """One call with what came back; `arguments` and `result` are the exact texts, `None` while running."""

    id: str
    name: str
    arguments: str
    result: str | None
    error: bool


class DocumentChanged(TypedDict):
    """A document a tool wrote: which, its new version, the change in one line."""

    document: str
    version: int | None
    change: str


class ToolFailed(TypedDict):
    """A tool that failed, and how, in one line."""

    tool: str
    error: str


class Memory(TypedDict):
    """The residue of a turn's tool traffic as it is stored."""

    documents_changed: list[DocumentChanged]
    failures: list[ToolFailed]
    key_findings: list[str]


class SessionOpened(Payload):
    """Clear part of `session_opened`; `continues` is the id of the session this one follows."""

    version: int
    off_record: bool
    continues: NotRequired[str]
    imported: NotRequired[bool]


class UserMessage(Payload):
    """Clear part of `user_message`."""

    tokens: int


class Sections(Payload):
    """Clear part of `context_frozen` and `prompt_refreshed`; `late` when recall was missing something."""

    sections: list[SectionDigest]
    tools_digest: str
    late: NotRequired[bool]


class Recall(Payload):
    """Clear part of `recall`; `late` when something did not come by the deadline: the turn ran without it."""

    sections: list[SectionDigest]
    late: bool


class PendingState(Payload):
    """Clear part of `pending_state`: the tokens of this delta's text."""

    tokens: NotRequired[int]


class AssistantTurn(Payload):
    """Clear part of `assistant_turn`: `tokens` of its text."""

    outcome: Outcome
    tokens: int
    model: str
    provider: str
    imported: NotRequired[bool]


class TurnFailed(Payload):
    """Clear part of `turn_failed`."""

    code: str
    retryable: bool


class CompactionApplied(Payload):
    """Clear part of `compaction_applied`: the summary stands for everything up to that number, inclusive.

    `tokens_before` and `tokens_after` are of the whole request, `tokens` of the summary as the model sees it.
    """

    replaces_through_seq: int
    method: Method
    tokens_before: int
    tokens_after: int
    tokens: NotRequired[int]


class SessionClosed(Payload):
    """Clear part of `session_closed`; `by` is who or what closed it, in one word."""

    reason: str
    by: str


class TextContent(TypedDict):
    """Sealed part of `user_message`."""

    text: str


class ToolsContent(TypedDict):
    """Sealed part of `context_frozen` and `prompt_refreshed`: the definitions of the tools a model is offered, as
    (name, description, schema), texts exact. They belong to the frozen prefix, whatever the next release offers."""

    offered: list[list[str]]


class AnswerContent(TypedDict):
    """Sealed part of `pending_state`: what came since the last flush."""

    text: str
    reasoning: str
    tools: list[ToolTraffic]


class FullAnswerContent(AnswerContent):
    """Sealed part of `assistant_turn`: the whole answer of its attempt."""

    memory: Memory


class FailureContent(TypedDict):
    """Sealed part of `turn_failed`: what a person is told."""

    message: str


class SummaryContent(TypedDict):
    """Sealed part of `compaction_applied`."""

    summary: str


# --- writing ---------------------------------------------------------------------------------------------


def _draft(kind: str, payload: Mapping[str, Any], content: Mapping[str, Any] | None = None) -> Draft:
    return Draft(kind, {"v": VERSIONS[kind]} | dict(payload), content or {})


def session_opened(
    *, off_record: bool = False, continues: UUID | None = None, imported: bool = False
) -> Draft:
    """A session begins; `continues` names the one it takes up again."""
    payload: dict[str, Any] = {"version": 1, "off_record": off_record}
    if continues is not None:
        payload["continues"] = str(continues)
    if imported:
        payload["imported"] = True
    return _draft(SESSION_OPENED, payload)


def user_message(*, text: str, tokens: int) -> Draft:
    """What the customer wrote, with its estimated tokens."""
    return _draft(USER_MESSAGE, {"tokens": tokens}, TextContent(text=text))


def context_frozen(
    *, sections: Sequence[SectionDigest], tools: Sequence[Tool] = (), late: bool = False
) -> Draft:
    """The system prompt and tools of the session when its first message had arrived: sections by digest.

    `late` when something of what was recalled for the message did not come in time.
    """
    return _prompt(CONTEXT_FROZEN, sections, tools, late)


def prompt_refreshed(
    *, sections: Sequence[SectionDigest], tools: Sequence[Tool] = (), late: bool = False
) -> Draft:
    """The system prompt and tools anew: after a compaction, or because a source was removed."""
    return _prompt(PROMPT_REFRESHED, sections, tools, late)


def _prompt(kind: str, sections: Sequence[SectionDigest], tools: Sequence[Tool], late: bool) -> Draft:
    payload: dict[str, Any] = {
        "sections": list(sections),
        "tools_digest": Prompt((), (), tuple(tools)).digest(),
    }
    if late:
        payload["late"] = True
    defined = [[tool.name, tool.description, tool.schema] for tool in tools]
    return _draft(kind, payload, ToolsContent(offered=defined) if defined else None)


def recall(*, sections: Sequence[SectionDigest] = (), late: bool = False) -> Draft:
    """What was recalled for a later message; `late` when something did not come in time, empty when nothing did."""
    return _draft(RECALL, {"sections": list(sections), "late": late})


def pending_state(
    *, text: str = "", reasoning: str = "", tools: Sequence[ToolTraffic] = (), tokens: int | None = None
) -> Draft:
    """What of an answer came since the last flush. A call flushed while running is flushed again, whole,
    with its result."""
    payload = {} if tokens is None else {"tokens": tokens}
    return _draft(PENDING_STATE, payload, AnswerContent(text=text, reasoning=reasoning, tools=list(tools)))


def assistant_turn(
    *,
    text: str,
    outcome: Outcome = "complete",
    reasoning: str = "",
    tools: Sequence[ToolTraffic] = (),
    memory: Memory | None = None,
    tokens: int,
    model: str,
    provider: str,
    imported: bool = False,
) -> Draft:
    """A finished or stopped answer, whole."""
    payload: dict[str, Any] = {"outcome": outcome, "tokens": tokens, "model": model, "provider": provider}
    if imported:
        payload["imported"] = True
    kept = memory or Memory(documents_changed=[], failures=[], key_findings=[])
    content = FullAnswerContent(text=text, reasoning=reasoning, tools=list(tools), memory=kept)
    return _draft(ASSISTANT_TURN, payload, content)


def turn_failed(*, code: str, retryable: bool, message: str) -> Draft:
    """An attempt that ended without an answer, and what the person is told."""
    return _draft(TURN_FAILED, {"code": code, "retryable": retryable}, FailureContent(message=message))


def compaction_applied(
    *,
    replaces_through_seq: int,
    summary: str,
    method: Method,
    tokens_before: int,
    tokens_after: int,
    tokens: int | None = None,
) -> Draft:
    """From here on the summary stands for every event up to that sequence number, inclusive."""
    payload: dict[str, Any] = {
        "replaces_through_seq": replaces_through_seq,
        "method": method,
        "tokens_before": tokens_before,
        "tokens_after": tokens_after,
    }
    if tokens is not None:
        payload["tokens"] = tokens
    return _draft(COMPACTION_APPLIED, payload, SummaryContent(summary=summary))


def session_closed(*, reason: str, by: str) -> Draft:
    """The session is read-only from here on."""
    return _draft(SESSION_CLOSED, {"reason": reason, "by": by})


# --- bytes -----------------------------------------------------------------------------------------------


def encode(content: Mapping[str, Any]) -> bytes:
    """The content as compact JSON in UTF-8, keys in the order given.

    Raises `ValueError` for numbers JSON does not have. A lone surrogate, which UTF-8 cannot hold, is kept
    by escaping: a durable write never fails on a character.
    """
    try:
        return _json(content, ascii_only=False).encode()
    except UnicodeEncodeError:
        return _json(content, ascii_only=True).encode()


def _json(content: Mapping[str, Any], *, ascii_only: bool) -> str:
    return json.dumps(content, ensure_ascii=ascii_only, allow_nan=False, separators=(",", ":"))


def decode(sealed: bytes) -> dict[str, Any]:
    """The content `encode` was given, keys in the same order. Raises `Undecodable`."""
    try:
        content = read_json(sealed)
    except (ValueError, RecursionError) as error:
        raise Undecodable("not JSON") from error
    if not isinstance(content, dict):
        raise Undecodable("not an object")
    return cast("dict[str, Any]", content)


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text, as `json.loads`, in a third of its time: decoding is most of loading a log."""
    try:
        return from_json(text)
    except ValueError:  # stricter than json.loads: lone surrogates, deep nesting
        return json.loads(text)


# --- reading ---------------------------------------------------------------------------------------------


def known(event: Event) -> bool:
    """Whether this code can read the event's kind in its version."""
    newest = VERSIONS.get(event.kind)
    return newest is not None and int(event.payload.get("v", 1)) <= newest


def readable(event: Event) -> bool:
    """Whether the event's content could be opened."""
    return not event.content.get("unreadable", False)


def text_of(event: Event, key: str = "text") -> str:
    """A text of the event's content, "" when it has none."""
    return str(event.content.get(key) or "")


def tools_of(event: Event) -> list[ToolTraffic]:
    """The tool traffic of a pending state or an answer."""
    return cast("list[ToolTraffic]", event.content.get("tools") or [])


def tools_offered(event: Event) -> tuple[Tool, ...]:
    """The tools a frozen prompt offers, in its order."""
    return tuple(Tool(*defined) for defined in event.content.get("offered") or ())


def sections_of(event: Event) -> list[Section]:
    """The sections of a frozen prompt or a recall with the texts the loader filled in; in their order."""
    filled = event.content.get("sections")
    if filled is not None:
        return cast("list[Section]", filled)
    named = cast("list[SectionDigest]", event.payload.get("sections") or [])
    return [Section(name=section["name"], text=None) for section in named]
