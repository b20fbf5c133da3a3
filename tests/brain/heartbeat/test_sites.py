"""A tenant's sites: who sees them, what is uploaded to them, and that what is deleted is gone everywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, date, datetime
from uuid import UUID, uuid4

import pytest
from django.conf import LazySettings
from django.db import connection, connections, transaction

from brain import prompt
from brain.domain.heartbeat import csv_file
from brain.domain.heartbeat.csv_file import BadFile
from brain.domain.prompt import Part, SectionRequest, assemble
from brain.heartbeat import actions, queries, snapshots
from brain.heartbeat.actions import Refused
from brain.heartbeat.sections import heartbeat
from brain.heartbeat.sources import Failed
from brain.models import Heartbeat, MetricSnapshot, PromptPart, Source
from memberintel.lib import clock, tokens
from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import scope
from memberintel.tenancy.unit import unit
from tests.brain.heartbeat import pretend
from tests.brain.heartbeat.stage import connected, days_of, numbers, site_of, sites_of, source_of, told_of
from tests.conftest import Person

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
LAST = date(2026, 11, 30)


@pytest.fixture(autouse=True)
def _at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "source", lambda: NOW)


def request(who: Person) -> SectionRequest:
    return SectionRequest(who.scope.tenant_id, who.scope.customer_id, session_id=uuid7())


async def prompt_of(who: Person) -> str:
    parts = await prompt.build(request(who))
    return "\n".join(assemble([Part(part.name, part.text) for part in parts]))


# --- sites -----------------------------------------------------------------------------------------------


def test_a_site_belongs_to_the_team_and_to_nobody_else(alice: Person, bob: Person, charlie: Person) -> None:
    site = site_of(alice, "  Kiln \n& Kin ", "Europe/London")
    for who in (alice, bob):
        with scope(who.scope):
            found = queries.site(site)
            assert (found.name, found.time_zone) == ("Kiln & Kin", "Europe/London")
    with scope(charlie.scope), pytest.raises(queries.NotFound):
        queries.site(site)
    with scope(charlie.scope), pytest.raises(queries.NotFound):
        actions.upload(site, csv_file.SAMPLE.encode())


@pytest.mark.parametrize(
    ("name", "zone"), [("", "UTC"), (" \0 ", "UTC"), ("x" * 81, "UTC"), ("x", "Mars/Sea"), ("x", "")]
)
def test_names_and_zones_that_will_not_do(alice: Person, name: str, zone: str) -> None:
    site = site_of(alice)
    with scope(alice.scope):
        with pytest.raises(Refused):
            actions.add_site(name=name, time_zone=zone)
        with pytest.raises(Refused):
            actions.change_site(site, name=name, time_zone=zone)
        assert queries.site(site).name == "Kiln & Kin"
    assert sites_of(alice) == 1


def test_there_are_only_so_many(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "MOST_SITES", 2)
    site_of(alice)
    site_of(alice)
    with pytest.raises(Refused, match="2 sites already"):
        site_of(alice)


# --- files -----------------------------------------------------------------------------------------------


def test_an_upload_is_kept_and_told_at_once(alice: Person, bob: Person) -> None:
    site = site_of(alice)
    with scope(bob.scope):
        done = actions.upload(site, csv_file.SAMPLE.encode())
    assert done == actions.Uploaded(3, date(2026, 11, 28), LAST)
    assert "Active members: 142 on 30 November 2026." in told_of(alice, site)


def test_a_later_upload_corrects_and_keeps_the_rest(alice: Person) -> None:
    site = site_of(alice)
    with scope(alice.scope):
        actions.upload(site, csv_file.SAMPLE.encode())
        first = queries.told(site)
        actions.upload(site, b"day,active_members\n2026-11-30,150\n2026-11-27,139\n")
        second = queries.told(site)
    found = days_of(alice, site, "csv")
    assert found[LAST].counts == {
        "active_members": 150,
        "new": 2,
        "churned": 1,
        "failed_payments": 0,
        "trials": 6,
    }
    assert found[LAST].mrr == {"USD": 695_800}
    assert min(found) == date(2026, 11, 27)
    assert first is not None
    assert second is not None
    assert first.id == second.id
    assert "150" in (second.text or "")


def test_a_file_with_a_fault_changes_nothing(alice: Person) -> None:
    site = site_of(alice)
    with scope(alice.scope):
        actions.upload(site, csv_file.SAMPLE.encode())
    before = days_of(alice, site, "csv"), told_of(alice, site)
    with scope(alice.scope), pytest.raises(BadFile, match="row 3, column new"):
        actions.upload(site, b"day,new\n2026-11-30,99\n2026-11-29,x\n")
    assert (days_of(alice, site, "csv"), told_of(alice, site)) == before


def test_the_same_numbers_again_make_no_new_text(alice: Person) -> None:
    site = site_of(alice)
    with scope(alice.scope):
        actions.upload(site, csv_file.SAMPLE.encode())
        sealed = Heartbeat.objects.values_list("narrative", "made_at").get(site_id=site)
        actions.upload(site, csv_file.SAMPLE.encode())
        assert Heartbeat.objects.values_list("narrative", "made_at").get(site_id=site) == sealed


# --- sources ---------------------------------------------------------------------------------------------


def test_a_key_that_does_not_work_is_not_kept(alice: Person, settings: LazySettings) -> None:
    site = site_of(alice)
    with pretend.serving(pretend.stripe) as server:
        settings.STRIPE_API_BASE = server.url
        with scope(alice.scope), pytest.raises(Failed):
            actions.connect(site, "stripe", {"key": "rk_test_wrong"})
    with scope(alice.scope):
        assert not Source.objects.exists()


def test_connecting_again_brings_a_new_key_and_no_second_source(
    alice: Person, settings: LazySettings
) -> None:
    site = site_of(alice)
    with pretend.serving(pretend.stripe) as server, scope(alice.scope):
        settings.STRIPE_API_BASE = server.url
        server.lists = {"subscriptions": [], "events": []}
        first = actions.connect(site, "stripe", {"key": server.key})
        Source.objects.filter(id=first).update(state="failing", failures=3, last_error="bad_key", due_at=None)
        server.key = "rk_test_newer"
        assert actions.connect(site, "stripe", {"key": server.key}) == first
        row = Source.objects.get(id=first)
        assert (row.credentials, row.state, row.failures) == ({"key": "rk_test_newer"}, "connected", 0)
        assert row.due_at == NOW
        actions.try_again(site, first)
        server.key = "rk_test_revoked"
        with pytest.raises(Failed):
            actions.try_again(site, first)


def test_disconnecting_destroys_the_key_and_keeps_the_numbers(alice: Person) -> None:
    site = site_of(alice)
    numbers(alice, site, LAST, kind="stripe")
    with scope(alice.scope):
        Source.objects.filter(site_id=site).delete()
    source = connected(alice, site, "stripe", key="rk_test_x")
    with scope(alice.scope):
        actions.disconnect(site, source, forget=False)
        with pytest.raises(queries.NotFound):
            actions.try_again(site, source)
    row = source_of(alice, source)
    assert (row.credentials, row.due_at, row.state) == (None, None, "disconnected")
    assert len(days_of(alice, site, "stripe")) == 70
    assert told_of(alice, site)


async def test_forgetting_takes_the_numbers_out_of_every_prompt_of_the_team(
    alice: Person, bob: Person
) -> None:
    site = await unit(alice.scope, site_of, alice)
    await unit(alice.scope, numbers, alice, site, LAST)
    await unit(alice.scope, numbers, alice, site, LAST, kind="stripe")
    for who in (alice, bob):
        assert "Active members: 200" in await prompt_of(who)
    source = await unit(alice.scope, lambda: Source.objects.get(site_id=site, kind="csv").id)
    await unit_outside(alice, actions.disconnect, site, source, forget=True)
    for who in (alice, bob):
        assert await unit(who.scope, parts) == [(None, NOW.date())]
    text = await unit(alice.scope, told_of, alice, site)
    assert "from Stripe" in text
    assert "uploaded" not in text


async def unit_outside(who: Person, work: Callable[..., object], *args: object, **kwargs: object) -> None:
    """In their scope and no transaction, off the event loop, as a view does it."""

    def piece() -> None:
        try:
            with scope(who.scope):
                work(*args, **kwargs)
        finally:
            connections.close_all()

    await asyncio.to_thread(piece)


def parts() -> list[tuple[str | None, date | None]]:
    """The text of the parts that HEARTBEAT has in the customer's prompts, and when it was removed."""
    return [(part.text, part.removed_on) for part in PromptPart.objects.filter(source_kind="heartbeat")]


