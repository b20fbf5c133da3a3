"""What others see: a colleague, another tenant, a customer on the free tier, and a query without a scope."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

import httpx
import psycopg
from django.apps import apps
from django.core.management import CommandError, call_command
from django.urls import URLPattern, URLResolver, get_resolver

from brain.domain.heartbeat.csv_file import SAMPLE
from brain.heartbeat import actions as heartbeat
from brain.heartbeat import queries as sites
from brain.memory.actions import Choice, New, keep
from evals.smoke.play import Told
from evals.smoke.report import Report
from evals.smoke.stage import Customer, Stage, nobodys_id
from evals.smoke.visitor import Visitor
from memberintel.accounts import invitations
from memberintel.tenancy.context import scope
from memberintel.tenancy.models import TenantModel
from wrapups.models import SessionLog

CONVERTER = re.compile(r"<uuid:(\w+)>")
TOKEN = re.compile(rb'(name="csrfmiddlewaretoken" value=|"X-CSRFToken": ?|data-csrf=)"[^"]*"')
BODIES: dict[str, dict[str, object]] = {
    "api-retry": {"attempt": 1},
    "api-numbers": {"csv": SAMPLE},
    "api-open-item": {"resolved": True},
    "api-session-journal": {"summary": "A day like any other."},
    "api-sources": {"kind": "stripe", "key": "rk_test_of_nobody"},
}
PUT_ONLY = {"api-open-item", "api-session-journal"}
FORMS: dict[str, dict[str, str]] = {"invitation": {"act": "withdraw"}}
# A colleague is told that these are for owners, whatever the id.
OWNERS_ONLY = {
    *("colleague-remove", "colleague-let-back", "invitation", "api-colleague", "api-invitation"),
    *(
        "site",
        "site-delete",
        "source-connect",
        "source-try",
        "source-disconnect",
        "api-sources",
        "api-source",
    ),
}
# What belongs to the team: a colleague sees it too, and is no stranger to it.
TEAMS = {"heartbeat-site", "heartbeat-upload", "api-site", "api-heartbeat", "api-numbers"}
WRAP_UP_NAMES = {"wrap_up", "wrapup", "log", "item"}


@dataclass(frozen=True)
class Address:
    """A URL pattern that takes ids."""

    name: str
    pattern: str

    def filled(self, ids: dict[str, UUID]) -> str:
        """The path with ids by the name of the parameter; a session's where the name says nothing else."""
        return "/" + CONVERTER.sub(
            lambda found: str(ids.get(found[1], ids["session"])), self.pattern
        ).replace("<slug:kind>", "stripe")


def check(report: Report, stage: Stage, who: Customer, others: dict[str, Customer], told: Told) -> None:
    """Every check of this module. `others` are the colleague, the stranger and the free customer."""
    ids = _ids(who, others["colleague"], told)
    addresses = list(_addresses())
    with Visitor(stage.url) as owner:
        owner.sign_in(who)
        _check_owner(report, owner, addresses, ids)
    for role in ("colleague", "stranger"):
        with Visitor(stage.url) as visitor:
            visitor.sign_in(others[role])
            _check_not_found(report, role, visitor, addresses, ids)
    with Visitor(stage.url) as visitor:
        visitor.sign_in(others["free"])
        page = visitor.get("/wrap-ups/")
        report.check(
            page.status_code == 200 and "part of Pro" in page.text and "You are on Free" in page.text,
            "the Free customer sees the upgrade page",
            page.status_code,
        )
    _check_no_scope(report)
    _check_isolation(report)


def _ids(who: Customer, colleague: Customer, told: Told) -> dict[str, UUID]:
    person, owner = colleague.scope.customer_id, who.scope.customer_id
    assert person is not None
    assert owner is not None
    with scope(who.scope):
        wrap_up = SessionLog.objects.get(session_id=told.live).id
        invitation = invitations.invite("somebody@smoke.example", by=owner).id
        site = heartbeat.add_site(name="Smoke", time_zone="UTC").id
        heartbeat.upload(site, SAMPLE.encode())
        source = sites.site(site).sources[0].id
        memory = keep(New("The smoke run was here.", "", "customer"), None, Choice(keep_both=True)).id
    turns = {"turn": told.answers[0].turn, "turn_id": told.answers[0].turn}
    team = {"person": person, "invitation": invitation, "site": site, "source": source}
    memories = {"memory": memory, "entry": memory}
    return {"session": told.live, **turns, **team, **memories, **dict.fromkeys(WRAP_UP_NAMES, wrap_up)}


