from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from playwright.async_api import expect

from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import scope
from memberintel.tenancy.models import Tenant
from sessions import actions as sessions
from sessions import log, queries
from sessions.domain import events as kinds
from sessions.log import Turn
from tests.browser.conftest import Site, answered, aside, say, visit, wire
from tests.conftest import Person
from tests.waiting import until_true

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

PLAN = (
    "I run a dance studio with 140 members. We decided to pause the discount campaign until March. "
    "I will call the five members who left last week before Friday."
)
WORDS = " ".join(f"word{number}" for number in range(60))


def has_left(person: Person) -> bool:
    """Whether the person's open conversation is about to close because nobody is there."""

    def look() -> bool:
        with scope(person.scope):
            session = queries.open_session()
        return session is not None and session.leaving_at is not None

    return aside(look)


def has_answer(person: Person) -> bool:
    """Whether the last answer of the person's open conversation is whole."""

    def look() -> bool:
        with scope(person.scope):
            session = queries.open_session()
            items = queries.newest_part(session).items if session else []
        return bool(items) and getattr(items[-1], "state", "") == "complete"

    return aside(look)


async def until(condition: Callable[[], bool]) -> None:
    """Wait until it is true; the browser goes on meanwhile."""
    await until_true(lambda: asyncio.to_thread(condition))


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
        remembered = page.get_by_role("complementary", name="What I remember")
        await expect(remembered).to_contain_text("pause the discount campaign until March")

        await page.goto(notes)
        await page.get_by_role("link", name="Edit").click()
        await page.get_by_label("Summary").fill("We paused <b>all</b> campaigns.")
        await page.get_by_role("button", name="Save").click()
        await expect(page.locator("main")).to_contain_text("We paused <b>all</b> campaigns.")
        await page.get_by_role("link", name="Delete").click()
        await page.get_by_role("button", name="Delete for good").click()
        await expect(page.get_by_role("status")).to_contain_text("Deleted")
        await page.goto(site.address + "/chat/")
        await expect(remembered).to_contain_text("Removed by you on")
        await expect(remembered).not_to_contain_text("discount campaign")
        await page.get_by_text("What I knew when this conversation began").click()
        await expect(page.locator(".conversation details[open]")).to_contain_text("removed by you on")


async def test_from_signing_up_to_the_first_wrap_up_on_free_and_on_pro(site: Site) -> None:
    email = f"new-{uuid4().hex[:8]}@example.com"
    async with visit(site) as visitor:
        page = await visitor.page("/")
        await page.get_by_role("link", name="Open an account").click()
        await page.get_by_label("Email").fill(email)
        await page.get_by_label("Password").fill("a very good password")
        await page.get_by_role("button", name="Open my account").click()
        await page.wait_for_url("**/chat/")
        await expect(page.get_by_role("heading", name="Welcome. Tell me about your site.")).to_be_visible()
        await say(page, PLAN)
        await answered(page)
        await expect(page.locator("#known")).to_contain_text("this is our first conversation")
        await page.get_by_role("button", name="End conversation").click()
        await page.get_by_role("link", name="See my notes on it").click()
        await expect(page.get_by_role("heading", name="This page is part of Pro")).to_be_visible()
        await page.get_by_role("link", name="Wrap-ups").click()
        await expect(page.get_by_role("heading", name="This page is part of Pro")).to_be_visible()
        aside(lambda: Tenant.objects.filter(user__email=email).update(tier_id="pro"))
        await page.reload()
        await page.locator(".row .title").click()
        await expect(page.get_by_role("heading", name="Decisions")).to_be_visible()
        await expect(page.locator("main")).to_contain_text("pause the discount campaign until March")


async def test_an_answer_streams_and_can_be_stopped(site: Site, pro: Person) -> None:
    site.says([{"reasoning": "Let me think."}, {"words": WORDS, "delay": 0.1}, {"stall": True}])
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


