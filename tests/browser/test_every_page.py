"""What holds for every page: no fault that axe finds, nothing wider than a phone, nobody's HTML runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import axe_playwright_python
import pytest
import pytest_asyncio
from django.urls import resolve
from playwright.async_api import Page, expect

from brain import actions as brain
from brain.heartbeat import actions as heartbeat
from brain.heartbeat import queries as sites
from brain.memory.actions import Choice, New
from brain.memory.actions import keep as keep_memory
from brain.memory.queries import memories
from brain.models import Knowledge
from memberintel.accounts import actions as accounts
from memberintel.accounts import colleagues, invitations
from memberintel.accounts.domain import Person as Known
from memberintel.lib import clock
from memberintel.tenancy.context import scope
from sessions import actions as sessions
from tests.access.routes import routes
from tests.browser.conftest import Site, Visitor, answered, aside, say, visit
from tests.conftest import Person, login_as, make_person
from tests.waiting import until_true
from wrapups import queries
from wrapups.demo import numbers
from wrapups.models import JournalEntry

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

HTML = "<img src=x onerror=alert(1)>"
PLAN = (
    f"{HTML} is the slogan of my dance studio with 140 members. We decided to pause the discount campaign until "
    "March. I will call the five members who left last week before Friday."
)
ANSWER = (
    f"### Plan\n\nAsk **why** {HTML}\n\n1. call\n2. note\n\n| a | b |\n|---|---|\n| 1 | {HTML} |\n\n`code`"
)
AXE = (Path(axe_playwright_python.__path__[0]) / "axe.min.js").read_text()
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
STRANGERS = (
    *("/", "/accounts/login/", "/accounts/signup/", "/accounts/password/reset/", "/nowhere/", "/mail/"),
    *("/accounts/password/reset/done/", "/invitations/used/"),
)
# What answers with a file, a piece of a page, or a way onwards, and is no page to look at.
NO_PAGES = {
    *("sign-out-everywhere", "token-revoke", "colleague-let-back", "invitation", "take-copy", "chat-act"),
    *("session-earlier", "session-archive", "turn", "remembered", "heartbeat-sample", "source-try"),
    *("document-restore", "open-item", "session-wrap-up", "pooling"),
}
FRESH = (
    *("/privacy/", "/privacy/?show=sign-ins", "/privacy/retention/"),
    *("/chat/", "/sessions/", "/brain/", "/brain/soul/", "/wrap-ups/", "/settings/", "/settings/tokens/"),
    *("/colleagues/", "/usage/", "/brain/soul/versions/", "/brain/heartbeat/", "/settings/sites/"),
    *("/privacy/data/", "/privacy/data/erase/"),
)


@dataclass
class Scene:
    """Somebody with a past, and the pages that show it."""

    visitor: Visitor
    pages: list[str] = field(default_factory=list)


def fill(owner: Person) -> str:
    """Everything a customer can write, with HTML in it; the link of an open invitation."""
    with scope(owner.scope):
        accounts.save_person(Known(HTML, "Europe/Berlin", "en"))
        brain.save_document(kind="soul", body=f"Call me {HTML}", base_version=0, by="customer", reason=HTML)
        for base, words in enumerate(
            (f"# Studio\n\n{HTML}\n\nPrice: $49", f"# Studio\n\n{HTML}\n\nPrice: $59")
        ):
            brain.save_document(kind="bible", body=words, base_version=base, by="customer", reason=HTML)
        keep_memory(New(f"Evenings are for {HTML}", HTML, "customer"), None, Choice())
        invited = invitations.invite(f"invited-{uuid4().hex[:8]}@example.com", by=owner.user.id)
        colleagues.remove(_colleague(owner).user.id, by=owner.user.id)
        site = heartbeat.add_site(name=HTML, time_zone="Europe/Berlin")
        heartbeat.upload(site.id, numbers.file(clock.now().date()).encode())
    return f"/invitations/{invitations.token(invited)}/"


def _colleague(owner: Person) -> Person:
    return make_person(tier="pro", tenant=owner.user.tenant, owner=False, name="colleague")


def erased_of(owner: Person) -> list[UUID]:
    """A session that was off the record, and one that was deleted."""
    with scope(owner.scope):
        off_record = sessions.open_session(off_record=True)
        deleted = sessions.open_session(close_previous=True)
        sessions.delete(session=deleted)
    return [off_record, deleted]


def heartbeat_pages(owner: Person) -> list[str]:
    """The pages of the person's site."""
    with scope(owner.scope):
        site = sites.sites()[0]
    own = f"/settings/sites/{site.id}/"
    return [
        *(
            f"/brain/heartbeat/{site.id}/?days=365",
            f"/brain/heartbeat/{site.id}/upload/",
            "/settings/sites/",
            own,
        ),
        *(f"{own}delete/", f"{own}connect/stripe/", f"{own}connect/memberpress/"),
        f"{own}sources/{site.sources[0].id}/disconnect/",
    ]


