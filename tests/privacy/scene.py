"""A customer with something of everything, in words that can be found again."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any
from uuid import UUID

from brain import actions as brain
from brain.domain.prompt import RenderedPart
from brain.memory import actions as memory
from brain.memory.actions import Choice, New
from memberintel.accounts import actions as accounts
from memberintel.accounts.domain import Person as About
from memberintel.lib.ids import uuid7
from memberintel.privacy import export
from memberintel.tenancy.context import scope
from sessions import actions, indexer, log
from sessions.domain import events as kinds
from tests.conftest import Person, login_as
from tests.wrapups.stage import ADVICE, ANSWER, PLAN, job_of, model, run, talked
from wrapups import makers

WORD = "Zanzibarquagga"


def filled(who: Person, settings: Any) -> UUID:
    """Fill the account; the id of a session."""
    session = talked(who.scope, f"{PLAN} {WORD}", f"{ADVICE} {WORD}")
    answer = ANSWER | {"summary": f"They plan a discount campaign of {WORD}. It starts on 1 March."}
    with model(settings, "privacy-scene", {"json": answer}), login_as("worker"):
        run(makers.do(job_of(who.scope, session).id, who.scope))
    with scope(who.scope):
        for number in range(3):
            brain.save_document(
                kind="soul",
                body=f"Be direct, {WORD} {number}",
                base_version=number,
                by="customer",
                reason=WORD,
            )
        kept = memory.keep(New(f"Members ask for {WORD}", WORD, "customer"), None, Choice())
        memory.keep(New(f"Members love {WORD}", WORD, "customer"), None, Choice(replace=kept.id))
        accounts.save_person(About(display_name=WORD, time_zone="Europe/Berlin"))
        _known(actions.open_session(close_previous=True))
    indexer.settle()  # who counts the rows of an account must not count while its index is being written
    return session


def _known(session: UUID) -> None:
    """An open session with a prompt, a pending answer, a failure, a compaction and an answer that used a tool."""
    part = RenderedPart("soul", f"Be direct, {WORD}", "document", None)
    (digest,) = brain.store_parts([part])
    named: list[kinds.SectionDigest] = [{"name": "soul", "digest": digest}]
    turn = log.Turn(uuid7(), 1, "test")
    memory: kinds.Memory = {"documents_changed": [], "failures": [], "key_findings": [WORD]}
    tool: kinds.ToolTraffic = {
        "id": "call-1",
        "name": "search_memory",
        "arguments": f'{{"query":"{WORD}"}}',
        "result": WORD,
        "error": False,
    }
    for draft in (
        kinds.user_message(text=f"What of {WORD}?", tokens=5),
        kinds.context_frozen(sections=named, tools=()),
        kinds.recall(sections=named),
        kinds.turn_failed(code="overloaded", retryable=True, message=WORD),
        kinds.pending_state(text=WORD, reasoning="", tools=(), tokens=1),
        kinds.compaction_applied(
            replaces_through_seq=1, summary=WORD, method="extractive", tokens_before=9, tokens_after=3
        ),
        kinds.assistant_turn(
            text=f"Of {WORD}: this.",
            reasoning=WORD,
            tools=[tool],
            memory=memory,
            tokens=4,
            model="m",
            provider="p",
        ),
    ):
        log.append(
            session, draft, turn=turn, client_key="key-1234" if draft.kind == kinds.USER_MESSAGE else None
        )


def taken(who: Person) -> zipfile.ZipFile:
    """The archive of that person."""
    out = io.BytesIO()
    with scope(who.scope):
        export.write(out)
    return zipfile.ZipFile(out)


def lines(archive: zipfile.ZipFile, table: str) -> list[dict[str, Any]]:
    """The rows of a table in the archive."""
    name = f"data/{table}.jsonl"
    return (
        [json.loads(line) for line in archive.read(name).splitlines()] if name in archive.namelist() else []
    )
