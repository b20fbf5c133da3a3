"""The pages of the desk that are ours alone, held against axe, in light and dark, on a desk and on a phone."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from django.test import Client, override_settings
from playwright.async_api import Page

from memberintel.privacy import opening
from memberintel.tenancy.context import scope
from memberintel.vault import damage
from tests.admin.scene import plant
from tests.admin.staff import make_staff, sign_in
from tests.browser.conftest import Site, Visitor, aside, visit
from tests.browser.test_every_page import THEMES, faults
from tests.conftest import Person, make_person
from tests.wrapups.pooling.conftest import noted, reviewed_by_lawyers, run
from wrapups.models import LegalReview
from wrapups.pooling import choices, legal, queries

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

WHY = "They wrote that their documents look garbled"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def desk(site: Site, django_db_blocker: Any) -> AsyncGenerator[tuple[Visitor, list[str]]]:
    """A lead who has been let in to one customer, and the pages there are."""
    with django_db_blocker.unblock():
        sealed = aside(lambda: plant(make_person(tier="pro", name="sealed")))
        open_ = aside(lambda: plant(make_person(tier="pro", name="opened")))
        lead = aside(lambda: make_staff(role="lead"))
        client: Client = aside(lambda: sign_in(lead))
        aside(lambda: opening.ask(staff=lead, whose=open_.person.scope, reason=WHY))
        aside(lambda: damage.note("session_events", "sealed", uuid4()))
        members: list[Person] = []
        lawyers, group = aside(lambda: _pooled(members))
        async with visit(site) as visitor:
            cookie = client.cookies["sessionid"].value
            await visitor.context.add_cookies([{"name": "sessionid", "value": cookie, "url": site.address}])
            pool = "/admin/wrapups/legalreview/pool/"
            yield visitor, [*_pages(sealed.person, open_.person, open_.rows), pool, f"{pool}{group}/"]
        aside(lambda: legal.take_back(lawyers, using="support"))
        aside(lambda: _left(members))


def _left(members: list[Person]) -> None:
    """Tests of pooling count who takes part."""
    for who in members:
        with scope(who.scope):
            choices.choose(by=who.user.pk, takes_part=False)


def _pooled(members: list[Person]) -> tuple[LegalReview, UUID]:
    """Pooling, turned on, and a group that six accounts share, who are added to `members`."""
    row = reviewed_by_lawyers()
    for _ in range(6):
        who = make_person(tier="pro", name="member")
        members.append(who)
        with scope(who.scope):
            choices.choose(by=who.user.pk, takes_part=True)
        noted(who.scope, "Raise the price of the yearly plan for new members and tell them two weeks before")
    with override_settings(POOLING_SHARE=1.0, POOLING_EVERY_DAYS=0):
        run()
    return row, queries.shown()[0].id


def _pages(sealed: Person, open_: Person, rows: dict[str, Any]) -> list[str]:
    session, wrap_up = rows["chat.Session"], rows["wrapups.SessionLog"]
    return [
        *("/admin/", f"/admin/open/soul/{sealed.user.pk}/", f"/admin/open/soul/{open_.user.pk}/"),
        *(f"/admin/open/soul/{open_.user.pk}/edit/", f"/admin/open/session/{session}/"),
        *(f"/admin/open/wrap_up/{wrap_up}/", f"/admin/open/wrap_up/{wrap_up}/edit/"),
        *(f"/admin/erase/{open_.user.pk}/", f"/admin/tenancy/user/{open_.user.pk}/change/"),
        *(f"/admin/tenancy/tenant/{open_.scope.tenant_id}/change/", "/admin/privacy/auditrow/"),
        f"/admin/privacy/staffrequest/{rows['privacy.StaffRequest']}/change/",
    ]


async def test_every_page_of_ours_on_the_desk(site: Site, desk: tuple[Visitor, list[str]]) -> None:
    visitor, paths = desk
    page = await visitor.context.new_page()
    seen: dict[str, list[str]] = {}
    for theme in THEMES:
        await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        await page.set_viewport_size({"width": 1280, "height": 900})
        for path in paths:
            answer = await page.goto(site.address + path)
            assert answer is not None
            assert answer.status == 200, path
            seen[f"{path} {theme}"] = [fault for fault in await faults(page) if _ours(fault)]
            await _keep(page, f"{path} {theme}")
    await page.set_viewport_size({"width": 390, "height": 844})
    for path in paths:
        await page.goto(site.address + path)
        if (width := await page.evaluate("document.documentElement.scrollWidth")) > 390:
            seen[f"{path} on a phone"] = [f"is {width} pixels wide"]
        await _keep(page, f"{path} phone")
    await page.close()
    assert {where: what for where, what in seen.items() if what} == {}


def _ours(fault: str) -> bool:
    """Of unfold's frame, which has no landmark for its content, only what we put into it is ours to mend."""
    return "desk-" in fault and not fault.startswith("region:")


async def _keep(page: Page, name: str) -> None:
    """A picture to look at, where somebody asked for them: SHOTS=folder."""
    if folder := os.environ.get("SHOTS"):
        kept = re.sub(r"[^a-z0-9]+", "-", name)[-90:]
        await page.screenshot(path=Path(folder) / f"{kept}.png", full_page=True)