def memory_of(owner: Person) -> UUID:
    """The person's only entry of MEMORY."""
    with scope(owner.scope):
        return memories()[0].id


def wrap_up_of(owner: Person) -> tuple[UUID, UUID]:
    """The person's only wrap-up and its session."""
    with scope(owner.scope):
        found = queries.list_wrap_ups()[0]
        return found.id, found.session_id


def journal_day_of(owner: Person) -> date:
    """The only day of the person's journal."""
    with scope(owner.scope):
        began: datetime = JournalEntry.objects.get().session_started_at
    return began.astimezone(ZoneInfo("Europe/Berlin")).date()


def has_journal(owner: Person) -> bool:
    """Whether the entry of the person's first conversation is written: it comes beside the notes."""
    with scope(owner.scope):
        return JournalEntry.objects.exists()


def published() -> str:
    """The slug of an article that all customers may read."""
    with login_as("owner"):
        slug = f"page-{uuid4().hex[:8]}"
        Knowledge.objects.create(
            slug=slug, title=HTML, topic=HTML, text=f"{HTML}\n\n## Then\n\n{HTML}", published_at=clock.now()
        )
        return slug


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def scene(site: Site, django_db_blocker: Any) -> AsyncGenerator[Scene]:
    """A Pro owner who has talked, has notes, talks on, and leads a team."""
    with django_db_blocker.unblock():
        owner = aside(lambda: make_person(tier="pro", name="everything", password=uuid4().hex))
        aside(lambda: fill(owner))
        erased = aside(lambda: erased_of(owner))
        colleague = aside(lambda: _colleague(owner))
        site.says([{"reasoning": f"Thinking of {HTML}"}, {"text": ANSWER}])
        async with visit(site, owner) as visitor:
            await _talk(await visitor.page(), site)
            wrap_up, session = aside(lambda: wrap_up_of(owner))
            await until_true(lambda: asyncio.to_thread(aside, lambda: has_journal(owner)))
            entry, day = aside(lambda: memory_of(owner)), aside(lambda: journal_day_of(owner))
            article = aside(published)
            yield Scene(
                visitor,
                [
                    *(
                        "/chat/",
                        "/sessions/",
                        "/sessions/search/?q=studio",
                        *(f"/sessions/{each}/" for each in (session, *erased)),
                        *(f"/sessions/{session}/{what}/" for what in ("delete", "continue")),
                        *("/chat/off-the-record/", "/sessions/?show=archived&since=2026-01-01"),
                        "/brain/",
                        "/brain/soul/",
                    ),
                    *(
                        "/brain/bible/versions/",
                        "/brain/bible/versions/1/",
                        "/brain/bible/versions/1/remove/",
                    ),
                    *("/brain/bible/compare/?before=1&after=2", f"/sessions/{session}/knowledge/"),
                    *aside(lambda: heartbeat_pages(owner)),
                    *("/brain/memory/", f"/brain/memory/{entry}/", f"/brain/memory/{entry}/delete/"),
                    *("/brain/knowledge/", f"/brain/knowledge/{article}/", "/settings/external-memory/"),
                    *("/journal/", f"/journal/{day}/", f"/journal/sessions/{session}/edit/"),
                    *("/wrap-ups/", f"/wrap-ups/{wrap_up}/", f"/wrap-ups/{wrap_up}/edit/"),
                    *("/wrap-ups/?q=e&open=1", "/wrap-ups/?state=trivial", "/wrap-ups/open-items/"),
                    *(f"/wrap-ups/{wrap_up}/delete/", "/settings/", "/colleagues/"),
                    *(f"/colleagues/{colleague.user.id}/remove/", "/accounts/email/"),
                    *("/accounts/password/change/", "/accounts/logout/", "/accounts/2fa/"),
                ],
            )


