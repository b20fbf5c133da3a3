from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.conf import LazySettings
from django.conf import settings as project_settings
from django.core import mail
from django.db import ProgrammingError, connections
from django.test import Client

from memberintel.accounts import colleagues, invitations
from memberintel.accounts.colleagues import Refused
from memberintel.accounts.models import Invitation
from memberintel.lib import clock
from memberintel.lib.discretion import HideLinks
from memberintel.tenancy.context import scope
from memberintel.tenancy.models import User
from tests.accounts.test_sign_up import PASSWORD, signed_in
from tests.conftest import Person, make_person


@pytest.fixture(autouse=True)
def _no_redirect_to_https(settings: LazySettings) -> None:
    settings.SECURE_SSL_REDIRECT = False


def address() -> str:
    return f"invited-{uuid4().hex[:8]}@example.com"


def invite(owner: Person, email: str) -> str:
    """The link of the letter that an owner's invitation sends."""
    mail.outbox.clear()
    response = signed_in(owner.user).post("/colleagues/", {"email": email})
    assert response.status_code == 302, response.content.decode()
    letter = mail.outbox[-1]
    assert letter.to == [email.lower()]
    found = re.search(r"http://testserver(/invitations/\S+)", str(letter.body))
    assert found is not None
    return found[1]


def open_row(owner: Person) -> UUID:
    with scope(owner.scope):
        return invitations.open_invitations()[0].id


def lapse(owner: Person) -> None:
    with scope(owner.scope):
        Invitation.objects.update(
            expires_at=clock.now() - timedelta(seconds=1), sent_at=clock.now() - timedelta(days=7)
        )


def together(*works: Callable[[], object]) -> list[object]:
    """What each gives or raises, begun at once."""

    def piece(work: Callable[[], object]) -> object:
        try:
            return work()
        except Exception as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(piece, works))


def test_an_invited_person_becomes_a_colleague_and_no_owner(alice: Person) -> None:
    email = address()
    link = invite(alice, email.upper())
    client = Client()
    page = client.get(link)
    assert alice.user.email in page.content.decode()
    assert page["Referrer-Policy"] == "same-origin"  # the address lets people in: it is told to nobody else
    assert page["Cache-Control"] == "no-store"
    response = client.post(link, {"password": PASSWORD})
    assert (response.status_code, response["Location"]) == (302, "/chat/")
    assert client.get("/chat/").status_code == 200
    user = User.objects.get(email=email)
    assert (user.tenant_id, user.is_owner, user.is_staff) == (alice.user.tenant_id, False, False)
    assert client.get("/colleagues/").status_code == 403


def test_a_link_works_once(alice: Person) -> None:
    link = invite(alice, address())
    assert Client().post(link, {"password": PASSWORD}).status_code == 302
    for response in (Client().get(link), Client().post(link, {"password": PASSWORD})):
        assert response.status_code == 410
        assert "no longer works" in response.content.decode()


def test_of_two_who_use_a_link_at_once_one_gets_in(alice: Person) -> None:
    email = address()
    link = invite(alice, email)
    token = link.removeprefix("/invitations/").rstrip("/")
    found = together(*[lambda: invitations.accept(token, PASSWORD)] * 4)
    assert [type(each) for each in found].count(User) == 1
    assert User.objects.filter(email=email).count() == 1


def test_a_link_ends_after_a_week_and_a_new_letter_begins_another(alice: Person) -> None:
    link = invite(alice, address())
    lapse(alice)
    assert Client().get(link).status_code == 410
    page = signed_in(alice.user).get("/colleagues/").content.decode()
    assert "expired" in page
    signed_in(alice.user).post(f"/colleagues/invitations/{open_row(alice)}/", {"act": "again"})
    assert Client().get(link).status_code == 200


def test_letters_are_not_sent_over_and_over(alice: Person) -> None:
    invite(alice, address())
    client = signed_in(alice.user)
    sent = len(mail.outbox)
    page = client.post(f"/colleagues/invitations/{open_row(alice)}/", {"act": "again"}, follow=True)
    assert "less than a minute ago" in page.content.decode()
    assert len(mail.outbox) == sent


