from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from uuid import uuid4

import pytest
from playwright.async_api import Page, expect

from memberintel.tenancy.context import scope
from sessions import queries
from tests.browser.conftest import Site, aside, visit
from tests.conftest import Person

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PLAN = (
    "I run a dance studio with 140 members. We decided to pause the discount campaign until March. "
    "I will call the five members who left last week before Friday."
)
WORDS = " ".join(f"word{number}" for number in range(60))


async def say(page: Page, text: str) -> None:
    await page.get_by_label("Your message").fill(text)
    await page.keyboard.press("Enter")


def has_left(person: Person) -> bool:
    """Whether the person's open conversation is about to close because nobody is there."""

    def look() -> bool:
        with scope(person.scope):
            session = queries.open_session()
        return session is not None and session.leaving_at is not None

    return aside(look)


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        await asyncio.sleep(0.1)


async def answered(page: Page, times: int = 1) -> None:
    await expect(page.locator('[data-state="complete"]')).to_have_count(times)


async def test_talk_end_read_the_notes_and_be_remembered(site: Site, pro: Person) -> None:
    async with visit(site, pro) as visitor:
        page = await visitor.page()
        await expect(page.locator(".notice-bar")).to_have_count(0)  # the model follows a script
        await say(page, PLAN)
        await answered(page)
        await page.get_by_role("button", name="End conversation").click()
        await page.get_by_role("link", name="See my notes on it").click()
        await expect(page.get_by_role("heading", name="Decisions")).to_be_visible()
        notes = page.url
        await expect(page.locator("main")).to_contain_text("pause the discount campaign until March")

        await page.goto(site.address + "/chat/")
        await say(page, "Good morning! Where did we leave off?")
        await answered(page)
        await expect(page.locator(".said.advisor")).to_contain_text("five members who left last week")
        await page.reload()
        await page.get_by_text("What I knew when this conversation began").click()
        await expect(page.locator("details[open]")).to_contain_text("pause the discount campaign until March")

        await page.goto(notes)
        await page.get_by_role("link", name="Edit").click()
        await page.get_by_label("Summary").fill("We paused <b>all</b> campaigns.")
        await page.get_by_role("button", name="Save").click()
        await expect(page.locator("main")).to_contain_text("We paused <b>all</b> campaigns.")
        await page.get_by_role("link", name="Delete").click()
        await page.get_by_role("button", name="Delete for good").click()
        await expect(page.get_by_role("status")).to_contain_text("Deleted")
        await page.goto(site.address + "/chat/")
        await page.get_by_text("What I knew when this conversation began").click()
        await expect(page.locator("details[open]")).to_contain_text("removed by you on")


async def test_sign_up_by_hand_and_the_honest_page_on_free(site: Site) -> None:
    async with visit(site) as visitor:
        page = await visitor.page("/")
        await page.get_by_role("link", name="Open an account").click()
        await page.get_by_label("Email").fill(f"new-{uuid4().hex[:8]}@example.com")
        await page.get_by_label("Password").fill("a very good password")
        await page.get_by_role("button", name="Open my account").click()
        await page.wait_for_url("**/chat/")
        await say(page, PLAN)
        await answered(page)
        await page.get_by_role("link", name="Wrap-ups").click()
        await expect(page.get_by_role("heading", name="This page is part of Pro")).to_be_visible()


async def test_an_answer_streams_and_can_be_stopped(site: Site, pro: Person) -> None:
    site.says([{"reasoning": "Let me think."}, {"words": WORDS, "delay": 0.1}])
    async with visit(site, pro) as visitor:
        page = await visitor.page()
        await say(page, PLAN)
        await expect(page.locator(".state")).to_have_text("Writing…")
        await expect(page.locator(".prose")).to_contain_text("word5")
        await page.get_by_role("button", name="Stop").click()
        await expect(page.locator('[data-state="stopped"]')).to_contain_text("You stopped this answer here.")
        text = await page.locator(".prose").inner_text()
        assert WORDS.startswith(text.strip())
        await expect(page.get_by_role("button", name="Stop")).to_be_hidden()


async def test_an_answer_that_failed_can_be_tried_again(site: Site, pro: Person) -> None:
    site.says(
        [{"error": "overloaded"}], [{"error": "overloaded"}], [{"error": "overloaded"}], [{"text": "Here."}]
    )
    async with visit(site, pro) as visitor:
        page = await visitor.page()
        await say(page, PLAN)
        await expect(page.locator('[data-state="failed"] [role=alert]')).to_be_visible(timeout=30_000)
        await page.get_by_role("button", name="Try again").click()
        await answered(page)
        await expect(page.locator('[data-state="complete"]')).to_contain_text("Here.")
        await expect(page.locator(".said.customer")).to_have_count(1)


