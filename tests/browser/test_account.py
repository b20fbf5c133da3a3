from __future__ import annotations

from uuid import uuid4

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import Site, answered, aside, say, visit
from tests.conftest import Person, make_person

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

PASSWORD = "a very good password"
# What the focused thing is called; nothing when it is none.
FOCUSED = "(at => at === document.body ? '' : at.innerText || at.name || '')(document.activeElement)"


async def newest_letter(page: Page, site: Site, to: str) -> None:
    """Follow the link of the newest letter to that address, on the page of letters."""
    await page.goto(site.address + "/mail/")
    letter = page.locator("article", has_text=to).first
    await letter.get_by_role("link", name=site.address).click()


@pytest.mark.parametrize("script", [True, False], ids=["with a script", "without one"])
async def test_a_colleague_is_invited_joins_and_is_removed(site: Site, pro: Person, script: bool) -> None:
    email = f"colleague-{uuid4().hex[:8]}@example.com"
    async with (
        visit(site, pro, java_script_enabled=script) as owner,
        visit(site, java_script_enabled=script) as other,
    ):
        page = await owner.page("/colleagues/")
        await expect(page.get_by_text("You are alone here.")).to_be_visible()
        await page.get_by_label("Their e-mail address").fill(email)
        await page.get_by_role("button", name="Send the invitation").click()
        await expect(page.get_by_role("status")).to_contain_text(f"{email} is invited")
        await expect(page.get_by_role("link", name="Read them here")).to_be_visible()

        theirs = await other.page("/mail/")
        await newest_letter(theirs, site, email)
        await expect(theirs.locator("main")).to_contain_text(pro.user.email)
        await theirs.get_by_label("Password").fill("short")
        await theirs.get_by_role("button", name="Join").click()
        await expect(theirs.locator(".errorlist")).to_contain_text("too short")
        await theirs.get_by_label("Password").fill(PASSWORD)
        await theirs.get_by_role("button", name="Join").click()
        await expect(theirs.get_by_role("heading", name="Chat")).to_be_visible()
        await theirs.goto(site.address + "/colleagues/")
        await expect(theirs.get_by_role("heading", name="This page is for owners")).to_be_visible()

        await page.reload()
        await page.get_by_role("link", name=f"Remove… {email}").click()
        await page.get_by_role("button", name="Remove them").click()
        await expect(page.get_by_role("status")).to_contain_text("removed and signed out")
        await theirs.goto(site.address + "/chat/")
        await expect(theirs.get_by_role("heading", name="Sign in")).to_be_visible()
        await theirs.get_by_label("Email").fill(email)
        await theirs.get_by_label("Password").fill(PASSWORD)
        await theirs.get_by_role("button", name="Sign in").click()
        await expect(theirs.get_by_role("heading", name="Chat")).to_have_count(0)


async def test_a_forgotten_password(site: Site) -> None:
    email = f"forgetful-{uuid4().hex[:8]}@example.com"
    async with visit(site) as visitor:
        page = await visitor.page("/accounts/signup/")
        await page.get_by_label("Email").fill(email)
        await page.get_by_label("Password").fill(PASSWORD)
        await page.get_by_role("button", name="Open my account").click()
        await page.wait_for_url("**/chat/")
        await visitor.context.clear_cookies()
        await page.goto(site.address + "/accounts/login/")
        await page.get_by_role("link", name="Forgot your password?").click()
        await page.get_by_label("Email").fill(email)
        await page.get_by_role("button", name="Send the link").click()
        await page.get_by_role("link", name="Read them here").click()
        await newest_letter(page, site, email)
        await page.get_by_label("New Password", exact=True).fill("another good password")
        await page.get_by_label("New Password (again)").fill("another good password")
        await page.get_by_role("button", name="Save the password").click()
        await expect(page.get_by_role("heading", name="Password saved")).to_be_visible()
        await page.get_by_role("link", name="Sign in").click()
        await page.get_by_label("Email").fill(email)
        await page.get_by_label("Password").fill("another good password")
        await page.get_by_role("button", name="Sign in").click()
        await page.wait_for_url("**/chat/")


async def test_settings_with_the_keyboard_alone(site: Site) -> None:
    person = aside(lambda: make_person(tier="free", name="keyboard", password=PASSWORD))
    async with visit(site, person) as visitor:
        page = await visitor.page("/settings/")

        async def reach(words: str) -> None:
            for _ in range(40):
                await page.keyboard.press("Tab")
                if words in await page.evaluate(FOCUSED):
                    return
            raise AssertionError(f"the Tab key never reaches {words!r}")

        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")  # skip to the content
        await reach("display_name")
        await page.keyboard.type("<b>Ada</b>")
        await reach("Save")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("status")).to_have_text("Saved.")
        await expect(page.get_by_label("Your name")).to_have_value("<b>Ada</b>")
        await expect(page.locator(".account .who")).to_have_text("<b>Ada</b>")
        await reach("<b>Ada</b>")  # the account menu
        await page.keyboard.press("Enter")
        await reach("Colleagues")
        await page.keyboard.press("Escape")
        await expect(page.locator("details.account")).not_to_have_attribute("open", "")
        await expect(page.locator("details.account > summary")).to_be_focused()


async def test_signing_out_everywhere_else(site: Site) -> None:
    person = aside(lambda: make_person(tier="pro", name="devices", password=PASSWORD))
    async with visit(site, person) as here, visit(site, person) as there:
        other = await there.page()
        page = await here.page("/settings/")
        await page.get_by_role("button", name="Sign out everywhere else").click()
        await expect(page.get_by_role("status")).to_contain_text("Every other device is signed out")
        await other.get_by_label("Your message").fill("Are you there?")
        await other.keyboard.press("Enter")
        await expect(other.get_by_role("alert")).to_contain_text("Your text is kept on this device")
        await say(await here.page(), "I am still here.")
        await answered(here.context.pages[-1])