def test_a_withdrawn_invitation_is_gone(alice: Person) -> None:
    link = invite(alice, address())
    row = open_row(alice)
    client = signed_in(alice.user)
    assert client.post(f"/colleagues/invitations/{row}/", {"act": "withdraw"}).status_code == 302
    assert Client().get(link).status_code == 410
    assert client.post(f"/colleagues/invitations/{row}/", {"act": "withdraw"}).status_code == 404
    assert client.post(f"/colleagues/invitations/{row}/", {"act": "burn"}).status_code == 400


@pytest.mark.parametrize("change", [lambda link: link[:-2] + "x/", lambda link: "/invitations/nonsense/"])
def test_a_link_nobody_signed_lets_nobody_in(alice: Person, change: Callable[[str], str]) -> None:
    link = change(invite(alice, address()))
    assert Client().get(link).status_code == 410
    assert Client().post(link, {"password": PASSWORD}).status_code == 410


def test_a_poor_password_is_refused_and_the_link_still_works(alice: Person) -> None:
    link = invite(alice, address())
    response = Client().post(link, {"password": "short"})
    assert response.status_code == 400
    assert "too short" in response.content.decode()
    assert Client().post(link, {"password": PASSWORD}).status_code == 302


def test_the_log_holds_no_link_that_still_works(alice: Person, caplog: pytest.LogCaptureFixture) -> None:
    link = invite(alice, address())
    with caplog.at_level("WARNING"):
        assert Client().post(link, {"password": "short"}).status_code == 400
        assert Client(enforce_csrf_checks=True).post(link, {"password": PASSWORD}).status_code == 403
    heard = [record for record in caplog.records if record.name.startswith("django.")]
    assert len(heard) == 2
    for record in heard:
        assert HideLinks().filter(record)
        assert link not in record.getMessage()
        assert "/invitations/…/" in record.getMessage()
    assert project_settings.LOGGING["handlers"]["console"]["filters"] == ["links"]


def test_who_is_signed_in_as_somebody_else_is_told_so(alice: Person, charlie: Person) -> None:
    link = invite(alice, address())
    response = signed_in(charlie.user).post(link, {"password": PASSWORD})
    assert response.status_code == 409
    assert charlie.user.email in response.content.decode()
    assert Client().get(link).status_code == 200


def test_who_opened_an_account_meanwhile_is_told_so(alice: Person) -> None:
    email = address()
    link = invite(alice, email)
    User.objects.create_user(email, PASSWORD)
    for response in (Client().get(link), Client().post(link, {"password": PASSWORD})):
        assert response.status_code == 409
        assert "You have an account already" in response.content.decode()


def test_known_addresses_are_refused_with_the_reason_and_kept_in_the_box(
    alice: Person, bob: Person, charlie: Person
) -> None:
    client = signed_in(alice.user)
    invited = address()
    invite(alice, invited)
    for email, words in (
        (charlie.user.email, "There is an account for this address already"),
        (bob.user.email.upper(), "belongs to a colleague already"),
        (invited, "has been invited already"),
        ("no address", "valid email address"),
    ):
        response = client.post("/colleagues/", {"email": email})
        page = response.content.decode()
        assert response.status_code == 400
        assert words in page
        assert f'value="{email}"' in page


def test_there_is_an_end_to_open_invitations(alice: Person) -> None:
    with scope(alice.scope):
        for _ in range(invitations.OPEN_AT_ONCE):
            invitations.invite(address(), by=alice.user.id)
        with pytest.raises(Refused, match="Withdraw one"):
            invitations.invite(address(), by=alice.user.id)


