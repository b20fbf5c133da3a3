"""What owners say about pooling, on the privacy page and over the API."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.conf import LazySettings
from django.test import Client

from memberintel.privacy.models import AuditRow
from memberintel.tenancy.context import scope
from tests.conftest import Person
from tests.wrapups.pooling.conftest import behind, reviewed_by_lawyers, run, shown
from wrapups.models import LegalReview
from wrapups.pooling import choices, legal

Member = Callable[..., Person]

ADDRESS, API = "/privacy/pooling/", "/api/v1/privacy/pooling/"
PLAN = "Ask members for a short testimonial after the first lesson"


@pytest.fixture(autouse=True)
def _plain(settings: LazySettings) -> None:
    settings.SECURE_SSL_REDIRECT = False


def signed_in(who: Person) -> Client:
    client = Client()
    client.force_login(who.user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def card(client: Client) -> str:
    """The part of the privacy page about it, without tags."""
    page = client.get("/privacy/").content.decode()
    found = re.search(r'<section class="card" aria-labelledby="pooling">.*?</section>', page, re.DOTALL)
    assert found
    return " ".join(re.sub(r"<[^>]*>", " ", found[0]).split())


def test_an_owner_leaves_on_the_privacy_page_and_is_gone_at_once(
    lawyers: LegalReview, member: Member
) -> None:
    people = [member(PLAN) for _ in range(6)]
    run()
    for who in people[:2]:
        client = signed_in(who)
        assert "This account takes part." in card(client)
        answer = client.post(ADDRESS, {"takes_part": "no"})
        assert (answer.status_code, answer["Location"], behind(who)) == (302, "/privacy/", 0)
        assert "This account takes no part , because an owner said so" in card(client)
    assert shown() == []
    with scope(people[0].scope):
        rows = AuditRow.objects.filter(action__startswith="pooling").order_by("id")
        assert [(row.action, row.actor) for row in rows] == [
            ("pooling_agreed", people[0].user.pk),
            ("pooling_declined", people[0].user.pk),
        ]


def test_only_an_owner_says_it(alice: Person, bob: Person) -> None:
    client = signed_in(bob)
    assert "An owner of the account decides" in card(client)
    assert client.post(ADDRESS, {"takes_part": "yes"}).status_code == 403
    answer = client.put(API, {"takes_part": True}, content_type="application/json")
    assert (answer.status_code, answer.json()["type"].endswith("owners-only")) == (403, True)
    assert client.get(API).json() == {"running": False, "takes_part": False, "said": None}
    own = signed_in(alice)
    given = own.put(API, {"takes_part": False}, content_type="application/json")
    assert given.json() == {"running": False, "takes_part": False, "said": False}
    assert client.get(API).json()["said"] is False


def test_the_page_says_how_the_account_stands(alice: Person) -> None:
    client = signed_in(alice)
    assert "Nothing is compared across accounts now." in card(client)
    client.post(ADDRESS, {"takes_part": "yes"})
    assert "An owner of this one agreed to it." in card(client)
    client.post(ADDRESS, {"takes_part": "no"})
    assert "takes no part" in card(client)
    other = reviewed_by_lawyers(LegalReview.Ground.NOTICE)
    assert "takes no part" in card(client)
    client.post(ADDRESS, {"takes_part": "yes"})
    assert "This account takes part." in card(client)
    legal.take_back(other, using="support")


def test_silence_is_a_yes_only_where_the_lawyers_said_so(alice: Person) -> None:
    for ground, takes_part in ((LegalReview.Ground.CONSENT, False), (LegalReview.Ground.NOTICE, True)):
        row = reviewed_by_lawyers(ground)
        with scope(alice.scope):
            assert choices.standing().takes_part is takes_part
        legal.take_back(row, using="support")
