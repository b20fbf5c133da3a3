"""Every version can be brought back, and what one said can be taken out for good."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connection, transaction

from brain import actions, prompt, queries, sections
from brain.domain.documents import DocumentText, Kind, NoVersion, Origin, Redacted, Stale, Standing
from brain.domain.prompt import Part, SectionRequest, assemble
from brain.models import DocumentVersion, PromptPart
from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import scope
from memberintel.tenancy.unit import unit
from tests.conftest import Person

SECRET = "The door code is 4711"


def save(body: str, base_version: int, kind: Kind = "bible") -> DocumentText:
    return actions.save_document(
        kind=kind, body=body, base_version=base_version, by="customer", reason=f"about {body}"
    )


def restore(version: int, base_version: int) -> DocumentText:
    return actions.restore(kind="bible", version=version, base_version=base_version, by="customer", reason="")


def test_an_edit_of_the_advisors_names_its_message_and_what_was_done_to_its_words(alice: Person) -> None:
    where = Origin(uuid7(), 4)
    with scope(alice.scope):
        actions.save_document(
            kind="bible",
            body="140 members",
            base_version=0,
            by="advisor",
            reason="they said so",
            origin=where,
            changes=["secrets masked"],
        )
        kept = queries.version("bible", 1)
    assert kept is not None
    assert (kept.author, kept.origin, kept.changes) == ("advisor", where, ("secrets masked",))


def test_an_earlier_text_comes_back_as_a_new_version(alice: Person) -> None:
    with scope(alice.scope):
        save("one", 0)
        save("two", 1)
        assert (restore(1, 2).version, queries.document("bible").text) == (3, "one")
        newest = queries.version("bible", 3)
        assert newest is not None
        assert newest.restores == 1
        assert restore(1, 3).version == 3
        with pytest.raises(Stale):
            restore(2, 2)
        with pytest.raises(NoVersion):
            restore(9, 3)
        assert [each.text for each in queries.versions("bible")] == ["one", "two", "one"]


def test_what_a_version_said_can_be_taken_out_and_its_row_stays(alice: Person) -> None:
    with scope(alice.scope):
        save(SECRET, 0)
        save("no code", 1)
        before = queries.version("bible", 1)
        actions.redact(kind="bible", version=1)
        after = queries.version("bible", 1)
        assert before is not None
        assert after is not None
        assert (after.text, after.reason, after.redacted_on) == ("", "", clock.now().date())
        assert (after.id, after.at, after.author) == (before.id, before.at, before.author)
        with pytest.raises(Redacted, match="gone for good"):
            restore(1, 2)
        with pytest.raises(Redacted):
            actions.redact(kind="bible", version=1)
        with pytest.raises(NoVersion):
            actions.redact(kind="bible", version=9)
        assert [each.version for each in queries.versions("bible")] == [2, 1]


def test_what_stands_cannot_be_taken_out(alice: Person) -> None:
    with scope(alice.scope):
        save(SECRET, 0)
        with pytest.raises(Standing, match="first save the document without"):
            actions.redact(kind="bible", version=1)
        with pytest.raises(DatabaseError, match="this version stands"), transaction.atomic():
            redact_in_database("bible", 1)
        assert queries.document("bible").text == SECRET
        save("", 1)
        actions.redact(kind="bible", version=1)


def test_a_colleague_cannot_take_anything_out(alice: Person, bob: Person) -> None:
    with scope(alice.scope):
        save(SECRET, 0)
        save("no code", 1)
    with scope(bob.scope):
        with pytest.raises(NoVersion):
            actions.redact(kind="bible", version=1)
        with pytest.raises(DatabaseError, match="no such version"), transaction.atomic():
            redact_in_database("bible", 1)
    with scope(alice.scope):
        assert queries.versions("bible")[-1].text == SECRET


def test_taking_out_is_the_one_way_to_change_a_version(alice: Person) -> None:
    with scope(alice.scope):
        save(SECRET, 0)
        save("no code", 1)
        with pytest.raises(DatabaseError, match="permission denied"):
            DocumentVersion.objects.filter(version=1).update(redacted_on=clock.now().date())


async def test_every_prompt_loses_what_the_version_said(alice: Person) -> None:
    await unit(alice.scope, save, SECRET, 0)
    request = SectionRequest(alice.scope.tenant_id, alice.scope.customer_id, session_id=uuid7())
    first = await sections.bible(request)
    assert first is not None
    built = await prompt.build(request)
    await unit(alice.scope, save, "no code", 1)
    assert "no code" in str(await sections.bible(request))
    await unit(alice.scope, lambda: actions.redact(kind="bible", version=1))
    named = [(part.name, part.digest) for part in built if part.name == "bible"]
    parts: list[Part] = await unit(alice.scope, queries.prompt_parts, named)
    assert SECRET not in "".join(assemble(parts))
    assert "(removed by you on" in "".join(assemble(parts))
    left = await unit(alice.scope, lambda: PromptPart.objects.filter(source_id=first.entries[0].source_id))
    assert await unit(alice.scope, lambda: [row.text for row in left]) == [None]


def redact_in_database(kind: str, version: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT app.redact_document_version(%s, %s)", [kind, version])