def test_a_letter_that_cannot_be_sent_is_said_and_the_invitation_stands(
    alice: Person, settings: LazySettings
) -> None:
    settings.MAILERS = {
        "default": {
            "BACKEND": "django.core.mail.backends.smtp.EmailBackend",
            "OPTIONS": {"host": "127.0.0.1", "port": 1},
        }
    }
    page = signed_in(alice.user).post("/colleagues/", {"email": address()}, follow=True).content.decode()
    assert "could not be sent" in page
    assert open_row(alice)


def test_a_removed_colleague_is_out_at_once_and_can_come_back(alice: Person, bob: Person) -> None:
    owner, colleague = signed_in(alice.user), signed_in(bob.user)
    bob.user.set_password(PASSWORD)
    bob.user.save()
    path = f"/colleagues/{bob.user.id}"
    assert bob.user.email in owner.get(f"{path}/remove/").content.decode()
    assert User.objects.get(id=bob.user.id).is_active
    assert owner.post(f"{path}/remove/").status_code == 302
    assert colleague.get("/chat/").status_code == 302
    entered = Client().post("/accounts/login/", {"login": bob.user.email, "password": PASSWORD}, follow=True)
    assert "_auth_user_id" not in entered.client.session
    page = owner.get("/colleagues/").content.decode()
    assert "what they wrote is kept sealed" in page
    assert owner.post("/colleagues/", {"email": bob.user.email}).status_code == 400
    assert owner.post(f"{path}/let-back/").status_code == 302
    assert (
        Client().post("/accounts/login/", {"login": bob.user.email, "password": PASSWORD})["Location"]
        == "/chat/"
    )
    assert colleague.get("/chat/").status_code == 302  # the old sign-in stays ended


def test_whom_support_switched_off_no_owner_lets_back(alice: Person, bob: Person) -> None:
    User.objects.filter(id=bob.user.id).update(is_active=False)
    assert signed_in(alice.user).post(f"/colleagues/{bob.user.id}/let-back/").status_code == 404


def test_nobody_removes_themselves_or_a_stranger(alice: Person, charlie: Person) -> None:
    client = signed_in(alice.user)
    page = client.post(f"/colleagues/{alice.user.id}/remove/", follow=True).content.decode()
    assert "cannot remove yourself" in page
    for person in (charlie.user.id, uuid4()):
        for act in ("remove", "let-back"):
            assert client.post(f"/colleagues/{person}/{act}/").status_code == 404
    assert User.objects.get(id=charlie.user.id).is_active


def test_two_owners_who_remove_each_other_at_once_leave_one(alice: Person) -> None:
    other = make_person(tier="pro", tenant=alice.user.tenant, name="dora")

    def removes(one: Person, another: Person) -> Callable[[], object]:
        def work() -> object:
            with scope(one.scope):
                return colleagues.remove(another.user.id, by=one.user.id)

        return work

    found = together(removes(alice, other), removes(other, alice))
    assert sorted(type(each).__name__ for each in found) == ["Refused", "User"]
    with scope(alice.scope):
        assert len(colleagues.owners()) == 1


def test_colleagues_who_are_no_owners_change_nothing_and_are_told_whom_to_ask(
    alice: Person, bob: Person
) -> None:
    invite(alice, address())
    client = signed_in(bob.user)
    assert "/colleagues/" not in client.get("/chat/").content.decode()
    for response in (
        client.get("/colleagues/"),
        client.post("/colleagues/", {"email": address()}),
        client.post(f"/colleagues/{alice.user.id}/remove/"),
        client.post(f"/colleagues/invitations/{open_row(alice)}/", {"act": "withdraw"}),
    ):
        assert response.status_code == 403
        assert alice.user.email in response.content.decode()


def test_invitations_are_seen_in_their_tenant_alone(alice: Person, charlie: Person) -> None:
    invite(alice, address())
    row = open_row(alice)
    stranger = signed_in(charlie.user)
    assert stranger.post(f"/colleagues/invitations/{row}/", {"act": "withdraw"}).status_code == 404
    with scope(charlie.scope):
        assert invitations.open_invitations() == []
    with pytest.raises(ProgrammingError, match="permission denied"):
        Invitation.objects.count()
