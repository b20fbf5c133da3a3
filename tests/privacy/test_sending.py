"""The archive on its way: from the page and the API, on record, and no further than somebody reads."""

from __future__ import annotations

import asyncio
import io
import zipfile
from typing import Any

import pytest
from django.conf import LazySettings
from django.urls import reverse

from memberintel.privacy import export
from memberintel.privacy.models import AuditRow
from memberintel.tenancy.context import scope
from memberintel.tenancy.unit import unit
from sessions import actions, log
from sessions.domain import events as kinds
from tests.api.calls import bearer, browser, made_token
from tests.conftest import Person, make_person
from tests.waiting import PATIENCE, until


@pytest.fixture(autouse=True)
def _no_redirect_to_https(settings: LazySettings) -> None:
    settings.SECURE_SSL_REDIRECT = False


def read(response: Any) -> zipfile.ZipFile:
    """What was sent, once all of it has come."""

    async def joined() -> bytes:
        return b"".join([block async for block in response.streaming_content])

    return zipfile.ZipFile(io.BytesIO(asyncio.run(joined())))


def on_record(who: Person) -> int:
    with scope(who.scope):
        return AuditRow.objects.filter(action="exported", customer_id=who.user.pk).count()


@pytest.mark.parametrize("tier", ["free", "business"])
def test_one_click_gives_it_on_every_tier_and_is_on_record(tier: str) -> None:
    who = make_person(tier=tier)
    response = browser(who).post(reverse("take-copy"))
    assert response["Content-Type"] == "application/zip"
    assert "README.md" in read(response).namelist()
    assert on_record(who) == 1


def test_a_token_that_reads_gives_it_and_no_other(alice: Person) -> None:
    assert "manifest.json" in read(_with_token(alice, "read")).namelist()
    assert _with_token(alice, "chat").status_code == 403


def _with_token(who: Person, held: str) -> Any:
    return bearer(made_token(who, held).secret).get(reverse("api-export"))


async def test_the_thread_ends_with_its_reader(alice: Person) -> None:
    def much() -> None:
        session = actions.open_session(close_previous=True)
        for number in range(40):  # what does not pack, so that the pipe is full long before the end
            noise = "".join(chr(0x4E00 + (number * 7919 + at * at * 31) % 20000) for at in range(20_000))
            log.append(session, kinds.user_message(text=noise, tokens=1))

    await unit(alice.scope, much)
    await asyncio.to_thread(
        until, lambda: not export._threads
    )  # those of others end with what they were read for
    blocks = export.stream(alice.scope)
    assert await anext(blocks)
    (thread,) = export._threads
    await blocks.aclose()
    await asyncio.to_thread(thread.join, PATIENCE)
    assert not thread.is_alive()
    assert not export._threads


async def test_what_breaks_breaks_the_stream(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(archive: Any) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr("memberintel.privacy.own.export", fail)
    with pytest.raises(RuntimeError):
        async for _ in export.stream(alice.scope):
            pass


def test_no_more_are_made_at_once_than_a_process_can(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "AT_ONCE", 0)
    response = browser(alice).post(reverse("take-copy"))
    assert (response.status_code, "Try again in a minute" in response.content.decode()) == (503, True)
    assert on_record(alice) == 0
