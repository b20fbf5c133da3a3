"""The pages of HEARTBEAT and of sites, as people use them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from uuid import UUID, uuid4

import pytest
from django.conf import LazySettings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from brain.domain.heartbeat import csv_file
from brain.models import Site, Source
from memberintel.lib import clock
from memberintel.tenancy.context import scope
from tests.accounts.test_sign_up import signed_in
from tests.brain.heartbeat import pretend
from tests.brain.heartbeat.pretend import KEY, Pretended
from tests.brain.heartbeat.stage import connected, days_of, numbers, site_of, sites_of, source_of, told_of
from tests.conftest import Person

LAST = date(2026, 11, 30)
HTML = "<img src=x onerror=alert(1)>"


@pytest.fixture(autouse=True)
def _here(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.SECURE_SSL_REDIRECT = False
    settings.HEARTBEAT_ALLOW_LOOPBACK = True
    settings.HEARTBEAT_RETRY_SECONDS = 0.01
    monkeypatch.setattr(clock, "source", lambda: datetime(2026, 12, 1, 9, tzinfo=UTC))


@pytest.fixture
def stripe(settings: LazySettings) -> Iterator[Pretended]:
    with pretend.serving(pretend.stripe) as server:
        settings.STRIPE_API_BASE = server.url
        server.lists = {"subscriptions": [], "events": []}
        yield server


def shown(client: Client, name: str, *ids: object, status: int = 200, **query: int | str) -> str:
    response = client.get(reverse(name, args=ids), query)
    assert response.status_code == status
    return response.content.decode()


def send(client: Client, site: UUID, data: bytes) -> tuple[int, str]:
    given = {"file": SimpleUploadedFile("numbers.csv", data, "text/csv")}
    response = client.post(reverse("heartbeat-upload", args=[site]), given)
    return response.status_code, response.content.decode()


# --- for everybody in the team ---------------------------------------------------------------------------


def test_before_there_is_a_site(alice: Person, bob: Person) -> None:
    assert "Add your site" in shown(signed_in(alice.user), "heartbeat")
    page = shown(signed_in(bob.user), "heartbeat")
    assert "An owner of this account adds the site" in page
    assert reverse("sites") not in page


def test_the_team_reads_what_is_told_and_sees_it_drawn(alice: Person, bob: Person) -> None:
    site = site_of(alice, HTML)
    numbers(alice, site, LAST)
    for who in (alice, bob):
        page = shown(signed_in(who.user), "heartbeat", days=30)
        assert "Active members: 200 on 30 November 2026" in page
        assert "<svg" in page
        assert "Active members: 171 on 1 November 2026, 200 on 30 November 2026." in page
        assert page.count("<tr>") == 31
        assert "&lt;img" in page
        assert HTML not in page
    assert shown(signed_in(bob.user), "heartbeat-site", site, days=365).count("<tr>") == 71
    assert shown(signed_in(bob.user), "heartbeat-site", site, days="9").count("<tr>") == 71


def test_a_stranger_finds_no_page_of_it(alice: Person, charlie: Person) -> None:
    site = site_of(alice)
    client = signed_in(charlie.user)
    for name in ("heartbeat-site", "heartbeat-upload"):
        for each in (site, uuid4()):
            assert shown(client, name, each, status=404) == shown(client, name, uuid4(), status=404)
    assert send(client, site, csv_file.SAMPLE.encode())[0] == 404


def test_a_source_that_is_down_is_said_to_be(alice: Person) -> None:
    site = site_of(alice)
    numbers(alice, site, LAST, kind="stripe")
    with scope(alice.scope):
        Source.objects.filter(site_id=site).update(state="failing", last_error="unreachable")
    page = shown(signed_in(alice.user), "heartbeat")
    assert "Stripe could not be read the last time: it cannot be reached. The numbers below end on 30" in page
    assert "Active members: 200" in page


def test_a_file_is_uploaded_by_an_owner(alice: Person, bob: Person) -> None:
    site = site_of(alice)
    client, colleague = signed_in(alice.user), signed_in(bob.user)
    assert "Upload numbers" not in shown(colleague, "heartbeat")
    assert send(colleague, site, csv_file.SAMPLE.encode())[0] == 403
    page = shown(client, "heartbeat-upload", site)
    assert all(name in page for name in csv_file.COLUMNS)
    assert client.get(reverse("heartbeat-sample")).content.decode() == csv_file.SAMPLE
    assert send(client, site, csv_file.SAMPLE.encode())[0] == 302
    assert "3 days kept, from 28 November 2026 to 30 November 2026." in shown(client, "heartbeat")
    assert "142" in told_of(alice, site)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "row 1, column day: this column is missing"),
        (b"day,new\n2026-11-30,1\n2026-11-29,x<b>\n", "row 3, column new: write a whole number"),
        (b"day,n\xe9w\n", "row 1, column 2: this is not text in UTF-8"),
        (b"x" * (csv_file.MOST_BYTES + 1), "row 1: the file is longer than"),
        (b"day,<script>\n", "row 1, column &lt;script&gt;: there is no such column"),
    ],
)
def test_a_file_with_faults_is_refused_whole(alice: Person, data: bytes, words: str) -> None:
    site = site_of(alice)
    status, page = send(signed_in(alice.user), site, data)
    assert status == 400
    assert words in page
    assert "Nothing was kept" in page
    assert days_of(alice, site, "csv") == {}


def test_a_form_without_a_file(alice: Person) -> None:
    site = site_of(alice)
    response = signed_in(alice.user).post(reverse("heartbeat-upload", args=[site]), {"file": "text"})
    assert response.status_code == 400


# --- for owners ------------------------------------------------------------------------------------------


def test_a_colleague_changes_nothing(alice: Person, bob: Person) -> None:
    site = site_of(alice)
    source = connected(alice, site, "stripe", key=KEY)
    client = signed_in(bob.user)
    given = {"name": "x", "time_zone": "UTC", "forget": "on"}
    for name, ids in (
        ("sites", []),
        ("site", [site]),
        ("site-delete", [site]),
        ("source-connect", [site, "stripe"]),
        ("source-try", [site, source]),
        ("source-disconnect", [site, source]),
    ):
        assert client.post(reverse(name, args=ids), given).status_code == 403
    assert sites_of(alice) == 1
    assert source_of(alice, source).state == "connected"


def test_adding_renaming_and_deleting_a_site(alice: Person) -> None:
    client = signed_in(alice.user)
    made = client.post(reverse("sites"), {"name": "Kiln", "time_zone": "Europe/London"})
    with scope(alice.scope):
        site = Site.objects.get().id
    assert made["Location"] == reverse("site", args=[site])
    assert client.post(reverse("sites"), {"name": " ", "time_zone": "Europe/London"}).status_code == 400
    assert (
        client.post(reverse("site", args=[site]), {"name": "Kin", "time_zone": "Nowhere"}).status_code == 400
    )
    assert client.post(reverse("site", args=[site]), {"name": "Kin", "time_zone": "UTC"}).status_code == 302
    assert "Kin" in shown(client, "sites")
    assert "cannot be undone" in shown(client, "site-delete", site)
    assert client.post(reverse("site-delete", args=[site])).status_code == 302
    assert client.post(reverse("site-delete", args=[site])).status_code == 404
    assert sites_of(alice) == 0


def test_connecting_stripe_and_never_seeing_the_key_again(alice: Person, stripe: Pretended) -> None:
    site = site_of(alice)
    client = signed_in(alice.user)
    address = reverse("source-connect", args=[site, "stripe"])
    wrong = client.post(address, {"key": "rk_test_of_somebody_else"})
    assert wrong.status_code == 400
    assert "Stripe does not know this key" in wrong.content.decode()
    assert "somebody_else" not in wrong.content.decode()
    assert client.post(address, {"key": f" {KEY} "}).status_code == 302
    for name, ids in (
        ("site", [site]),
        ("sites", []),
        ("source-connect", [site, "stripe"]),
        ("heartbeat", []),
    ):
        assert KEY not in shown(client, name, *ids)
    with scope(alice.scope):
        row = Source.objects.get()
        assert row.credentials == {"key": KEY}
    tested = client.post(reverse("source-try", args=[site, row.id]), follow=True).content.decode()
    assert "Stripe answers." in tested
    stripe.key = "rk_test_revoked"
    assert (
        "does not know this key"
        in client.post(reverse("source-try", args=[site, row.id]), follow=True).content.decode()
    )


@pytest.mark.parametrize(
    "key", ["", "pk_live_123456789", "hello", "rk_live_" + "x" * 250, "rk_live_\r\nX: y"]
)
def test_what_is_no_key_of_stripes(alice: Person, stripe: Pretended, key: str) -> None:
    site = site_of(alice)
    response = signed_in(alice.user).post(reverse("source-connect", args=[site, "stripe"]), {"key": key})
    assert response.status_code == 400
    assert stripe.asked == []


def test_connecting_memberpress(alice: Person) -> None:
    site = site_of(alice)
    client = signed_in(alice.user)
    address = reverse("source-connect", args=[site, "memberpress"])
    with pretend.serving(pretend.memberpress) as server:
        given = {"url": server.url, "key": server.key, "currency": "gbp"}
        assert client.post(address, {**given, "key": "wrong-key"}).status_code == 400
        assert client.post(address, {**given, "url": server.url + "/shop"}).status_code == 400
        assert client.post(address, given).status_code == 302
    with scope(alice.scope):
        assert Source.objects.get().credentials == {"url": server.url, "key": server.key, "currency": "GBP"}


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com",
        "https://127.0.0.1",
        "https://[::1]/",
        "https://2130706433/",
        "https://169.254.169.254/x",
    ],
)
def test_an_address_inside_our_network_is_refused(alice: Person, settings: LazySettings, url: str) -> None:
    settings.HEARTBEAT_ALLOW_LOOPBACK = False
    site = site_of(alice)
    given = {"url": url, "key": "a-good-key", "currency": "USD"}
    response = signed_in(alice.user).post(reverse("source-connect", args=[site, "memberpress"]), given)
    assert response.status_code == 400
    with scope(alice.scope):
        assert not Source.objects.exists()


def test_disconnecting(alice: Person) -> None:
    site = site_of(alice)
    numbers(alice, site, LAST)
    with scope(alice.scope):
        file = Source.objects.get().id
    source = connected(alice, site, "stripe", key=KEY)
    client = signed_in(alice.user)
    assert "The key is destroyed" in shown(client, "source-disconnect", site, source)
    assert client.post(reverse("source-disconnect", args=[site, source])).status_code == 302
    assert source_of(alice, source).credentials is None
    page = shown(client, "site", site)
    assert "disconnected" in page
    assert "Connect Stripe" in page
    assert client.post(reverse("source-disconnect", args=[site, file]), {"forget": "on"}).status_code == 302
    assert days_of(alice, site, "csv") == {}
    assert told_of(alice, site) == ""


def test_settings_lead_owners_there(alice: Person, bob: Person) -> None:
    assert reverse("sites") in shown(signed_in(alice.user), "settings")
    assert reverse("sites") not in shown(signed_in(bob.user), "settings")
    assert reverse("heartbeat") in shown(signed_in(bob.user), "brain")
