"""What a person reads while the advisor uses a tool, and afterwards. Pure."""

from __future__ import annotations

from typing import Final

WORDS: Final[dict[str, tuple[str, str, str]]] = {
    "update_customer_brain": (
        "Writing down what you told me",
        "Wrote down what you told me",
        "Tried to write something down",
    ),
    "search_memory": (
        "Looking through what I remember",
        "Looked through what I remember",
        "Tried to look through what I remember",
    ),
    "search_sessions": (
        "Looking through our conversations",
        "Looked through our conversations",
        "Tried to look through our conversations",
    ),
    "site_metrics": (
        "Looking at your site's numbers",
        "Looked at your site's numbers",
        "Tried to look at your site's numbers",
    ),
}
"""By the name of the tool: while it runs, when it has a result, when it failed."""


def words(name: str, *, running: bool, failed: bool) -> str:
    """The line above a call."""
    place = 2 if failed else 0 if running else 1
    known = WORDS.get(name)
    return known[place] if known else f"{('Using', 'Used', 'Tried')[place]} {name.replace('_', ' ')}"
