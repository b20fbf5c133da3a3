"""The form a wrap-up is edited with: a box for each item, and empty ones to add to."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import QueryDict

from wrapups.actions import Edit, EditedItem
from wrapups.queries import WrapUp, WrapUpItem

SPARE = 2  # empty boxes under each list

LISTS = (
    ("decisions", "Decisions", "What you decided."),
    ("open_items", "Open items", "What is still to be done or answered."),
    ("new_context", "What I learned", "Lasting facts about you and your business."),
)


@dataclass(frozen=True)
class Box:
    """A text box of the form. `label` tells boxes of one list apart."""

    name: str
    label: str
    text: str


@dataclass(frozen=True)
class Boxes:
    """The boxes of one list."""

    title: str
    help: str
    boxes: tuple[Box, ...]


@dataclass(frozen=True)
class Form:
    """All that can be edited, filled."""

    summary: str
    note: str
    lists: tuple[Boxes, ...]


def of_wrap_up(wrap_up: WrapUp) -> Form:
    """The form as it is opened."""
    lists = (getattr(wrap_up, name) for name, _, _ in LISTS)
    return Form(wrap_up.summary, wrap_up.next_session_note, _lists([list(items) for items in lists]))


def of_post(post: QueryDict) -> Form:
    """The form with what was typed, after it was refused."""
    edit = read(post)
    lists = ([_typed(item) for item in getattr(edit, name) if item.text.strip()] for name, _, _ in LISTS)
    return Form(edit.summary, edit.next_session_note, _lists([list(items) for items in lists]))


def read(post: QueryDict) -> Edit:
    """What was typed. A box is named `list` and the item's id, or `list` and `new` for an added one."""
    return Edit(
        summary=post.get("summary", ""),
        next_session_note=post.get("note", ""),
        decisions=_items(post, "decisions"),
        open_items=_items(post, "open_items"),
        new_context=_items(post, "new_context"),
    )


def _items(post: QueryDict, name: str) -> list[EditedItem]:
    prefix = f"{name}:"
    return [
        EditedItem(text, None if key == f"{prefix}new" else key.removeprefix(prefix))
        for key, texts in post.lists()
        if key.startswith(prefix)
        for text in texts
    ]


def _typed(item: EditedItem) -> WrapUpItem:
    return WrapUpItem(item.id or "new", item.text, ())


def _lists(items: list[list[WrapUpItem]]) -> tuple[Boxes, ...]:
    return tuple(
        Boxes(title, help, (*_filled(name, title, found), *_spare(name, title, len(found))))
        for (name, title, help), found in zip(LISTS, items, strict=True)
    )


def _filled(name: str, title: str, items: list[WrapUpItem]) -> list[Box]:
    return [
        Box(f"{name}:{item.id}", f"{title}, {number}", item.text)
        for number, item in enumerate(items, start=1)
    ]


def _spare(name: str, title: str, after: int) -> list[Box]:
    return [Box(f"{name}:new", f"{title}, {after + number} (new)", "") for number in range(1, SPARE + 1)]
