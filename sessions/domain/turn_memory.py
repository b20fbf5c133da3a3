"""TurnMemory: the small residue of a turn's tool traffic that later turns still see.

The traffic itself (arguments, results) is for the turn that made it, and for the transcript. What stays in
the model's view is which documents changed, what failed, and what a small model found worth keeping.

A tool that writes a document says so in its result, a JSON object with the key `changed`: one
`{"document", "version", "change"}` or a list of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from memberintel.lib.sanitise import kept
from memberintel.lib.text import shorten
from sessions.domain import marks
from sessions.domain.events import DocumentChanged, Memory, ToolFailed, ToolTraffic

LINE: Final = 200
"""Most characters of one change, failure or finding."""

FINDINGS: Final = 5
READ_CHARACTERS: Final = 3_000
"""Of one result, of the message and of the answer, for whoever distils them."""
MATERIAL_CHARACTERS: Final = 30_000
_BULLET: Final = re.compile(r"^(?:[-*•–]|\d{1,2}[.)])\s+")
_NOTHING: Final = "none"


@dataclass(frozen=True, slots=True)
class Change:
    """A document a tool wrote."""

    document: str
    version: int | None
    change: str

    def content(self) -> DocumentChanged:
        """The form in which it is kept, and in which a tool's result says it."""
        return DocumentChanged(document=self.document, version=self.version, change=self.change)


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
        changed = [item.content() for item in self.documents_changed]
        failures = [ToolFailed(tool=item.tool, error=item.error) for item in self.failures]
        return Memory(documents_changed=changed, failures=failures, key_findings=list(self.key_findings))


EMPTY: Final = TurnMemory()


def compute(traffic: Iterable[ToolTraffic], findings: Sequence[str] = ()) -> TurnMemory:
    """The residue of these calls, in their order; `findings` are taken as they are."""
    changed: list[Change] = []
    failures: list[Failure] = []
    for call in traffic:
        if call.get("error"):
            failures.append(Failure(call["name"], _error_line(call.get("result"))))
        elif call.get("result") is None:
            failures.append(Failure(call["name"], marks.NO_RESULT))
        else:
            changed += changes(str(call["result"]))
    return TurnMemory(tuple(changed), tuple(failures), tuple(findings))


def _error_line(result: str | None) -> str:
    return marks.one_line(result or "", LINE) or "failed without saying why"


def changes(result: str) -> list[Change]:
    """The documents a tool changed, as its result says; [] when it changed none."""
    if '"changed"' not in result:  # most results change nothing: no need to parse them
        return []
    try:
        parsed = json.loads(result)
    except (ValueError, RecursionError):
        return []
    changed = parsed.get("changed") if isinstance(parsed, dict) else None
    entries = changed if isinstance(changed, list) else [changed]
    return [_change(entry) for entry in entries if isinstance(entry, dict) and entry.get("document")]


def told(changed: Sequence[Change], text: str) -> str:
    """A result that says which documents were changed, and this text."""
    said = {"changed": [item.content() for item in changed], "text": text}
    return json.dumps(said, ensure_ascii=False)


def _change(entry: Mapping[str, Any]) -> Change:
    version = entry.get("version")
    return Change(
        document=marks.one_line(str(entry["document"]), LINE),
        version=version if isinstance(version, int) else None,
        change=marks.one_line(str(entry.get("change") or ""), LINE),
    )


def material(asked: str, traffic: Sequence[ToolTraffic], answer: str) -> str:
    """What a model distils findings from; "" when no call brought anything."""
    brought = [call for call in traffic if call.get("result") and not call.get("error")]
    if not brought:
        return ""
    parts = [f"<message>\n{_part(asked)}\n</message>"]
    parts += [f"<result>\n{_part(call['name'] + ' ' + call['arguments'])}\n{_part(call['result'] or '')}\n</result>"
              for call in brought]  # fmt: skip
    parts.append(f"<answer>\n{_part(answer)}\n</answer>")
    return shorten("\n".join(parts), MATERIAL_CHARACTERS)


def _part(text: str) -> str:
    return marks.escape(shorten(text[: READ_CHARACTERS * 2], READ_CHARACTERS))


def findings(said: str) -> tuple[str, ...]:
    """What a model found, as it may be kept: a few single lines, cleaned like everything a model writes. What
    speaks to the machinery is left out."""
    lines = (_BULLET.sub("", line.strip()) for line in said[:MATERIAL_CHARACTERS].splitlines())
    clean = (kept(marks.one_line(line, LINE), limit=LINE) for line in lines if line)
    told = (line for line in clean if line and line.strip(" .").lower() != _NOTHING)
    return tuple(dict.fromkeys(told))[:FINDINGS]


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
