"""Every address, tried as everybody who might: nobody, staff, a stranger, a colleague, a customer on Free."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client, override_settings

from brain.actions import save_document
from memberintel.accounts import colleagues, invitations
from memberintel.privacy import opening
from memberintel.tenancy.context import scope
from memberintel.tenancy.models import User
from tests.access.routes import Route, desk_routes, routes
from tests.admin.scene import PLANTED, plant
from tests.admin.staff import clerk, make_staff, sign_in
from tests.api.calls import made_token
from tests.conftest import Person, make_person
from tests.tenancy.databases import connected_as
from tests.tenancy.rows import make_rows

ROUTES = routes()
PAGES = [route for route in ROUTES if "customer" in route.rules]
OWNED = [route for route in PAGES if route.ids]
API = [route for route in ROUTES if route.rules == ("api",)]
DESK = desk_routes()
BACKEND = "django.contrib.auth.backends.ModelBackend"
TOKEN = re.compile(rb'(name="csrfmiddlewaretoken" value=|data-csrf=)"[^"]*"')
FORMS = {"invitation": {"act": "withdraw"}}


@dataclass(frozen=True)
class World:
    """Somebody with one of everything, and those who have no business there."""

    owner: Person
    ids: dict[str, Any]
    # A row of every table, for addresses whose ids have no name above: whether it is one customer's, and its id.
    rows: list[tuple[bool, UUID]]
    nobody: Client
    stranger: Client
    colleague: Client
    free: Client
    staff: Client


def browser(user: User) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(user, BACKEND)
    return client


@pytest.fixture(scope="module")
def world(django_db_blocker: Any) -> World:
    with django_db_blocker.unblock():
        owner = make_person(tier="pro", name="everything")
        scene = plant(owner)
        mate = make_person(tier="pro", tenant=owner.user.tenant, owner=False, name="mate")
        gone = make_person(tier="pro", tenant=owner.user.tenant, owner=False, name="gone")
        with scope(owner.scope):
            colleagues.remove(gone.user.id, by=owner.user.id)
            invitation = invitations.invite(f"{uuid4().hex}@example.com", by=owner.user.id)
        ids = {
            "session": scene.rows["chat.Session"],
            "turn": uuid4(),  # of a session of theirs, which is what the answer turns on
            "turn_id": uuid4(),
            "wrap_up": scene.rows["wrapups.SessionLog"],
            "token": made_token(owner, "read").token.id,
            "person": gone.user.id,
            "invitation": invitation.id,
        }
        other = make_person(tier="pro", tenant=owner.user.tenant, owner=False, name="rows")
        rows = [json.loads(row) for row in make_rows(other, connected_as("owner")).values()]
        return World(
            owner,
            ids,
            [(row.get("customer_id") is not None, UUID(row["id"])) for row in rows if "id" in row],
            Client(raise_request_exception=False),
            browser(make_person(tier="business", name="stranger").user),
            browser(mate.user),
            browser(make_person(tier="free", name="free").user),
            browser(clerk("support")),
        )


def both(client: Client, path: str, form: dict[str, str] | None = None) -> list[Any]:
    """The answers to reading and to a form, of the methods the address takes."""
    answers = [client.get(path), client.post(path, form or {})]
    return [answer for answer in answers if answer.status_code != 405]


def told(answer: Any) -> tuple[int, str, bytes]:
    body = b"" if answer.streaming else TOKEN.sub(b"", answer.content)
    return answer.status_code, answer.get("Location", ""), body


def page(route: Route) -> str:
    return str(route)


@pytest.mark.parametrize("route", PAGES, ids=page)
def test_nobody_is_asked_to_sign_in(world: World, route: Route) -> None:
    answers = both(world.nobody, route.at({}))
    assert answers
    for answer in answers:
        assert answer.status_code == 302
        assert answer["Location"].startswith("/accounts/login/")


@pytest.mark.parametrize("route", PAGES, ids=page)
def test_staff_are_sent_to_their_desk(world: World, route: Route) -> None:
    for answer in both(world.staff, route.at(world.ids)):
        assert (answer.status_code, answer["Location"]) == (302, "/admin/")


@pytest.mark.parametrize("route", OWNED, ids=page)
@pytest.mark.parametrize("who", ["stranger", "colleague"])
def test_others_get_what_an_id_of_nothing_gets(world: World, route: Route, who: str) -> None:
    client: Client = getattr(world, who)
    expected = 403 if who == "colleague" and "owner" in route.rules else 404
    form = FORMS.get(route.name)
    for ids in tried(route, world, who):
        for theirs, none in zip(
            both(client, route.at(ids), form), both(client, route.at({}), form), strict=True
        ):
            assert told(theirs) == told(none), ids
            assert theirs.status_code == expected, ids
            assert PLANTED.encode() not in theirs.content


def tried(route: Route, world: World, who: str) -> list[dict[str, Any]]:
    """Ids of the owner's for the address; where an id has no name here, one of every table in its place.

    What belongs to the account as a whole is a colleague's too.
    """
    unnamed = [name for name in route.ids if name not in world.ids]
    if not unnamed:
        return [world.ids]
    rows = [row for private, row in world.rows if private or who == "stranger"]
    return [world.ids | dict.fromkeys(unnamed, row) for row in rows]


@pytest.mark.parametrize("route", [route for route in PAGES if not route.takes], ids=page)
@pytest.mark.parametrize("who", ["stranger", "colleague", "free"])
def test_what_is_everybodys_own_shows_nothing_of_anothers(world: World, route: Route, who: str) -> None:
    answer = getattr(world, who).get(route.at({}))
    if answer.status_code != 405:
        assert answer.status_code in (200, 302, 403)
        assert PLANTED not in answer.content.decode()


@pytest.mark.parametrize("route", [route for route in PAGES if "tier" in route.rules], ids=page)
def test_on_free_a_page_of_another_tier_says_so(world: World, route: Route) -> None:
    for answer in both(world.free, route.at({})):
        assert answer.status_code in (200, 403)
        assert "You are on Free" in answer.content.decode()


@pytest.mark.parametrize("route", [route for route in PAGES if "owner" in route.rules], ids=page)
def test_a_colleague_is_told_whom_to_ask(world: World, route: Route) -> None:
    for answer in both(world.colleague, route.at(world.ids)):
        assert answer.status_code == 403
        assert world.owner.user.email in answer.content.decode()


@pytest.mark.parametrize("route", API, ids=page)
def test_the_api_lets_neither_nobody_nor_staff_in(world: World, route: Route) -> None:
    for client, status in ((world.nobody, 401), (world.staff, 403)):
        answers = both(client, route.at({}))
        assert {answer.status_code for answer in answers} <= {status}


@pytest.mark.parametrize("route", [route for route in ROUTES if route.rules == ("signed in",)], ids=page)
def test_pages_about_signing_in_are_for_those_who_have(world: World, route: Route) -> None:
    for answer in both(world.nobody, f"/{route.path}"):
        assert answer.status_code in (302, 404)
        assert answer.get("Location", "/accounts/").startswith("/accounts/")


@pytest.mark.parametrize("route", [route for route in ROUTES if route.rules == ("open",)], ids=page)
def test_what_is_open_says_nothing_of_anybody(world: World, route: Route) -> None:
    path = re.sub(r"<[^>]+>|\^|\(\?P[^)]*\)|\$", "nothing", str(route))
    answer = world.nobody.get("/" + path.strip("/") + ("/" if path.endswith("/") and path.strip("/") else ""))
    assert answer.status_code < 500
    assert PLANTED not in (b"" if answer.streaming else answer.content).decode()


# --- the desk --------------------------------------------------------------------------------------------


def desk_path(route: Route, world: World) -> str:
    """A path of the desk with ids of the owner; parts Django writes as patterns are filled with an id."""
    path = "/" + route.path
    path = re.sub(r"\(\?P<[a-z_]+>[^)]*\)", str(uuid4()), path)
    path = path.replace("<str:kind>", "soul").replace("<uuid:row>", str(world.owner.user.pk))
    path = re.sub(r"<[^>]+>", str(world.owner.user.pk), path)
    return path.replace("^", "").replace("$", "").replace("(?:.*)", "x")


@pytest.mark.parametrize("route", DESK, ids=page)
def test_the_desk_does_not_exist_for_customers_and_asks_others_to_sign_in(world: World, route: Route) -> None:
    path = desk_path(route, world)
    if route.name in {"login", "logout"}:
        return  # they lead to the one sign-in and sign-out there is, whoever comes
    for answer in both(world.nobody, path):
        assert answer.status_code == 302, path
        assert answer["Location"].startswith("/accounts/login/")
    for client in (world.stranger, world.colleague, world.free):
        assert {answer.status_code for answer in both(client, path)} <= {404}, path


@pytest.mark.parametrize("route", DESK, ids=page)
def test_staff_without_a_second_factor_get_to_no_page_of_the_desk(world: World, route: Route) -> None:
    if route.name in {"login", "logout"}:
        return
    for answer in both(world.staff, desk_path(route, world)):
        assert answer.status_code == 302
        assert answer["Location"].startswith("/accounts/2fa/totp/activate/")


@pytest.mark.parametrize("grant", ["none", "expired", "another's"])
def test_support_opens_nothing_without_a_grant_that_stands(grant: str) -> None:
    owner = make_person(tier="pro", name="sealed")
    with scope(owner.scope):
        save_document(kind="soul", body=PLANTED, base_version=0, by="customer", reason="")
    staff = make_staff(role="support")
    reason = "They asked us to look into it"
    if grant == "expired":
        with override_settings(ACCESS_GRANT_SECONDS=0):
            opening.ask(staff=staff, whose=owner.scope, reason=reason)
    elif grant == "another's":
        opening.ask(staff=clerk("support"), whose=owner.scope, reason=reason)
    desk = sign_in(staff)
    for path in (f"/admin/open/soul/{owner.user.pk}/", f"/admin/open/bible/{owner.user.pk}/"):
        assert PLANTED not in desk.get(path).content.decode()
    opening.ask(staff=staff, whose=owner.scope, reason=reason)
    assert PLANTED in desk.get(f"/admin/open/soul/{owner.user.pk}/").content.decode()
