"""Conversations brought from elsewhere: the format `memberintel-transcript/1`, read and checked as a whole.

`{format, customer, advisor, timezone, sessions: [{started_at, messages: [{role, at, text}]}]}`, times local
to `timezone` and without an offset. Order is that of the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal
from zoneinfo import ZoneInfo, available_timezones

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from memberintel.lib.text import clean

FORMAT: Final = "memberintel-transcript/1"
SKEW: Final = timedelta(minutes=5)  # what two clocks may be apart before a time counts as in the future
MOST_FAULTS: Final = 10

Role = Literal["customer", "advisor"]


@dataclass(frozen=True, slots=True)
class Said:
    """One message, cleaned, at its time in UTC."""

    role: Role
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """One session of the file; it has at least one message, and none before `started_at`."""

    started_at: datetime
    messages: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class ConversationFile:
    """A whole file. `customer` and `advisor` are the names it gives them."""

    customer: str
    advisor: str
    timezone: str
    sessions: tuple[Conversation, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, and where, as a path into the file such as `sessions[3].messages[7].at`."""

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}" if self.place else self.reason


class BadFile(ValueError):
    """The file is not a conversation that can be imported; `faults` are the first few things wrong with it."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(map(str, self.faults)))


def parse(raw: bytes, *, now: datetime, most_characters: int) -> ConversationFile:
    """The file's content, texts cleaned of what cannot be stored. BadFile when anything in it is wrong."""
    try:
        given = _File.model_validate(_json(raw))
    except ValidationError as error:
        raise BadFile(list(_explained(error))) from None
    reader = _Reader(ZoneInfo(given.timezone), now, most_characters)
    sessions = tuple(reader.session(place, session) for place, session in enumerate(given.sessions))
    reader.refuse_repeated(sessions)
    if reader.faults:
        raise BadFile(reader.faults[:MOST_FAULTS])
    return ConversationFile(given.customer, given.advisor, given.timezone, sessions)


# --- shape -----------------------------------------------------------------------------------------------


def _cleaned(value: Any) -> Any:
    return clean(value) if isinstance(value, str) else value


def _moment(value: Any) -> datetime:
    wanted = "expected a local time such as 2024-03-09T18:30:00"
    if not isinstance(value, str) or len(value) < len("2024-03-09T18:30"):
        raise ValueError(wanted)
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(wanted) from None
    if at.tzinfo is not None:
        raise ValueError("times are local to the file's timezone: leave out the offset")
    if not 1971 <= at.year <= 2999:
        raise ValueError("a year from 1971 on is expected")
    return at


def _zone(value: Any) -> Any:
    if isinstance(value, str) and value not in available_timezones():
        raise ValueError("unknown; expected a name such as Europe/Berlin or America/New_York")
    return value


Text = Annotated[str, BeforeValidator(_cleaned)]
Moment = Annotated[datetime, BeforeValidator(_moment)]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Message(_Shape):
    role: Role
    at: Moment
    text: Text


class _Session(_Shape):
    started_at: Moment
    messages: list[_Message] = Field(min_length=1)


class _File(_Shape):
    format: Literal["memberintel-transcript/1"]
    customer: Text
    advisor: Text
    timezone: Annotated[str, BeforeValidator(_zone)]
    sessions: list[_Session] = Field(min_length=1)


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadFile([Fault("", f"not UTF-8 text (byte {error.start})")]) from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise BadFile([Fault(place, f"not JSON: {error.msg}")]) from None
    except (ValueError, RecursionError):
        raise BadFile([Fault("", "not JSON: nested too deeply, or a number too long")]) from None


_REASONS: Final = {
    "missing": "is missing",
    "extra_forbidden": "is not part of the format",
    "string_type": "expected a text",
    "list_type": "expected a list",
    "model_type": "expected an object",
    "too_short": "expected at least one",
}


def _explained(error: ValidationError) -> Iterator[Fault]:
    """The faults in words; what the file holds there is a customer's and is not quoted."""
    for found in error.errors(include_url=False, include_input=False)[:MOST_FAULTS]:
        reason = _REASONS.get(found["type"]) or found["msg"].removeprefix("Value error, ")
        if found["type"] == "literal_error":
            reason = f"expected {found['ctx']['expected']}"
        yield Fault(_path(found["loc"]) or "the file", reason)


def _path(parts: Sequence[int | str]) -> str:
    path = ""
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


# --- meaning ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Reader:
    zone: ZoneInfo
    now: datetime
    most_characters: int
    faults: list[Fault] = field(default_factory=list)

    def session(self, number: int, given: _Session) -> Conversation:
        """The session with its times in UTC."""
        place = f"sessions[{number}]"
        begun = self._utc(given.started_at, None)
        self._check_past(begun, f"{place}.started_at")
        before, messages = begun, []
        for at, message in enumerate(given.messages):
            said = self._message(f"{place}.messages[{at}]", message, before, first=at == 0)
            before = max(before, said.at)
            messages.append(said)
        return Conversation(begun, tuple(messages))

    def refuse_repeated(self, sessions: Sequence[Conversation]) -> None:
        """A session that begins like another is that other one, pasted twice."""
        seen: dict[tuple[datetime, Said], int] = {}
        for number, session in enumerate(sessions):
            first = seen.setdefault((session.started_at, session.messages[0]), number)
            if first != number:
                self._fault(f"sessions[{number}]", f"begins exactly like sessions[{first}]")

    def _message(self, place: str, given: _Message, before: datetime, *, first: bool) -> Said:
        at = self._utc(given.at, before)
        if at < before:
            than = "the start of its session" if first else "the message before it"
            self._fault(f"{place}.at", f"is earlier than {than}")
        self._check_past(at, f"{place}.at")
        if not given.text.strip():
            self._fault(f"{place}.text", "is empty")
        elif len(given.text) > self.most_characters:
            self._fault(
                f"{place}.text",
                f"has {len(given.text):,} characters; the limit is {self.most_characters:,}",
            )
        return Said(given.role, at, given.text)

    def _utc(self, local: datetime, before: datetime | None) -> datetime:
        """The moment a local time means.

        An hour that happens twice is its first occurrence, unless the conversation was past that already; one
        that the clock skipped is read as if it had not been put forward.
        """
        first, second = (local.replace(tzinfo=self.zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        return second if before is not None and first < before <= second else first

    def _check_past(self, at: datetime, place: str) -> None:
        if at > self.now + SKEW:
            self._fault(place, "lies in the future")

    def _fault(self, place: str, reason: str) -> None:
        self.faults.append(Fault(place, reason))
