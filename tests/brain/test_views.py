from __future__ import annotations

import pytest
from django.conf import LazySettings
from django.db import connection
from django.test import Client

from brain import actions, queries
from memberintel.tenancy.context import scope
from tests.accounts.test_sign_up import signed_in
from tests.conftest import Person


@pytest.fixture(autouse=True)
def _no_redirect_to_https(settings: LazySettings) -> None:
    settings.SECURE_SSL_REDIRECT = False


def edit(client: Client, body: str, base_version: object, reason: str = "") -> tuple[int, str]:
    given = {"body": body, "base_version": str(base_version), "reason": reason}
    response = client.post("/brain/soul/", given)
    return response.status_code, response.content.decode()


def test_what_is_saved_is_shown_and_never_run(alice: Person) -> None:
    client = signed_in(alice.user)
    assert edit(client, "Be direct. <script>x</script>", 0)[0] == 302
    for path in ("/brain/", "/brain/soul/"):
        page = client.get(path).content.decode()
        assert "Be direct. &lt;script&gt;x&lt;/script&gt;" in page
        assert "<script>x" not in page


def test_a_stale_edit_keeps_what_was_typed_and_shows_what_stands_beside(alice: Person) -> None:
    client = signed_in(alice.user)
    edit(client, "from the other tab", 0)
    status, page = edit(client, "typed with care", 0, "my reason")
    assert status == 409
    assert "typed with care" in page
    assert "my reason" in page
    assert "from the other tab" in page
    assert 'name="base_version" value="1"' in page
    assert edit(client, "typed with care", 1)[0] == 302
    with scope(alice.scope):
        assert queries.document("soul").text == "typed with care"


def test_a_text_over_the_cap_comes_back_with_the_limit(alice: Person) -> None:
    status, page = edit(signed_in(alice.user), "member " * 3000, 0)
    assert status == 413
    assert "at most 2,000 fit" in page
    assert "member member" in page


@pytest.mark.parametrize("version", ["", "one", "-1", "9" * 40, "٣"])
def test_a_version_that_is_none_is_a_stale_edit_and_not_a_trace(alice: Person, version: str) -> None:
    assert edit(signed_in(alice.user), "text", version)[0] == 409


def test_a_damaged_document_does_not_take_the_other_with_it(alice: Person) -> None:
    with scope(alice.scope):
        actions.save_document(kind="soul", body="damaged", base_version=0, by="customer", reason="")
        actions.save_document(kind="bible", body="140 members", base_version=0, by="customer", reason="")
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE documents SET text = set_byte(text, 20, get_byte(text, 20) # 1) WHERE kind = 'soul'"
            )
    client = signed_in(alice.user)
    page = client.get("/brain/").content.decode()
    assert "cannot be opened" in page
    assert "140 members" in page
    assert edit(client, "typed", 1)[0] == 503
    with scope(alice.scope):
        assert [each.version for each in queries.versions("soul")] == [1]
