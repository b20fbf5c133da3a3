"""What an attacker at the door tries: guessing, leading elsewhere, sending too much, promoting oneself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.core.cache import cache
from django.db import ProgrammingError, connection
from django.test import Client

from memberintel.accounts.attempts import Attempts
from memberintel.tenancy.models import User
from tests.admin.staff import PASSWORD
from tests.conftest import Person, login_as, make_person

ELSEWHERE = (
    *(
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "https:evil.example",
        "javascript:alert(1)",
    ),
    *(
        "http://testserver@evil.example/",
        "///evil.example",
        "\thttps://evil.example",
        "https://testserver.evil.example/",
    ),
)


@pytest.fixture
def counted(settings: LazySettings) -> Iterator[None]:
    """Attempts of this test alone, and all within a minute: a good hash takes its time."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def dora(counted: None) -> Person:
    return make_person(tier="pro", name="dora", password=PASSWORD)


def sign_in(email: str, password: str, **more: str) -> Any:
    return Client().post("/accounts/login/", {"login": email, "password": password, **more})


def test_guessing_the_password_of_an_account_ends_after_five(counted: None, dora: Person) -> None:
    for number in range(5):
        assert "not correct" in sign_in(dora.user.email, f"guess {number}").content.decode()
    refused = sign_in(dora.user.email, PASSWORD).content.decode()
    assert "Too many failed login attempts" in refused


def test_guessing_across_accounts_ends_too(counted: None) -> None:
    told = [sign_in(f"{uuid4().hex}@example.com", "a guess").content.decode() for _ in range(11)]
    assert "Too many failed login attempts" in told[-1]
    assert "Too many" not in told[0]


def test_attempts_are_counted_for_all_processes_together(counted: None) -> None:
    cache.set("shared", 1, 60)
    from django.conf import settings

    entry = dict(settings.CACHES["default"])
    other = Attempts(entry.pop("LOCATION"), entry)
    assert other.get("shared") == 1


def test_without_redis_each_process_counts_for_itself() -> None:
    alone = Attempts("redis://127.0.0.1:1/0", {"OPTIONS": {"socket_connect_timeout": 0.1}})
    assert alone.add("attempt", 1)
    assert not alone.add("attempt", 2)
    assert alone.get("attempt") == 1


@pytest.mark.parametrize("where", ELSEWHERE)
def test_signing_in_leads_nowhere_else(counted: None, dora: Person, where: str) -> None:
    landed = sign_in(dora.user.email, PASSWORD, next=where)
    assert landed.status_code == 302
    assert landed["Location"].startswith("/")
    assert not landed["Location"].startswith(("//", "/\\"))
    page = Client().get("/accounts/login/", {"next": where}).content.decode()
    assert f'href="{where}"' not in page


@pytest.mark.parametrize("where", ELSEWHERE)
def test_neither_do_the_other_doors(counted: None, dora: Person, where: str) -> None:
    client = Client()
    client.force_login(dora.user, "django.contrib.auth.backends.ModelBackend")
    for path in ("/accounts/logout/", "/accounts/reauthenticate/", "/accounts/signup/", "/admin/login/"):
        for answer in (client.get(path, {"next": where}), client.post(path, {"next": where})):
            location = answer.get("Location", "/")
            assert location.startswith("/"), path
            assert not location.startswith(("//", "/\\")), path


@pytest.mark.parametrize("password", ["short", "password12", "12345", "qwertyuiop"])
def test_a_poor_password_is_not_taken(counted: None, password: str) -> None:
    email = f"new-{uuid4().hex}@example.com"
    Client().post("/accounts/signup/", {"email": email, "password1": password})
    assert not User.objects.filter(email=email).exists()


@pytest.mark.parametrize("login", ["web", "worker"])
@pytest.mark.parametrize("column", ["is_staff", "is_superuser", "tenant_id"])
def test_nobody_who_serves_makes_a_person_what_they_are_not(alice: Person, login: str, column: str) -> None:
    with (
        login_as(login),
        pytest.raises(ProgrammingError, match="permission denied"),
        connection.cursor() as cursor,
    ):
        cursor.execute(f"UPDATE users SET {column} = {column} WHERE id = %s", [alice.user.pk])


def test_a_whole_person_is_saved_without_it(alice: Person) -> None:
    alice.user.is_staff, alice.user.email = True, f"{uuid4().hex}@example.com"
    alice.user.save()
    found = User.objects.get(pk=alice.user.pk)
    assert (found.is_staff, found.email) == (False, alice.user.email)
