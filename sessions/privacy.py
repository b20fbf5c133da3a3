"""Conversations in a customer's archive: every event for programs, every conversation to read, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db import transaction

from memberintel.lib import moments
from memberintel.privacy import participants, rows
from memberintel.privacy.archive import PAGE, Archive, of_model, pages
from memberintel.privacy.rows import Renamer, Unfit
from memberintel.usage import charges
from memberintel.vault.errors import Damaged
from sessions import erasure, live, log, relay
from sessions.domain import events as kinds
from sessions.domain.events import Event
from sessions.models import EraseReason, Session, SessionEvent

LEFT_OUT: Final = (
    "session_events",
    "session_terms",
    "search_progress",
)  # the first is written here, line by line
HIDDEN: Final = {
    "sessions": ("turn_owner", "turn_lease_until", "turn_stop", "leaving_at")
}  # of running processes

FIELDS: Final = (
    "session_id",
    "seq",
    "id",
    "kind",
    "turn",
    "attempt",
    "client_key",
    "payload",
    "content",
    "created_at",
)


def export(archive: Archive) -> None:
    """All events of all sessions, then a page to read for each session."""
    archive.lines("session_events", _event_lines())
    for session in of_model(Session.objects.all):
        archive.text(f"sessions/{session.started_at:%Y-%m-%d}-{session.id}.md", _page(session))


def _event_lines() -> Iterator[dict[str, Any]]:
    for session in of_model(lambda: Session.objects.only("id")):
        for row in pages(_after(session.id)):
            (content,) = log.open_contents([(row.id.bytes, bytes(row.sealed))])
            line = {name: rows.plain(getattr(row, name)) for name in FIELDS if name != "content"}
            if content == kinds.UNREADABLE:
                yield {**line, "content": None, rows.UNREADABLE: ["content"]}
            else:
                yield {**line, "content": content}


def _after(session: UUID) -> Callable[[SessionEvent | None], list[SessionEvent]]:
    def after(last: SessionEvent | None) -> list[SessionEvent]:
        past = last.seq if last else 0
        return list(SessionEvent.objects.filter(session_id=session, seq__gt=past).order_by("seq")[:PAGE])

    return after


# --- to read ---------------------------------------------------------------------------------------------


def _page(session: Session) -> Iterator[str]:
    try:
        title = session.title or "Conversation"
    except Damaged:
        title = "Conversation (its title cannot be opened)"
    yield f"# {title}\n\n{_facts(session)}\n"

    def after(last: Event | None) -> list[Event]:
        past = last.seq if last else 0
        return log.load(session.id, after=past, through=past + PAGE)

    for event in pages(after):
        yield _entry(event)


def _facts(session: Session) -> str:
    facts = [f"Began {session.started_at:%Y-%m-%d %H:%M} UTC"]
    if session.closed_at:
        facts.append(f"closed {session.closed_at:%Y-%m-%d %H:%M} UTC ({session.close_reason})")
    facts += [name for name, holds in _marks(session) if holds]
    return ", ".join(facts) + "."


def _marks(session: Session) -> list[tuple[str, bool]]:
    return [
        ("off the record", session.off_record),
        ("imported", session.imported),
        ("archived", session.archived_at is not None),
    ]


def _entry(event: Event) -> str:
    """One event as Markdown; nothing is left out of it but ids."""
    head = f"\n## {event.seq}. {_WORDS.get(event.kind, event.kind)}, {event.at:%Y-%m-%d %H:%M:%S} UTC\n\n"
    if not kinds.readable(event):
        return head + "(This could not be opened.)\n"
    said = [
        ("", kinds.text_of(event)),
        ("Reasoning", kinds.text_of(event, "reasoning")),
        ("Summary", kinds.text_of(event, "summary")),
        ("Message", kinds.text_of(event, "message")),
    ]
    said += [
        (f"Tool {tool['name']}", f"{tool['arguments']}\n\n{tool['result']}") for tool in kinds.tools_of(event)
    ]
    said += [
        (f"What the advisor knew: {part['name']}", part["text"] or "(removed)")
        for part in kinds.sections_of(event)
    ]
    said += [("Findings", "\n".join(event.content.get("memory", {}).get("key_findings", ())))]
    return head + "\n".join(
        f"### {label}\n\n{text}\n" if label else f"{text}\n" for label, text in said if text
    )


_WORDS: Final = {
    kinds.SESSION_OPENED: "Opened",
    kinds.USER_MESSAGE: "You",
    kinds.CONTEXT_FROZEN: "What the advisor began with",
    kinds.RECALL: "What was looked up",
    kinds.PENDING_STATE: "Answer, in part",
    kinds.ASSISTANT_TURN: "Advisor",
    kinds.TURN_FAILED: "The answer failed",
    kinds.COMPACTION_APPLIED: "Older part summarised for the advisor",
    kinds.PROMPT_REFRESHED: "The advisor's knowledge was renewed",
    kinds.SESSION_CLOSED: "Closed",
}


# --- the way back ----------------------------------------------------------------------------------------


def restore(table: str, line: Mapping[str, Any], renamer: Renamer) -> None:
    """Bring back one event: after its session, and in their order. Unfit when it is not an event of ours."""
    if table != "session_events":
        raise Unfit(f"no such table: {table}")
    values = _checked(line, renamer)
    log.restore(
        renamer.id(_id(values["session_id"])),
        Event(
            values["seq"],
            renamer.id(_id(values["id"])),
            values["kind"],
            None if values["turn"] is None else renamer.id(_id(values["turn"])),
            values["attempt"],
            renamer.inside(values["payload"]),
            values["content"],
            _moment(values["created_at"]),
        ),
        client_key=values["client_key"],
    )


def _checked(line: Mapping[str, Any], renamer: Renamer) -> dict[str, Any]:
    """The columns of an event, of their types; one that could not be opened has a kind that says so."""
    if set(line) - {rows.UNREADABLE} != set(FIELDS):
        raise Unfit("the columns are not those of an event")
    values = {name: line[name] for name in FIELDS}
    if line.get(rows.UNREADABLE):
        values |= {"kind": "unreadable", "content": {}, "payload": {"was": values["kind"]}}
    for name in ("content", "payload"):
        if not isinstance(values[name], dict):
            raise Unfit(f"`{name}` must be an object")
    for name, longest in (("kind", 40), ("client_key", 100)):
        text = values[name]
        if not ((text is None and name == "client_key") or (isinstance(text, str) and len(text) <= longest)):
            raise Unfit(f"`{name}` must be a short text")
    for name in ("seq", "attempt"):
        if type(values[name]) is not int or not 0 <= values[name] < 2**31:
            raise Unfit(f"`{name}` must be a number")
    if not rows.storable([values["payload"], values["kind"], values["client_key"]]):
        raise Unfit("it has characters that cannot be stored")
    _check_parts(values["payload"], renamer)
    return values


def _check_parts(payload: Mapping[str, Any], renamer: Renamer) -> None:
    named = payload.get("sections", [])
    known = isinstance(named, list) and all(
        isinstance(section, dict) and section.get("digest") in renamer.words for section in named
    )
    if not known:
        raise Unfit("it names a text of a prompt that is not in the archive")


def restored_all() -> str:
    """What is wrong with the logs that were brought back, or "": each is complete, or was gone as a whole."""
    count = log.broken()
    return f"{count} conversations lack some of their events" if count else ""


def _id(text: Any) -> UUID:
    try:
        return UUID(str(text))
    except ValueError:
        raise Unfit("an id is not one") from None


def _moment(text: Any) -> datetime:
    at = moments.read(str(text))
    if at is None:
        raise Unfit("`created_at` is not a time")
    return at


# --- erasing ---------------------------------------------------------------------------------------------


def erase() -> dict[str, int]:
    """Every conversation of a customer whose key is destroyed: its events, and what Redis holds of its answers."""
    counts = {"session_events": 0}
    for session in of_model(lambda: Session.objects.only("id")):
        answers = SessionEvent.objects.filter(session_id=session.id, turn__isnull=False)
        found = answers.order_by().values_list("turn", "attempt").distinct()
        attempts = [(turn, attempt) for turn, attempt in found if turn is not None]
        try:
            with transaction.atomic():
                charges.forget([session.id, *(turn for turn, _ in attempts)])
                counts["session_events"] += erasure.erase(session.id, EraseReason.ACCOUNT)
        except erasure.NothingErased:
            continue
        live.forget(attempts)
        async_to_sync(relay.forget)(attempts)
    return counts


# --- what is too old ---------------------------------------------------------------------------------------


def past(kind: str, before: datetime) -> dict[str, int]:
    """How many sessions, and events of them, have words that are too old."""
    found = list(_expired(before)) if kind == "events" else []
    return {"sessions": len(found), "events": sum(events for _, events in found)}


def purge(kind: str, before: datetime) -> Iterator[dict[str, int]]:
    """Delete the words of old sessions, each in a transaction of its own. A shell stays, which says when and why."""
    if kind != "events":
        return
    for session, _ in _expired(before):
        try:
            with transaction.atomic():
                participants.expire_session(session)
                erased = erasure.erase(session, EraseReason.RETENTION, before=before)
        except (erasure.NotAllowed, erasure.NothingErased):  # something is owed for it since, or it is gone
            continue
        yield {"sessions": 1, "events": erased}


def _expired(before: datetime) -> Iterator[tuple[UUID, int]]:
    past = UUID(int=0)
    while page := erasure.expired(before, past=past, limit=PAGE):
        yield from page
        past = page[-1][0]
