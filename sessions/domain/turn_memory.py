"""TurnMemory: the small residue of a turn's tool traffic that later turns still see.

The traffic itself (arguments, results) is for the turn that made it, and for the transcript. What stays in
the model's view is which documents changed, what failed, and what a small model found worth keeping.

A tool that writes a document says so in its result, a JSON object with the key `changed`: one
`{"document", "version", "change"}` or a list of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sessions.domain import marks
from sessions.domain.events import DocumentChanged, Memory, ToolFailed, ToolTraffic

LINE: Final = 200
"""Most characters of one change, failure or finding."""


@dataclass(frozen=True, slots=True)
class Change:
    """A document a tool wrote."""

    document: str
    version: int | None
    change: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A tool that failed, and how."""

    tool: str
    error: str


@dataclass(frozen=True, slots=True)
class TurnMemory:
    """Documents changed and failures are computed; findings come from a model, or are absent."""

    documents_changed: tuple[Change, ...] = ()
    failures: tuple[Failure, ...] = ()
    key_findings: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.documents_changed or self.failures or self.key_findings)

    def content(self) -> Memory:
        """The form in which `assistant_turn` keeps it."""
        changes = [
            DocumentChanged(document=item.document, version=item.version, change=item.change)
            for item in self.documents_changed
        ]
        failures = [ToolFailed(tool=item.tool, error=item.error) for item in self.failures]
        return Memory(documents_changed=changes, failures=failures, key_findings=list(self.key_findings))


EMPTY: Final = TurnMemory()


def compute(traffic: Iterable[ToolTraffic], findings: Sequence[str] = ()) -> TurnMemory:
    """The residue of these calls, in their order; `findings` are taken as they are."""
    changes: list[Change] = []
    failures: list[Failure] = []
    for call in traffic:
        if call.get("error"):
            failures.append(Failure(call["name"], _error_line(call.get("result"))))
        elif call.get("result") is None:
            failures.append(Failure(call["name"], marks.NO_RESULT))
        else:
            changes += _changes(str(call["result"]))
    return TurnMemory(tuple(changes), tuple(failures), tuple(findings))


def _error_line(result: str | None) -> str:
    return marks.one_line(result or "", LINE) or "failed without saying why"


def _changes(result: str) -> list[Change]:
    if '"changed"' not in result:  # most results change nothing: no need to parse them
        return []
    try:
        parsed = json.loads(result)
    except (ValueError, RecursionError):
        return []
    changed = parsed.get("changed") if isinstance(parsed, dict) else None
    entries = changed if isinstance(changed, list) else [changed]
    return [_change(entry) for entry in entries if isinstance(entry, dict) and entry.get("document")]


def _change(entry: Mapping[str, Any]) -> Change:
    version = entry.get("version")
    return Change(
        document=marks.one_line(str(entry["document"]), LINE),
        version=version if isinstance(version, int) else None,
        change=marks.one_line(str(entry.get("change") or ""), LINE),
    )


def of_content(content: Mapping[str, Any]) -> TurnMemory:
    """The residue an `assistant_turn` keeps under `memory`."""
    memory = content.get("memory")
    if not memory:
        return EMPTY
    return TurnMemory(
        tuple(_change(entry) for entry in memory.get("documents_changed") or ()),
        tuple(Failure(str(entry["tool"]), str(entry["error"])) for entry in memory.get("failures") or ()),
        tuple(str(finding) for finding in memory.get("key_findings") or ()),
    )


def render(memory: TurnMemory) -> str:
    """The residue as the model sees it after the answer, "" when there is none."""
    if not memory:
        return ""
    lines = [
        *_listed("Documents changed:", map(_change_line, memory.documents_changed)),
        *_listed("Failures:", (f"{item.tool}: {item.error}" for item in memory.failures)),
        *_listed("Key findings:", memory.key_findings),
    ]
    return marks.enclose("turn_memory", marks.MEMORY_LABEL, "\n".join(lines))


def _change_line(item: Change) -> str:
    version = f", version {item.version}" if item.version is not None else ""
    return f"{item.document}{version}: {item.change}".removesuffix(": ")


def _listed(heading: str, items: Iterable[str]) -> list[str]:
    lines = [f"- {marks.one_line(item, 2 * LINE)}" for item in items]
    return [heading, *lines] if lines else []