def _addresses() -> Iterator[Address]:
    for prefix, pattern in _walk(get_resolver(), ""):
        if "<uuid:" in prefix and not prefix.startswith("admin/"):
            yield Address(pattern.name or "", prefix)


def _walk(resolver: URLResolver, prefix: str) -> Iterator[tuple[str, URLPattern]]:
    for entry in resolver.url_patterns:
        whole = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from _walk(entry, whole)
        else:
            yield whole, entry


def _check_owner(report: Report, owner: Visitor, addresses: list[Address], ids: dict[str, UUID]) -> None:
    pages = [address.filled(ids) for address in addresses if not address.pattern.startswith("api/")]
    seen = {path: owner.get(path).status_code for path in ("/sessions/", "/wrap-ups/", "/brain/", *pages)}
    wrong = {path: status for path, status in seen.items() if status not in (200, 302, 405)}
    report.check(
        not wrong and bool(pages), "the customer sees all of their own pages", wrong or f"{len(seen)} pages"
    )


def _check_not_found(
    report: Report, role: str, visitor: Visitor, addresses: list[Address], ids: dict[str, UUID]
) -> None:
    """For every address: the same answer, to the byte, as for ids of nothing; and it is a 404."""
    nothing = {name: nobodys_id() for name in ids}
    wrong = []
    if role == "colleague":
        addresses = [address for address in addresses if address.name not in TEAMS]
    for address in addresses:
        theirs = _tried(visitor, address, ids)
        if [_told(each) for each in theirs] != [_told(each) for each in _tried(visitor, address, nothing)]:
            wrong.append(f"{address.name}: tells them apart")
        elif {each.status_code for each in theirs} - {405} != {_expected(role, address)}:
            wrong.append(f"{address.name}: {sorted(each.status_code for each in theirs)}")
    to_session = [_message_to(visitor, each["session"]) for each in (ids, nothing)]
    if to_session[0].status_code != 404 or _told(to_session[0]) != _told(to_session[1]):
        wrong.append(f"a message to the session: {to_session[0].status_code}")
    for path in ("/sessions/", "/wrap-ups/"):
        page = visitor.get(path)
        if page.status_code != 200 or any(str(each) in page.text for each in ids.values()):
            wrong.append(f"{path} tells of it")
    report.check(
        not wrong,
        f"the {role} gets a 404 everywhere, the same as for an id of nothing",
        wrong or f"{len(addresses) + 1} addresses",
    )


def _expected(role: str, address: Address) -> int:
    return 403 if role == "colleague" and address.name in OWNERS_ONLY else 404


def _tried(visitor: Visitor, address: Address, ids: dict[str, UUID]) -> list[httpx.Response]:
    path = address.filled(ids)
    if address.pattern.startswith("api/"):
        send = visitor.put if address.name in PUT_ONLY else visitor.post
        return [visitor.get(path), send(path, dict(BODIES.get(address.name, {})))]
    return [visitor.get(path), visitor.submit(path, dict(FORMS.get(address.name, {})))]


def _message_to(visitor: Visitor, session: UUID) -> httpx.Response:
    body = {"text": "Is anybody there?", "client_key": f"smoke-{nobodys_id()}", "session": str(session)}
    return visitor.post("/api/v1/messages/", body)


def _told(answer: httpx.Response) -> tuple[int, str, bytes]:
    kind = answer.headers.get("content-type", "")
    return answer.status_code, kind, TOKEN.sub(b"", answer.content)


def _check_no_scope(report: Report) -> None:
    tables = sorted({model._meta.db_table for model in apps.get_models() if issubclass(model, TenantModel)})
    for login in ("web", "worker"):
        with psycopg.connect(os.environ[f"DATABASE_URL_{login.upper()}"], autocommit=True) as connection:
            allowed = [table for table in tables if not _refused(connection, table)]
        report.check(
            not allowed and "session_events" in tables,
            f"a query of {login} without a scope is refused",
            allowed or f"permission denied on {len(tables)} tables",
        )


def _refused(connection: psycopg.Connection, table: str) -> bool:
    name = ".".join(f'"{part}"' for part in table.replace('"', "").split("."))
    try:
        connection.execute(f"SELECT count(*) FROM {name}".encode())  # noqa: S608 (our own table names)
    except psycopg.errors.InsufficientPrivilege:
        return True
    return False


def _check_isolation(report: Report) -> None:
    out, errors = io.StringIO(), io.StringIO()
    try:
        call_command("check_isolation", stdout=out, stderr=errors)
    except CommandError as error:
        report.check(False, "check_isolation passes", f"{error}: {errors.getvalue().strip()[:300]}")
    else:
        report.check(True, "check_isolation passes")
