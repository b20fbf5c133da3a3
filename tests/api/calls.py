"""Every call the API takes, by the name of its address, with a body that fits; and ways to make it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django.test import Client
from django.urls import URLPattern, get_resolver, reverse

from memberintel.accounts import actions
from memberintel.accounts.actions import NewToken
from memberintel.tenancy.context import scope
from tests.conftest import Person

# Bodies that fit, for the methods that take one. A call not named here takes none.
BODIES: dict[tuple[str, str], Any] = {
    ("api-messages", "POST"): {"text": "Hello there, advisor", "client_key": "key-12345678"},
    ("api-sessions", "POST"): {"close_previous": True},
    ("api-end", "POST"): {},
    ("api-archive", "POST"): {},
    ("api-unarchive", "POST"): {},
    ("api-forgot", "POST"): {},
    ("api-stop", "POST"): {},
    ("api-retry", "POST"): {"attempt": 1},
    ("api-presence", "POST"): {},
    ("api-document", "PUT"): {"text": "Be direct.", "base_version": 0},
    ("api-restore", "POST"): {"base_version": 0},
    ("api-wrap-up", "PUT"): {
        "summary": "We spoke.",
        "decisions": [{"text": "Go on"}],
        "open_items": [],
        "new_context": [],
        "next_session_note": "Ask.",
    },
    ("api-session-journal", "PUT"): {"summary": "I raised the price."},
    ("api-external-memory", "PUT"): {"agreed": True},
    ("api-pooling", "PUT"): {"takes_part": True},
    ("api-retention", "PUT"): dict.fromkeys(("events", "wrap_ups", "journal", "memory")),
    ("api-memories", "POST"): {"text": "Evenings are for the studio."},
    ("api-memory", "PUT"): {"text": "Mornings are for the studio.", "base_version": 1},
    ("api-open-item", "PUT"): {"resolved": True},
    ("api-profile", "PATCH"): {"display_name": "Alice"},
    ("api-invitations", "POST"): {"email": "new-colleague@example.com"},
    ("api-sites", "POST"): {"name": "Kiln & Kin", "time_zone": "Europe/London"},
    ("api-site", "PUT"): {"name": "Kiln & Kin", "time_zone": "Europe/London"},
    ("api-numbers", "POST"): {"csv": "day,new\n2026-11-30,1\n"},
    ("api-sources", "POST"): {"kind": "stripe", "key": "rk_test_12345678"},
    ("api-erasure", "POST"): {"what": "me", "password": "not it"},
    ("api-tokens", "POST"): {"name": "script", "scopes": ["read"]},
}

IDS = ("session", "turn_id", "wrap_up", "item", "token", "person", "invitation", "site", "source", "memory")
NOTHING: dict[str, Any] = {
    **{name: uuid4() for name in IDS},
    "kind": "soul",
    "version": 1,
    "day": "2026-07-21",
    "article": uuid4(),
}
"""Ids of nothing, for every address."""


@dataclass(frozen=True)
class Call:
    """One method of one address."""

    name: str
    method: str
    scopes: tuple[str, ...]
    takes: tuple[str, ...] = field(default=())  # ids in the path

    @property
    def body(self) -> Any:
        """A body that fits; None where none is read."""
        return BODIES.get((self.name, self.method))

    @property
    def by_uuid(self) -> bool:
        """Whether the path has ids that are somebody's."""
        return bool(set(self.takes) - {"kind", "version", "day", "article"})

    def path(self, ids: dict[str, Any]) -> str:
        """The address with these ids."""
        return reverse(self.name, kwargs={name: ids[name] for name in self.takes})

    def __str__(self) -> str:
        return f"{self.method} {self.name}"


def addresses() -> Iterator[tuple[str, URLPattern]]:
    """(path, pattern) of everything under /api/."""
    yield from _walk(get_resolver(), "")


def _walk(resolver: Any, prefix: str) -> Iterator[tuple[str, URLPattern]]:
    for entry in resolver.url_patterns:
        whole = prefix + str(entry.pattern)
        if not isinstance(entry, URLPattern):
            yield from _walk(entry, whole)
        elif whole.startswith("api/"):
            yield whole, entry


def calls() -> list[Call]:
    """All of them, as the endpoints declare them."""
    found = []
    for _, pattern in addresses():
        view: Any = getattr(pattern.callback, "cls", None)
        for method, scopes in getattr(view, "scopes", {}).items():
            found.append(Call(str(pattern.name), method, scopes, tuple(pattern.pattern.converters)))
    return found


def made_token(who: Person, *scopes: str, expires_at: datetime | None = None) -> NewToken:
    """A token of theirs."""
    with scope(who.scope):
        return actions.make_token(name="test", scopes=scopes, expires_at=expires_at)


def revoked(who: Person, token: UUID) -> None:
    """Revoke it."""
    with scope(who.scope):
        assert actions.revoke_token(token)


def browser(who: Person) -> Client:
    """Signed in; a crash is an answer here and no exception."""
    client = Client(raise_request_exception=False)
    client.force_login(who.user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def bearer(secret: str) -> Client:
    """A script with a token."""
    return Client(raise_request_exception=False, headers={"Authorization": f"Bearer {secret}"})


def make(client: Client, call: Call, ids: dict[str, Any]) -> Any:
    """The answer."""
    return send(client, call.method, call.path(ids), call.body)


def send(client: Client, method: str, path: str, body: Any = None) -> Any:
    """The answer to a call with a JSON body, or without one."""
    if body is None:
        return client.generic(method, path)
    return client.generic(method, path, json.dumps(body), content_type="application/json")


def problem(response: Any) -> dict[str, Any]:
    """The problem document; it must be one."""
    assert response["Content-Type"] == "application/problem+json", response.content
    told: dict[str, Any] = json.loads(response.content)
    assert told["status"] == response.status_code
    assert told["type"].startswith("/problems/")
    assert told["title"]
    assert told["detail"]
    return told
