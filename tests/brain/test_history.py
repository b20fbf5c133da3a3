"""The pages of what a document once said."""

from __future__ import annotations

import pytest
from django.conf import LazySettings
from django.db import connection, transaction
from django.test import Client

from brain import actions, queries
from brain.domain.documents import Origin
from memberintel.lib.ids import uuid7
from memberintel.tenancy.context import scope
from tests.accounts.test_sign_up import signed_in
from tests.conftest import Person

VERSIONS = "/brain/bible/versions/"


@pytest.fixture(autouse=True)
def _no_redirect_to_https(settings: LazySettings) -> None:
    settings.SECURE_SSL_REDIRECT = False


@pytest.fixture
def client(alice: Person) -> Client:
    """Alice's browser; her BIBLE has three versions, the second by the advisor."""
    with scope(alice.scope):
        for base, (body, by) in enumerate(
            [
                ("140 members <b>\nprice: $49", "customer"),
                ("150 members <b>\nprice: $49", "advisor"),
                ("", "staff"),
            ]
        ):
            actions.save_document(
                kind="bible",
                body=body,
                base_version=base,
                by=by,  # type: ignore[arg-type]
                reason=f"<i>reason</i> {base + 1}",
                origin=Origin(uuid7(), 5) if by == "advisor" else None,
                changes=["secrets masked"] if by == "advisor" else (),
            )
    return signed_in(alice.user)


def page(client: Client, path: str, status: int = 200) -> str:
    response = client.get(path)
    assert response.status_code == status
    return " ".join(response.content.decode().split())


def post(client: Client, path: str, **given: object) -> tuple[int, str]:
    response = client.post(path, given)
    return response.status_code, " ".join(response.content.decode().split())


def test_the_list_says_who_changed_it_and_why(client: Client) -> None:
    text = page(client, VERSIONS)
    assert text.index("Version 3") < text.index("Version 2") < text.index("Version 1")
    assert [words in text for words in ("by you", "by your advisor", "by our support")] == [True] * 3
    assert "&lt;i&gt;reason&lt;/i&gt; 2" in text
    assert "#e5" in text
    assert text.count("stands now") == 1


def test_a_long_list_comes_in_pages(alice: Person, client: Client) -> None:
    with scope(alice.scope):
        for base in range(3, 25):
            actions.save_document(kind="bible", body=f"{base}", base_version=base, by="customer", reason="")
    text = page(client, VERSIONS)
    assert "?before=6" in text
    assert "Version 5<" not in text
    older = page(client, f"{VERSIONS}?before=6")
    assert "Version 5<" in older
    assert "Version 1<" in older
    assert "Version 6<" not in older


def test_a_version_shows_what_it_said_and_what_was_done_to_the_advisors_words(client: Client) -> None:
    text = page(client, f"{VERSIONS}2/")
    assert "150 members &lt;b&gt;" in text
    assert "secrets masked" in text


def test_two_versions_are_compared_word_by_word(client: Client) -> None:
    text = page(client, "/brain/bible/compare/?before=1&after=2")
    assert "<del>140 </del>members &lt;b&gt;" in text
    assert "<ins>150 </ins>members &lt;b&gt;" in text
    assert "Line removed" in text
    assert "Both say the same" in page(client, "/brain/bible/compare/?before=1&after=1")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{VERSIONS}9/", 404),
        (f"{VERSIONS}{10**30}/", 404),
        ("/brain/heartbeats/versions/", 404),
        ("/brain/bible/compare/?before=1&after=9", 404),
        ("/brain/bible/compare/?before=1", 400),
        ("/brain/bible/compare/?before=x&after=1", 400),
        (f"{VERSIONS}?before=-1", 400),
        (f"{VERSIONS}?before=1", 200),
        (f"{VERSIONS}1/restore/", 405),
    ],
)
def test_addresses_of_nothing(client: Client, path: str, status: int) -> None:
    page(client, path, status)


def test_a_version_is_brought_back_with_a_reason(alice: Person, client: Client) -> None:
    assert post(client, f"{VERSIONS}1/restore/", base_version=3, reason="it was right")[0] == 302
    with scope(alice.scope):
        newest = queries.versions("bible")[0]
    assert (newest.version, newest.text.startswith("140"), newest.restores) == (4, True, 1)
    assert (newest.reason, newest.author) == ("it was right", "customer")
    assert "Brought back version 1" in page(client, VERSIONS)


def test_bringing_back_over_a_version_one_has_not_seen_is_refused(client: Client) -> None:
    status, text = post(client, f"{VERSIONS}1/restore/", base_version=2, reason="typed with care")
    assert status == 409
    assert "changed in the meantime" in text
    assert "typed with care" in text
    assert 'name="base_version" value="3"' in text


def test_what_a_version_said_is_removed_after_a_question(client: Client) -> None:
    assert "for good" in page(client, f"{VERSIONS}1/remove/")
    assert post(client, f"{VERSIONS}1/remove/")[0] == 302
    for path in (VERSIONS, f"{VERSIONS}1/"):
        text = page(client, path)
        assert "You removed what this version said" in text
        assert "140 members" not in text
    assert "nothing to compare" in page(client, "/brain/bible/compare/?before=1&after=2")
    assert post(client, f"{VERSIONS}1/restore/", base_version=3)[0] == 409
    assert post(client, f"{VERSIONS}1/remove/")[0] == 409
    assert post(client, f"{VERSIONS}9/remove/")[0] == 404


def test_what_stands_is_not_removed_and_the_page_says_what_to_do(client: Client) -> None:
    assert "First save BIBLE without those words" in page(client, f"{VERSIONS}3/remove/")
    status, text = post(client, f"{VERSIONS}3/remove/")
    assert status == 409
    assert "Nothing was removed" in text


def test_a_damaged_version_does_not_take_the_others_with_it(alice: Person, client: Client) -> None:
    """Another version's bytes do not open in its place."""
    columns = "tenant_id, customer_id, kind, text, reason, author, at, changes"
    with scope(alice.scope), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO document_versions (id, version, {columns}) SELECT gen_random_uuid(), 4, {columns}"
            " FROM document_versions WHERE kind = 'bible' AND version = 1"
        )
        cursor.execute("UPDATE documents SET version = 4 WHERE kind = 'bible'")
    assert page(client, VERSIONS).count("cannot be opened") == 1
    assert "cannot be opened" in page(client, f"{VERSIONS}4/")
    assert "cannot be opened" in page(client, "/brain/bible/compare/?before=1&after=4")
    assert post(client, f"{VERSIONS}4/restore/", base_version=4)[0] == 503


def test_a_colleague_sees_none_of_it(bob: Person, client: Client) -> None:
    other = signed_in(bob.user)
    page(other, f"{VERSIONS}1/", 404)
    assert "No version yet" in page(other, VERSIONS)
    assert post(other, f"{VERSIONS}1/remove/")[0] == 404
    assert post(other, f"{VERSIONS}1/restore/", base_version=0)[0] == 404
