"""The team over the API, and what only owners may do."""

from __future__ import annotations

from memberintel.tenancy.models import User
from tests.api.calls import browser, problem, send
from tests.conftest import Person


def test_an_owner_invites_removes_and_lets_back(alice: Person, bob: Person) -> None:
    client = browser(alice)
    invited = send(client, "POST", "/api/v1/invitations/", {"email": "Carol@Example.com"})
    assert invited.status_code == 201
    told = invited.json()
    assert (told["email"], told["sent"]) == ("carol@example.com", True)
    twice = send(client, "POST", "/api/v1/invitations/", {"email": "carol@example.com"})
    assert (twice.status_code, problem(twice)["type"]) == (409, "/problems/refused")
    assert send(client, "DELETE", f"/api/v1/invitations/{told['id']}/").status_code == 204
    assert send(client, "DELETE", f"/api/v1/invitations/{told['id']}/").status_code == 404

    assert send(client, "DELETE", f"/api/v1/colleagues/{bob.user.id}/").status_code == 204
    assert not User.objects.get(id=bob.user.id).is_active
    team = client.get("/api/v1/colleagues/").json()
    assert [one["email"] for one in team["removed"]] == [bob.user.email]
    assert send(client, "POST", f"/api/v1/colleagues/{bob.user.id}/").json()["active"] is True


def test_the_last_owner_stays(alice: Person) -> None:
    refused = send(browser(alice), "DELETE", f"/api/v1/colleagues/{alice.user.id}/")
    assert (refused.status_code, problem(refused)["type"]) == (409, "/problems/refused")
    assert User.objects.get(id=alice.user.id).is_active


def test_a_colleague_is_told_that_it_is_for_owners(bob: Person) -> None:
    refused = browser(bob).get("/api/v1/colleagues/")
    assert (refused.status_code, problem(refused)["type"]) == (403, "/problems/owners-only")