async def test_deleting_a_site_leaves_nothing_of_it(alice: Person, bob: Person, charlie: Person) -> None:
    site = await unit(alice.scope, site_of, alice)
    other = await unit(alice.scope, site_of, alice, "Second")
    theirs = await unit(charlie.scope, site_of, charlie)
    for who, each in ((alice, site), (alice, other), (charlie, theirs)):
        await unit(who.scope, numbers, who, each, LAST)
    for who in (alice, bob, charlie):
        await prompt_of(who)
    with pytest.raises(queries.NotFound):
        await unit_outside(charlie, actions.delete_site, site)
    await unit_outside(alice, actions.delete_site, site)
    with pytest.raises(queries.NotFound):
        await unit_outside(alice, actions.delete_site, site)
    assert await unit(alice.scope, rows, site) == 0
    assert await unit(alice.scope, rows, other) == await unit(charlie.scope, rows, theirs) > 70
    for who, texts in ((alice, [False, True]), (bob, [False, True]), (charlie, [True])):
        assert sorted(text is not None for text, _ in await unit(who.scope, parts)) == texts


def rows(site: UUID) -> int:
    """How many rows there are of a site."""
    return sum(model.objects.filter(site_id=site).count() for model in (Source, MetricSnapshot, Heartbeat))


def test_forgetting_reaches_no_other_tenant(alice: Person, charlie: Person) -> None:
    site = site_of(alice)
    numbers(alice, site, LAST)
    with scope(charlie.scope), connection.cursor() as cursor:
        cursor.execute("SELECT app.forget_heartbeats(%s, %s)", [site, LAST])
    assert told_of(alice, site)