async def _talk(page: Page, site: Site) -> None:
    await say(page, PLAN)
    await answered(page)
    await page.get_by_role("button", name="End conversation").click()
    await page.get_by_role("link", name="See my notes on it").click()
    await expect(page.get_by_role("heading", name="Decisions")).to_be_visible()
    await page.get_by_role("link", name="Edit").click()
    await page.get_by_label("Summary").fill(f"We paused it {HTML}")
    await page.get_by_role("button", name="Save").click()
    await page.goto(site.address + "/chat/")
    await say(page, f"Good morning {HTML}")
    await answered(page)
    await page.close()


async def faults(page: Page) -> list[str]:
    """What axe finds on the page as it is, in words."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE)
    found: list[dict[str, Any]] = await page.evaluate(
        "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"
    )
    return [f"{each['id']}: {each['help']}: {node['html'][:160]}" for each in found for node in each["nodes"]]


async def hold(visitor: Visitor, site: Site, paths: list[str]) -> None:
    """Look at each page in both themes and on a phone; every fault there is, at once."""
    page = await visitor.context.new_page()
    page.on("dialog", lambda dialog: visitor.complaints.append(dialog.message))
    seen: dict[str, list[str]] = {}
    for path in paths:
        await page.set_viewport_size({"width": 1280, "height": 900})
        await page.goto(site.address + path)
        for theme in THEMES:
            await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            seen[f"{path} {theme}"] = await faults(page)
        await page.set_viewport_size({"width": 390, "height": 844})
        if (width := await page.evaluate("document.documentElement.scrollWidth")) > 390:
            seen[f"{path} on a phone"] = [f"is {width} pixels wide"]
        if await page.locator("main img, main script").count():
            seen[f"{path} HTML"] = ["somebody's HTML became part of the page"]
    await page.close()
    assert {where: what for where, what in seen.items() if what} == {}


async def test_the_pages_of_somebody_with_a_past(site: Site, scene: Scene) -> None:
    await hold(scene.visitor, site, scene.pages)


async def test_no_page_is_left_out(scene: Scene) -> None:
    """Every address of a customer's is looked at here, or said to be no page."""
    paths = {urlsplit(path).path for path in (*scene.pages, *FRESH)}
    looked_at = {resolve(path).url_name for path in paths if path != "/nowhere/"}
    assert {route.name for route in routes() if "customer" in route.rules} - looked_at == NO_PAGES


async def test_the_pages_of_somebody_who_has_just_signed_up(site: Site, free: Person) -> None:
    async with visit(site, free) as visitor:
        await hold(visitor, site, list(FRESH))


async def test_the_pages_of_a_stranger_and_of_somebody_invited(site: Site, pro: Person) -> None:
    link = aside(lambda: fill(pro))
    async with visit(site) as visitor:
        await hold(visitor, site, [*STRANGERS, link])


async def test_the_page_of_a_colleague_who_is_no_owner(site: Site, pro: Person) -> None:
    async with visit(site, aside(lambda: _colleague(pro))) as visitor:
        await hold(visitor, site, ["/colleagues/"])


async def test_html_is_shown_wherever_it_was_written(site: Site, scene: Scene) -> None:
    page = await scene.visitor.page("/chat/")
    await expect(page.locator(".said.customer")).to_contain_text(HTML)
    await expect(page.locator(".said.advisor .prose")).to_contain_text(HTML)
    await expect(page.locator("#known")).to_contain_text(f"Call me {HTML}")
    await expect(page.locator(".account .who")).to_have_text(HTML)
    await page.goto(site.address + "/sessions/")
    await expect(page.locator(".row .title", has_text="<img").first).to_be_visible()
    await page.goto(site.address + scene.pages[scene.pages.index("/wrap-ups/") + 1])
    await expect(page.locator("main")).to_contain_text(HTML)
    await page.close()