async def test_what_was_just_said_and_its_answer_are_in_view(site: Site, pro: Person) -> None:
    site.says([{"text": WORDS}])
    async with visit(site, pro) as visitor:
        page = await visitor.page()
        for times in range(1, 4):
            await say(page, f"{PLAN} That is message number {times}.")
            await answered(page, times)
            await expect(page.locator(".said.customer").nth(times - 1)).to_be_in_viewport()
            await expect(page.locator("#to-newest")).to_be_hidden()


async def test_an_answer_that_failed_can_be_tried_again(site: Site, pro: Person) -> None:
    site.says(
        [{"error": "overloaded"}], [{"error": "overloaded"}], [{"error": "overloaded"}], [{"text": "Here."}]
    )
    async with visit(site, pro) as visitor:
        page = await visitor.page()
        await say(page, PLAN)
        await expect(page.locator('[data-state="failed"] [role=alert]')).to_be_visible()
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
            await answered(tab, text=WORDS)


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


async def test_markdown_is_shown_while_it_is_written_and_html_never_runs(site: Site, pro: Person) -> None:
    written = (
        "## Plan\n\nAsk **five** members, *soon*:\n\n1. call\n2. <img src=x onerror=alert(1)>\n\n"
        "```\n<script>alert(2)</script>\n```\n\n[safe](https://example.com) [unsafe](javascript:alert(3)) `a*b*c`"
    )
    pieces = [{"text": written[at : at + 7]} for at in range(0, len(written), 7)]
    site.says([*pieces, {"stall": True}])
    async with visit(site, pro) as visitor:
        page = await visitor.page()
        await say(page, PLAN)
        prose = page.locator(".prose")
        for shown in ("while it is written", "as the server shows it"):
            await expect(prose.locator("code", has_text="a*b*c")).to_be_visible()
            await expect(prose.locator("h3")).to_have_text("Plan")
            await expect(prose.locator("strong")).to_have_text("five")
            await expect(prose.locator("em")).to_have_text("soon")
            await expect(prose.locator("ol > li")).to_have_text(["call", "<img src=x onerror=alert(1)>"])
            await expect(prose.locator("pre")).to_have_text("<script>alert(2)</script>")
            await expect(prose.locator("a")).to_have_text(["safe"])
            await expect(prose).to_contain_text("[unsafe](javascript:alert(3))")
            assert await prose.locator("img, script").count() == 0
            if shown == "while it is written":
                await page.get_by_role("button", name="Stop").click()
                await expect(page.locator('[data-state="stopped"]')).to_be_visible()


async def test_a_network_that_goes_and_comes_loses_no_character(site: Site, pro: Person) -> None:
    first, rest = " ".join(WORDS.split()[:40]), " ".join(WORDS.split()[40:])
    wait: dict[str, Any] = {"text": " ", "gate": str(site.gate)}  # still speaking when the line is cut
    site.says([{"words": first, "delay": 0.1}, wait, {"words": rest, "delay": 0.1}])
    async with wire(site) as line, visit(site, pro) as visitor:
        page = await visitor.page()
        await page.goto(line.address + "/chat/")
        await say(page, PLAN)
        await expect(page.locator(".prose")).to_contain_text("word5")
        await visitor.context.set_offline(True)
        line.cut()
        await expect(page.locator(".state")).to_contain_text("Connection lost")
        assert WORDS.startswith((await page.locator(".prose").inner_text()).strip())
        line.mend()
        await visitor.context.set_offline(False)
        await expect(page.locator(".prose")).to_contain_text("word39")
        site.gate.touch()
        await expect(page.locator(".prose")).to_contain_text("word45")
        assert WORDS.startswith((await page.locator(".prose").inner_text()).strip())
        await answered(page, text=WORDS)
        visitor.forgive("net::ERR_")


async def test_an_answer_that_ends_while_the_network_is_away_is_there_afterwards(
    site: Site, pro: Person
) -> None:
    site.says([{"words": WORDS, "delay": 0.02}])
    async with wire(site) as line, visit(site, pro) as visitor:
        page = await visitor.page()
        await page.goto(line.address + "/chat/")
        await say(page, PLAN)
        await expect(page.locator(".prose")).to_contain_text("word5")
        await visitor.context.set_offline(True)
        line.cut()
        await until(lambda: has_answer(pro))
        line.mend()
        await visitor.context.set_offline(False)
        await answered(page, text=WORDS)
        visitor.forgive("net::ERR_")


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
        visitor.forgive("net::ERR_FAILED")


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
        await page.get_by_role("link", name="Sessions").click()
        await page.wait_for_url("**/sessions/")
        await expect(page.locator("body[data-open-session]")).to_have_count(1)
        await page.goto("about:blank")  # from a page without the conversation too
        await until(lambda: has_left(pro))


