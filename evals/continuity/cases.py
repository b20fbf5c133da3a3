"""A case as its file tells it.

    title = "A decision is kept"
    kind = "decision kept"
    suite = "quality"                  # or "pathway": injection, order, states, deletions
    [person]                           # name, zone, language; each may be left out
    [documents]                        # soul, bible; each may be left out
    [[session]]                        # oldest first
    days_ago = 3
    talk = '''
    OWNER: ...                         # a message; further lines belong to it
    ADVISOR: ...                       # what the advisor answered, word for word
    '''
    filler = 0                         # so many turns of talk without any result before the last one
    left_open = false                  # true: the message of the follow-up comes while it is open
    off_record = false
    no_notes_yet = false               # true: no worker has come to write its wrap-up
    deleted = false                    # the customer deletes its wrap-up
    edit = { next_session_note = "" }  # the customer changes these fields of its wrap-up
    [session.wrap_up]                  # what must hold of it; see Expected
    [follow_up]
    say = "..."
    prompt = { has = [], lacks = [], order = [] }
    answer = { has = [], lacks = [] }
    judge = "Does the answer ...?"     # asked of a model where keys are set

A pattern is some words, all of which must occur in one item (or text), in any order and case; `a|b` is either.
A number matches as a whole: "4" is not in "49".
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

FOLDER = Path(__file__).parent / "cases"
_SPEAKER = re.compile(r"^(OWNER|ADVISOR): ?", re.MULTILINE)

State = Literal["done", "trivial", "off_record", "queued", "deleted"]
Suite = Literal["pathway", "quality"]


class _Told(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Person(_Told):
    """The customer."""

    name: str = "Mara"
    zone: str = "Europe/London"
    language: str = "en"


class Documents(_Told):
    """What the customer wrote about themselves before."""

    soul: str = ""
    bible: str = ""


class Text(_Told):
    """Patterns a text must hold, must not hold, and must hold one after the other."""

    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    order: tuple[str, ...] = ()


class Expected(_Told):
    """What must hold of a session's wrap-up: a pattern for each item that must be there, and texts that must not.

    `nowhere` is looked for in all of it. `lists` names lists that must be empty.
    """

    state: State = "done"
    decisions: tuple[str, ...] = ()
    open_items: tuple[str, ...] = ()
    new_context: tuple[str, ...] = ()
    note: tuple[str, ...] = ()
    anywhere: tuple[str, ...] = ()
    nowhere: tuple[str, ...] = ()
    empty: tuple[Literal["decisions", "open_items", "new_context"], ...] = ()


class Edited(_Told):
    """Fields of a wrap-up as the customer wrote them."""

    summary: str | None = None
    next_session_note: str | None = None


class Line(_Told):
    """One message of a session."""

    role: Literal["customer", "advisor"]
    text: str


class Session(_Told):
    """A session of the past."""

    days_ago: float
    talk: str
    filler: int = 0
    left_open: bool = False
    off_record: bool = False
    no_notes_yet: bool = False
    deleted: bool = False
    edit: Edited | None = None
    wrap_up: Expected = Field(default_factory=Expected)

    @property
    def lines(self) -> tuple[Line, ...]:
        """The messages in their order."""
        lines = _lines(self.talk)
        return (*lines[:-2], *_filler(self.filler), *lines[-2:])

    @property
    def turns(self) -> tuple[tuple[str, str], ...]:
        """(message, answer) pairs."""
        lines = self.lines
        return tuple((one.text, two.text) for one, two in zip(lines[::2], lines[1::2], strict=True))

    @property
    def said(self) -> str:
        """All of it as one text."""
        return "\n".join(line.text for line in self.lines)

    @model_validator(mode="after")
    def _alternates(self) -> Session:
        roles = [line.role for line in self.lines]
        if not roles or roles != ["customer", "advisor"] * (len(roles) // 2):
            raise ValueError("`talk` goes OWNER, ADVISOR, OWNER, ADVISOR, …")
        return self


class FollowUp(_Told):
    """The message that starts the next session, what the advisor must then know, and what it must say."""

    say: str
    prompt: Text = Text()
    answer: Text = Text()
    judge: str = ""


class Case(_Told):
    """One customer's story."""

    name: str
    title: str
    kind: str
    suite: Suite
    person: Person = Person()
    documents: Documents = Documents()
    session: tuple[Session, ...] = Field(min_length=1)
    follow_up: FollowUp

    @model_validator(mode="after")
    def _oldest_first(self) -> Case:
        ages = [session.days_ago for session in self.session]
        if ages != sorted(ages, reverse=True):
            raise ValueError("sessions stand oldest first")
        return self


def load(folder: Path = FOLDER) -> list[Case]:
    """Every case of the folder, by name. ValueError names the file that is no case."""
    return [_read(file) for file in sorted(folder.glob("*.toml"))]


def holds(pattern: str, text: str) -> bool:
    """Whether all words of the pattern occur in the text."""
    return all(
        any(_there(word, text.casefold()) for word in either.split("|"))
        for either in pattern.casefold().split()
    )


def _there(word: str, text: str) -> bool:
    if word[0].isdigit() or word[-1].isdigit():
        return re.search(rf"(?<![\d.,]){re.escape(word)}(?![\d]|[.,]\d)", text) is not None
    return word in text


def _read(file: Path) -> Case:
    try:
        return Case(name=file.stem, **tomllib.loads(file.read_text()))
    except ValueError as error:
        raise ValueError(f"{file.name}: {error}") from None


def _filler(turns: int) -> tuple[Line, ...]:
    """Talk of which nothing comes."""
    asked = (
        "What makes the text of lesson {n} hard to read, do you think? I read it again and could not tell.",
        "How would a newcomer feel on page {n} of the handbook? I have no picture of that at all.",
        "Why do people skip video {n}, in general? I am only curious what others see there.",
    )
    answered = (
        "Long sentences, mostly, and a picture that comes too late.",
        "A little lost, perhaps. Many handbooks explain too much at once.",
        "Often the first minute is slow. That is a common pattern.",
    )
    return tuple(
        Line(role=role, text=texts[n % 3].format(n=n + 1))
        for n in range(turns)
        for role, texts in (("customer", asked), ("advisor", answered))
    )


def _lines(talk: str) -> tuple[Line, ...]:
    pieces = _SPEAKER.split(talk.strip())
    return tuple(
        Line(role="customer" if who == "OWNER" else "advisor", text=text.strip())
        for who, text in zip(pieces[1::2], pieces[2::2], strict=True)
    )
