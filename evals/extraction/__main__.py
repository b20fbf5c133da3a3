"""`python -m evals.extraction`: wrap-ups by extraction of a whole conversation, held against questions about it.

The conversation is the one the smoke run tells; MEMBERINTEL_QUESTIONS names a file of questions on it
({questions: [{question, answer, sessions: [number from 1]}]}), else `jon-questions.json` beside it. A question
counts as held when most words of its answer stand in the notes of a session that holds the evidence; the same
measure on the sessions' full text is the most that any notes could reach by it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from memberintel.lib.extract import Extract, Line, extract
from memberintel.lib.text import count_words
from sessions.domain.conversation_file import Conversation

HELD = 0.6
_STEM = 5


@dataclass(frozen=True)
class Noted:
    """A session's text and its notes."""

    text: str
    found: Extract

    @property
    def notes(self) -> str:
        """All texts of the notes."""
        found = self.found
        items = (*found.decisions, *found.open_items, *found.new_context)
        return "\n".join((found.summary, *(item.text for item in items), found.next_session_note))


def main() -> None:
    """Print the table."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memberintel.settings")
    import django

    django.setup()
    from evals.smoke import story

    told = story.load()
    file = Path(os.environ.get("MEMBERINTEL_QUESTIONS", told.source.parent / "jon-questions.json"))
    if not file.exists():
        sys.exit(f"There are no questions at {file.name}: name a file in MEMBERINTEL_QUESTIONS.")
    sessions = (*told.past.sessions, told.live)
    every = [_noted(session) for session in sessions]
    noted = [one for one, session in zip(every, sessions, strict=True) if story.is_substantive(session)]
    questions = json.loads(file.read_text())["questions"]
    if max(number for each in questions for number in each["sessions"]) > len(sessions):
        sys.exit(
            f"{file.name} asks about sessions that {told.source.name} does not have: name the conversation in"
            " MEMBERINTEL_SMOKE_DATA."
        )
    for label, figure in (
        ("sessions of the conversation", len(every)),
        ("of them worth notes", len(noted)),
        ("words of notes, mean", round(mean(count_words(one.notes) for one in noted))),
        ("share of the text that is", f"{_share(noted):.0%}"),
        ("decisions, open items, facts a session", " ".join(_counts(noted))),
        ("items that are the conversation's own sentences", f"{_verbatim(noted):.0%}"),
        ("questions", len(questions)),
        ("answers the notes still hold", f"{_held(questions, every, lambda one: one.notes):.0%}"),
        (
            "answers the full text holds, by the same measure",
            f"{_held(questions, every, lambda one: one.text):.0%}",
        ),
    ):
        print(f"{label:<52} {figure}")


def _noted(session: Conversation) -> Noted:
    lines = [Line(number, said.role, said.text) for number, said in enumerate(session.messages, 1)]
    return Noted("\n".join(line.text for line in lines), extract(lines))


def _share(noted: Sequence[Noted]) -> float:
    return sum(count_words(one.notes) for one in noted) / sum(count_words(one.text) for one in noted)


def _counts(noted: Sequence[Noted]) -> list[str]:
    return [
        f"{mean(len(getattr(one.found, name)) for one in noted):.1f}"
        for name in ("decisions", "open_items", "new_context")
    ]


def _verbatim(noted: Sequence[Noted]) -> float:
    own = [
        " ".join(item.text.split()) in " ".join(one.text.split())
        for one in noted
        for item in (*one.found.decisions, *one.found.open_items, *one.found.new_context)
    ]
    return mean(own)


def _held(questions: Sequence[dict[str, Any]], every: Sequence[Noted], read: Callable[[Noted], str]) -> float:
    return mean(
        any(_overlap(each["answer"], read(every[number - 1])) >= HELD for number in each["sessions"])
        for each in questions
    )


def _overlap(answer: str, text: str) -> float:
    wanted = _stems(str(answer))
    return len(wanted & _stems(text)) / len(wanted) if wanted else 0.0


def _stems(text: str) -> set[str]:
    return {word[:_STEM] for word in re.findall(r"\w+", text.casefold()) if len(word) > 2}


if __name__ == "__main__":
    main()