async def test_a_reload_and_a_second_tab_miss_no_word_and_double_none(site: Site, pro: Person) -> None:
    site.says([{"words": WORDS, "delay": 0.05}])
    async with visit(site, pro) as visitor:
        page = await visitor.page()
        await say(page, PLAN)
        await expect(page.locator(".prose")).to_contain_text("word5")
        other = await visitor.page()
        await page.reload()
        for tab in (page, other):
            await answered(tab)
            assert (await tab.locator(".prose").inner_text()).split() == WORDS.split()


async def test_a_second_message_may_take_the_place_of_the_answer(site: Site, pro: Person) -> None:
    site.says([{"text": "I would "}, {"stall": True}], [{"text": "Of course."}])
    async with visit(site, pro) as visitor:
        page = await visitor.page()
        await say(page, PLAN)
        await expect(page.locator(".prose")).to_contain_text("I would")
        await say(page, "Never mind. Another thing.")
        await expect(page.get_by_label("Your message")).to_have_value("Never mind. Another thing.")
        await page.get_by_role("button", name="Stop it and send this").click()
        await expect(page.locator('[data-state="complete"]')).to_contain_text("Of course.")
        await expect(page.locator('[data-state="stopped"]')).to_contain_text("I would")


async def test_what_is_typed_is_kept_and_html_is_shown(site: Site, pro: Person) -> None:
    async with visit(site, pro) as visitor:
        page = await visitor.page()
        box = page.get_by_label("Your message")
        await box.press_sequentially("<img src=x onerror=alert(1)>")
        await box.press("Shift+Enter")
        await box.press_sequentially("second line")
        await page.reload()
        await expect(box).to_have_value("<img src=x onerror=alert(1)>\nsecond line")
        await box.press("Enter")
        await answered(page)
        await expect(box).to_have_value("")
        await page.reload()
        await expect(box).to_have_value("")
        await expect(page.locator(".said.customer")).to_contain_text("<img src=x onerror=alert(1)>")
        assert await page.locator(".conversation img").count() == 0


async def test_a_server_out_of_reach_keeps_the_message(site: Site, pro: Person) -> None:
    async with visit(site, pro) as visitor:
        page = await visitor.page()
        await page.route("**/api/v1/messages/", lambda route: route.abort())
        await say(page, PLAN)
        await expect(page.get_by_role("alert")).to_contain_text("did not reach the server")
        await expect(page.get_by_label("Your message")).to_have_value(PLAN)
        await page.unroute("**/api/v1/messages/")
        await page.get_by_role("button", name="Send").click()
        await answered(page)
        visitor.complaints = [each for each in visitor.complaints if "net::ERR_FAILED" not in each]


async def test_the_page_says_goodbye_and_the_next_one_takes_it_back(site: Site, pro: Person) -> None:
    async with visit(site, pro) as visitor:
        page = await visitor.page()
        await say(page, PLAN)
        await answered(page)
        assert not has_left(pro)
        await page.goto("about:blank")
        await until(lambda: has_left(pro))
        await page.goto(site.address + "/brain/")
        await until(lambda: not has_left(pro))
        async with page.expect_response(re.compile("/presence/$")) as presence:
            await page.get_by_role("link", name="Sessions").click()
        await (await presence.value).finished()
        await page.goto("about:blank")  # from a page without the conversation too
        await until(lambda: has_left(pro))


async def test_without_a_script(site: Site, pro: Person) -> None:
    site.says([{"words": WORDS, "delay": 0.05}])
    async with visit(site, pro, java_script_enabled=False) as visitor:
        page = await visitor.page()
        await page.get_by_label("Your message").fill(PLAN)
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator('[data-state="running"]')).to_be_visible()
        await answered(page)  # the page looks again by itself
        await expect(page.locator(".prose")).to_contain_text("word59")
        await page.get_by_role("button", name="End conversation").click()
        await page.get_by_role("link", name="See my notes on it").click()
        await expect(page.get_by_role("heading", name="Decisions")).to_be_visible()


async def test_with_the_keyboard_alone(site: Site, pro: Person) -> None:
    async with visit(site, pro) as visitor:
        page = await visitor.page()
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
        await page.keyboard.press("Enter")
        await page.keyboard.press("Tab")
        await expect(page.get_by_label("Your message")).to_be_focused()
        await page.keyboard.type(PLAN)
        await page.keyboard.press("Enter")
        await answered(page)
        focused = page.locator(":focus")
        while await focused.inner_text() != "End conversation":
            await page.keyboard.press("Shift+Tab")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("That conversation is closed.")).to_be_visible()


async def test_nothing_is_wider_than_a_phone(site: Site, pro: Person) -> None:
    site.says(
        [{"text": "A very wide table:\n\n|" + " column |" * 20 + "\n|" + "---|" * 20 + "\n" + "x" * 300}]
    )
    async with visit(site, pro, viewport={"width": 390, "height": 844}) as visitor:
        page = await visitor.page()
        await say(page, PLAN + " " + "longword" * 60)
        await answered(page)
        for path in ("/chat/", "/sessions/", "/brain/", "/brain/bible/", "/wrap-ups/", "/settings/"):
            await page.goto(site.address + path)
            assert await page.evaluate("document.documentElement.scrollWidth") <= 390, path