async def test_what_is_said_in_one_tab_shows_in_the_other(site: Site, pro: Person) -> None:
    site.says([{"words": WORDS, "delay": 0.02}])
    async with visit(site, pro) as visitor:
        page, other = await visitor.page(), await visitor.page()
        await say(page, PLAN)
        for tab in (page, other):
            await answered(tab, text=WORDS)


async def test_a_long_conversation_opens_at_its_end_and_goes_back(site: Site, pro: Person) -> None:
    def talk() -> None:
        with scope(pro.scope):
            session = sessions.open_session()
            for number in range(110):
                one = Turn(uuid7(), 1, "test")
                log.append(session, kinds.user_message(text=f"Question {number}", tokens=2), turn=one)
                done = kinds.assistant_turn(text=f"Answer {number}", tokens=2, model="m", provider="p")
                log.append(session, done, turn=one)

    aside(talk)
    async with visit(site, pro) as visitor:
        page = await visitor.page()
        await expect(page.get_by_text("Answer 109", exact=True)).to_be_in_viewport()
        await expect(page.get_by_text("Question 0", exact=True)).to_have_count(0)
        await page.get_by_role("link", name="Earlier messages").click()
        await expect(page.get_by_text("Question 0", exact=True)).to_have_count(1)
        await expect(page.get_by_role("link", name="Earlier messages")).to_have_count(0)
        await expect(page.locator(".said.customer")).to_have_count(110)
        await page.get_by_role("button", name="You forgot something").click()
        await expect(page.locator("#forgot-said")).to_contain_text("Noted")


async def test_off_the_record_nothing_stays(site: Site, pro: Person) -> None:
    async with visit(site, pro) as visitor:
        page = await visitor.page()
        await page.get_by_role("link", name="Talk off the record").click()
        await page.get_by_role("button", name="Begin off the record").click()
        banner = page.locator(".off-record")
        await expect(banner).to_contain_text("Every word is erased")
        await say(page, PLAN)
        await answered(page)
        await expect(banner).to_be_visible()
        late = await visitor.page()
        await expect(late.locator(".off-record")).to_be_visible()
        await page.get_by_role("button", name="End conversation").click()
        await expect(page.get_by_text("nothing of it is kept")).to_be_visible()
        await say(late, "One more thing, between us.")
        await expect(late.get_by_role("alert")).to_contain_text("off the record and is over")
        await late.get_by_role("button", name="Begin a new one").click()
        await expect(late.get_by_label("Your message")).to_have_value("One more thing, between us.")
        await page.goto(site.address + "/sessions/")
        await page.get_by_role("link", name="Off the record").click()
        await expect(page.locator("main")).to_contain_text("Nothing of it was kept")


async def test_without_a_script(site: Site, pro: Person) -> None:
    site.says([{"words": WORDS}, {"text": " and an end.", "gate": str(site.gate)}])
    async with visit(site, pro, java_script_enabled=False) as visitor:
        page = await visitor.page()
        await page.get_by_label("Your message").fill(PLAN)
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator('[data-state="running"]')).to_be_visible()
        site.gate.touch()
        await answered(page)  # the page looks again by itself
        await expect(page.locator(".prose")).to_contain_text("word59 and an end.")
        remembered = page.locator("#known")
        await expect(remembered).to_contain_text("Nothing about you yet")
        await expect(remembered).to_be_visible()  # beside the conversation
        await page.set_viewport_size({"width": 390, "height": 844})
        await expect(remembered).to_be_hidden()  # above it, folded
        await page.get_by_text("What I remember").click()
        await expect(remembered).to_be_visible()
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
        for _ in range(40):
            if await focused.inner_text() == "End conversation":
                break
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
