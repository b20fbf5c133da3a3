"""Who gets in where: every call of the API, as everybody who might try."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from memberintel.accounts import tokens
from memberintel.accounts.models import ApiToken
from memberintel.accounts.rest import Endpoint
from memberintel.lib import clock
from memberintel.tenancy.context import scope
from memberintel.tenancy.models import User
from tests.api.calls import (
    BODIES,
    NOTHING,
    Call,
    addresses,
    bearer,
    browser,
    calls,
    made_token,
    make,
    problem,
    revoked,
)
from tests.conftest import Person

CALLS = calls()
each_call = pytest.mark.parametrize("call", CALLS, ids=str)
each_by_id = pytest.mark.parametrize("call", [call for call in CALLS if call.by_uuid], ids=str)
each_for_tokens = pytest.mark.parametrize("call", [call for call in CALLS if call.scopes], ids=str)

# Addresses, or single methods of them, that a colleague is told are for owners, whatever the id.
OWNERS_ONLY = {
    *("api-colleagues", "api-colleague", "api-invitations", "api-invitation"),
    *("api-sources", "api-source", "POST api-sites", "PUT api-site", "DELETE api-site"),
    "POST api-numbers",
}
# What belongs to the team and not to one customer: a colleague gets it too.
TEAMS = {"GET api-site", "GET api-heartbeat", "GET api-numbers"}


def test_every_address_declares_its_rule() -> None:
    """An address is open to all, which is said where it is made, or names the scopes of each of its methods."""
    for path, pattern in addresses():
        view: Any = getattr(pattern.callback, "cls", None)
        if getattr(pattern.callback, "open_to_all", False):
            assert view is None, path
            continue
        assert view is not None, f"{path} is neither an Endpoint nor open to all"
        assert issubclass(view, Endpoint), path
        answered = {name.upper() for name in ("get", "post", "put", "patch", "delete") if hasattr(view, name)}
        assert view.scopes.keys() == answered, f"{path}: declare the scopes of each method"
        for scopes in view.scopes.values():
            assert set(scopes) <= tokens.SCOPES.keys(), path


def test_every_body_of_these_tests_belongs_to_a_call() -> None:
    assert BODIES.keys() <= {(call.name, call.method) for call in CALLS}


def test_only_making_tokens_needs_a_browser() -> None:
    assert [str(call) for call in CALLS if not call.scopes] == ["POST api-tokens"]


@each_call
def test_nobody(call: Call) -> None:
    response = make(Client(), call, NOTHING)
    assert (response.status_code, problem(response)["type"]) == (401, "/problems/not-signed-in")
    assert response["WWW-Authenticate"].startswith("Bearer")


@each_call
def test_staff_have_nothing_here(call: Call) -> None:
    staff = User.objects.create_superuser(f"staff-{uuid4().hex}@example.com")
    response = make(browser(Person(staff, None)), call, NOTHING)
    assert (response.status_code, problem(response)["type"]) == (403, "/problems/no-customer")


@each_by_id
def test_others_get_what_an_id_of_nothing_gets(
    call: Call, ids: dict[str, Any], bob: Person, dora: Person
) -> None:
    everything = tuple(tokens.SCOPES)
    for who in (bob, dora):
        for client in (browser(who), bearer(made_token(who, *everything).secret)):
            theirs, nothing = make(client, call, ids), make(client, call, NOTHING)
            if who is bob and str(call) in TEAMS:
                assert theirs.status_code in (200, 400)
                continue
            owners_only = who is bob and bool({call.name, str(call)} & OWNERS_ONLY)
            assert theirs.status_code == nothing.status_code == (403 if owners_only else 404)
            assert theirs.content == nothing.content
            assert dict(theirs.items()) == dict(nothing.items())
            problem(theirs)


@each_for_tokens
def test_the_scopes_named_do_and_the_others_do_not(call: Call, charlie: Person) -> None:
    for name in tokens.SCOPES:
        told = problem_of(make(bearer(made_token(charlie, name).secret), call, NOTHING))
        if name in call.scopes:
            assert told.get("type") not in ("/problems/wrong-scope", "/problems/sign-in-required")
        else:
            assert told["type"] == "/problems/wrong-scope"
            assert told["scopes"] == list(call.scopes)


def problem_of(response: Any) -> dict[str, Any]:
    return problem(response) if response.status_code >= 400 else {}


@each_call
def test_tokens_that_are_no_more(call: Call, alice: Person) -> None:
    everything = tuple(tokens.SCOPES)
    gone = made_token(alice, *everything)
    revoked(alice, gone.token.id)
    late = made_token(alice, *everything, expires_at=clock.now() - timedelta(seconds=1))
    for secret in (gone.secret, late.secret, tokens.new(), "mi_short", "ä", ""):
        response = make(bearer(secret), call, NOTHING)
        assert (response.status_code, problem(response)["type"]) == (401, "/problems/invalid-token")


def test_a_token_for_which_there_is_no_customer_any_more(alice: Person) -> None:
    token = made_token(alice, "account")
    User.objects.filter(pk=alice.user.pk).update(is_active=False)
    assert bearer(token.secret).get("/api/v1/profile/").status_code == 401


def test_a_token_that_is_wrong_is_not_made_good_by_a_cookie(alice: Person) -> None:
    response = browser(alice).get("/api/v1/profile/", headers={"Authorization": "Bearer mi_wrong"})
    assert response.status_code == 401


def test_a_token_acts_for_its_owner_alone(alice: Person, bob: Person) -> None:
    told = bearer(made_token(alice, "read").secret).get("/api/v1/profile/").json()
    assert told["id"] == str(alice.user.pk)
    assert told["id"] != str(bob.user.pk)


def test_use_is_remembered_to_the_hour(alice: Person) -> None:
    made = made_token(alice, "read")
    client = bearer(made.secret)
    for _ in range(2):
        assert client.get("/api/v1/profile/").status_code == 200
    with scope(alice.scope):
        used = ApiToken.objects.get(id=made.token.id).last_used_at
    assert used is not None
    assert (used.minute, used.second, used.microsecond) == (0, 0, 0)
    assert clock.now() - used < timedelta(hours=1, minutes=1)


def test_what_is_kept_of_a_token_does_not_give_it_away(alice: Person) -> None:
    made = made_token(alice, "read")
    with scope(alice.scope):
        row = ApiToken.objects.get(id=made.token.id)
        kept = repr({field.attname: getattr(row, field.attname) for field in ApiToken._meta.fields})
    assert bytes(row.digest) == tokens.digest(made.secret)
    assert made.secret not in kept
    assert made.secret.startswith(row.prefix)
    assert len(row.prefix) < 12


# --- a browser -------------------------------------------------------------------------------------------


@each_call
def test_a_browser_proves_that_our_page_sent_it(call: Call, alice: Person) -> None:
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.force_login(alice.user, backend="django.contrib.auth.backends.ModelBackend")
    response = make(client, call, NOTHING)
    if call.method == "GET":
        assert response.status_code in (200, 400, 404)
    else:
        assert (response.status_code, problem(response)["type"]) == (403, "/problems/csrf-failed")


def test_a_page_of_ours_is_believed_also_as_it_leaves(alice: Person, ids: dict[str, Any]) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice.user, backend="django.contrib.auth.backends.ModelBackend")
    client.get("/settings/")
    token = client.cookies["csrftoken"].value
    said = client.post(
        "/api/v1/presence/", "{}", content_type="application/json", headers={"X-CSRFToken": token}
    )
    assert said.status_code == 200
    goodbye = client.post(f"/api/v1/sessions/{ids['session']}/leaving/", {"csrfmiddlewaretoken": token})
    assert goodbye.status_code == 204


def test_a_script_needs_no_csrf_token(alice: Person) -> None:
    client = Client(
        enforce_csrf_checks=True, headers={"Authorization": f"Bearer {made_token(alice, 'chat').secret}"}
    )
    response = client.post("/api/v1/presence/", "{}", content_type="application/json")
    assert response.json() == {"session": None}