def test_a_worker_deletes_no_number(
    alice: Person, login: Callable[[str], AbstractContextManager[None]]
) -> None:
    site = site_of(alice)
    numbers(alice, site, LAST)
    with login("worker"), scope(alice.scope):
        for statement in ("DELETE FROM metric_snapshots", "DELETE FROM heartbeats", "DELETE FROM sites"):
            with connection.cursor() as cursor, pytest.raises(Exception, match="permission denied"):
                cursor.execute(statement)


# --- the prompt ------------------------------------------------------------------------------------------


async def test_without_numbers_there_is_no_section(alice: Person) -> None:
    assert await heartbeat(request(alice)) is None
    await unit(alice.scope, site_of, alice)
    assert await heartbeat(request(alice)) is None


async def test_the_section_stands_after_bible_and_names_its_source(
    alice: Person, settings: LazySettings
) -> None:
    place = settings.PROMPT_SECTIONS.index("brain.heartbeat.sections.heartbeat")
    assert settings.PROMPT_SECTIONS[place - 1] == "brain.sections.bible"
    site = await unit(alice.scope, site_of, alice, '"><b>Kiln</b>')
    await unit(alice.scope, numbers, alice, site, LAST)
    found = await heartbeat(request(alice))
    assert found is not None
    (entry,) = found.entries
    assert (entry.label, entry.source_kind) == ('"><b>Kiln</b>', "heartbeat")
    assert entry.source_id == (await unit(alice.scope, lambda: Heartbeat.objects.get(site_id=site))).id
    assert "<b>" not in await prompt_of(alice)


async def test_a_source_that_is_down_is_said_to_be(alice: Person) -> None:
    site = await unit(alice.scope, site_of, alice)
    await unit(alice.scope, numbers, alice, site, LAST, kind="stripe")
    await unit(
        alice.scope,
        lambda: Source.objects.filter(site_id=site).update(state="failing", last_error="unreachable"),
    )
    found = await heartbeat(request(alice))
    assert found is not None
    assert found.entries[0].body.splitlines()[-1] == (
        "Stripe could not be read the last time (it cannot be reached); its numbers end on 30 November 2026."
    )


async def test_many_sites_stay_under_the_cap(alice: Person, settings: LazySettings) -> None:
    settings.SECTION_BUDGETS = {**settings.SECTION_BUDGETS, "heartbeat": 550}
    for number in range(4):
        site = await unit(alice.scope, site_of, alice, f"Site {number}")
        await unit(alice.scope, numbers, alice, site, LAST)
    found = await heartbeat(request(alice))
    assert found is not None
    assert (
        found.entries[-1].body
        == f"{4 - len(found.entries) + 1} more sites have numbers; the tool site_metrics gives them."
    )
    assert sum(tokens.count(entry.body) for entry in found.entries[:-1]) <= 500


async def test_numbers_that_cannot_be_opened_do_not_stop_a_conversation(alice: Person) -> None:
    site = await unit(alice.scope, site_of, alice)
    await unit(alice.scope, numbers, alice, site, LAST)
    await unit(alice.scope, _damage, "heartbeats", "narrative")
    found = await heartbeat(request(alice))
    assert found is not None
    assert found.entries[0].body == "The numbers cannot be opened at the moment."
    await unit(alice.scope, _damage, "metric_snapshots", "numbers")
    assert await unit(alice.scope, days_of, alice, site, "csv") == {}


def _damage(table: str, column: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET {column} = set_byte({column}, 39, 255 - get_byte({column}, 39))")


def test_what_is_told_stays_under_its_cap(alice: Person, settings: LazySettings) -> None:
    settings.HEARTBEAT_LIMIT_TOKENS = 120
    site = site_of(alice)
    numbers(alice, site, LAST)
    assert 0 < tokens.count(told_of(alice, site)) <= 120


def test_a_site_that_is_not_there_takes_no_numbers(alice: Person) -> None:
    with scope(alice.scope), transaction.atomic(), pytest.raises(queries.NotFound):
        snapshots.lock(uuid4())
