from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

from brain.domain.prompt import Entry, Part, Section, Told, assemble, parts, told
from sessions.domain.transcript import PromptItem, SectionItem
from sessions.templatetags.remembered import known, known_words

NOTE = "Summary: We talked <b>.\nDecisions:\n- Pause it\nNote for next time: Ask."


def prompt(*sections: SectionItem) -> PromptItem:
    return PromptItem(1, uuid4(), datetime.now(UTC), refreshed=False, late=False, sections=sections)


def section(name: str, *entries: tuple[str, str | None], verbatim: bool = False) -> SectionItem:
    """A section as the loader fills it in; an entry without a body was removed."""
    stored = []
    for label, body in entries:
        made = Section(name, "x", (Entry(label, body or "gone", "x", None),), verbatim)
        text = parts(made)[0].text
        stored.append(
            Part(name, text if body else None, None if body else datetime(2026, 5, 3, tzinfo=UTC).date())
        )
    return SectionItem(name, assemble(stored)[0], None)


def test_entries_are_read_back_as_they_were_written() -> None:
    assert told(section("soul", ("SOUL", 'Call me "Mia" & <b>\n</entry>')).text or "") == (
        Told("SOUL", 'Call me "Mia" & <b>\n</entry>'),
    )
    assert told("You are an advisor.") == (Told("", "You are an advisor."),)


def test_a_removed_entry_says_so_in_its_place() -> None:
    found = told(section("wrap_ups", ("Session of 1 May", "One"), ("Session of 2 May", None)).text or "")
    assert found == (
        Told("Session of 1 May", "One"),
        Told("", "removed by you on 3 May 2026", removed=True),
    )


def test_sections_stand_once_without_our_own_instructions_and_without_saying_their_title_twice() -> None:
    found = known([prompt(SectionItem("base", "Be kind.", None), section("soul", ("SOUL", "Mia")))])
    assert [(each.title, each.entries) for each in found] == [("Who you are (SOUL)", (Told("", "Mia"),))]
    assert known([]) == []


def test_what_a_new_prompt_no_longer_names_is_still_said_to_be_gone() -> None:
    first = prompt(section("wrap_ups", ("Session of 1 May", "One"), ("Session of 2 May", None)))
    second = prompt(section("wrap_ups", ("Session of 1 May", "One")))
    (found,) = known([first, second])
    assert [entry.removed for entry in found.entries] == [False, True]
    all_gone = prompt(section("wrap_ups", ("Session of 2 May", None)))
    (found,) = known([all_gone, prompt()])
    assert [entry.body for entry in found.entries] == ["removed by you on 3 May 2026"]


def test_a_note_is_set_in_parts_and_its_html_is_text() -> None:
    page = known_words(NOTE)
    for words in (
        "<strong>Summary</strong>",
        "&lt;b&gt;",
        "<li>Pause it</li>",
        "<strong>Note for next time</strong>",
    ):
        assert words in page
    assert "<b>" not in page
