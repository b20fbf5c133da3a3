"""After an erasure nothing mentions the customer: no row, no key, no sign-in, no stream; and dumps stay shut."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.conf import LazySettings
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.urls import reverse

from brain import actions as brain
from brain.models import Document
from memberintel.lib import clock
from memberintel.privacy import erase, export, reach, requests, rows
from memberintel.privacy.models import AuditRow, Erasure
from memberintel.tenancy.context import Scope, scope
from memberintel.tenancy.models import User
from memberintel.usage.models import LedgerEntry
from memberintel.vault import keyring
from memberintel.vault.errors import KeyDestroyed
from sessions import actions
from tests.admin.staff import clerk
from tests.api.calls import bearer, made_token
from tests.conftest import Person, login_as, make_person
from tests.privacy.scene import WORD, filled
from tests.tenancy.databases import connected_as
from tests.usage.test_charges import at
from tests.vault.dump import backup, restored, shows

# What becomes of each table when a customer is erased.
GONE = "every row of theirs is deleted"
NAMELESS = "rows stay for their sums, and are nobody's"
SHUT = "ids and times stay, texts died with the key"
TOMBSTONE = "one row without anything personal"
FATE: dict[str, str] = {
    **dict.fromkeys(
        (
            *("sessions", "session_events", "session_terms", "search_progress", "forgot_reports"),
            *("session_logs", "closing_jobs", "journal_entries", "hand_overs", "item_resolutions"),
            "pooled_support",
            *("documents", "document_versions", "prompt_parts", "memory_entries", "memory_versions"),
            *("profiles", "api_tokens", "invitations", "account_emailaddress", "account_emailconfirmation"),
            *("mfa_authenticator", "django_session"),
        ),
        GONE,
    ),
    "ledger": NAMELESS,
    **dict.fromkeys(("audit", "access_grants", "staff_requests", "erasures"), SHUT),
    "users": TOMBSTONE,
    '"vault"."data_keys"': TOMBSTONE,
}
# Of a tenant as a whole, or of nobody.
OF_TENANTS = {
    *("sites", "sources", "metric_snapshots", "heartbeats", "charges", "charge_counters", "budget_resets"),
    *(
        "tenant_months",
        "hand_over_consents",
        "pooling_choices",
        "pooled_groups",
        "knowledge",
        "knowledge_drafts",
    ),
}
OF_NOBODY = {
    *("tiers", "tier_budgets", "tenants", "auth_group", "auth_permission", "django_content_type", "runs"),
    *(
        "monthly_reports",
        '"vault"."keks"',
        "django_admin_log",
        "external_deletions",
        "legal_reviews",
        "unopened",
    ),
}


WHY = "They asked for it by letter, and we called back."


def test_the_fate_of_every_table_is_known() -> None:
    tables = {model._meta.db_table for model in apps.get_models()}
    assert tables - set(FATE) - OF_TENANTS - OF_NOBODY == set(), "say what an erasure does with it"


def test_every_table_of_customers_is_emptied_or_has_a_reason() -> None:
    for table in reach.of_customers():
        assert FATE.get(table) == GONE, table
    assert set(reach.of_tenants()) - {"invitations"} <= OF_TENANTS


def done(who: Person) -> Any:
    return swept_twice(erase.begin(who.scope, by=who.user.pk))


def swept_twice(row: Erasure) -> Erasure:
    """Done to its end: the second sweep, which comes when nobody can write any more, comes at once."""
    assert erase.proceed(row).finished_at is None
    later(row)
    return erase.proceed(row)


def later(row: Erasure) -> None:
    """As if whoever still had the key had ended."""
    row.refresh_from_db()
    assert row.keys_gone_at is not None
    row.keys_gone_at -= erase.STRAGGLERS
    row.save(update_fields=["keys_gone_at"])


def rows_with(*needles: str) -> Iterator[tuple[str, str]]:
    """(table, needle) of everything in the database that shows one of them, as its owner sees it."""
    with login_as("owner"), connection.cursor() as cursor:
        cursor.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname IN ('public', 'vault') ORDER BY 2"
        )
        for schema, table in cursor.fetchall():
            for needle in needles:
                cursor.execute(
                    f'SELECT count(*) FROM {schema}."{table}" t WHERE to_jsonb(t)::text ILIKE %s',
                    [f"%{needle}%"],
                )
                if cursor.fetchone()[0]:
                    yield table, needle


def test_nothing_mentions_them_afterwards(alice: Person, bob: Person, settings: LazySettings) -> None:
    session = filled(bob, settings)
    filled(alice, settings)
    with scope(bob.scope):
        calls = LedgerEntry.objects.filter(customer_id=bob.user.pk).count()
    email = bob.user.email
    assert calls > 0
    done(bob)
    allowed = {table for table, fate in FATE.items() if fate in (SHUT, TOMBSTONE)} | {"data_keys"}
    found = set(rows_with(str(bob.user.pk), email, str(session), WORD))
    assert {(table, what) for table, what in found if table not in allowed} == set()
    assert not [table for table, what in found if what == email]
    gone = User.objects.get(pk=bob.user.pk)
    assert (gone.is_active, gone.has_usable_password(), gone.email.endswith("@erased.invalid")) == (
        False,
        False,
        True,
    )
    with login_as("owner"), scope(Scope(alice.scope.tenant_id)):
        assert LedgerEntry.objects.filter(customer_id=None).count() >= calls
    with scope(alice.scope):
        assert AuditRow.objects.filter(action="erased", customer_id=alice.user.pk).count() == 0
    with scope(bob.scope):
        assert AuditRow.objects.filter(action="erased").count() == 1
        with pytest.raises(KeyDestroyed):
            export.begin(by=bob.user.pk)


def test_a_colleague_keeps_everything(alice: Person, bob: Person, settings: LazySettings) -> None:
    filled(alice, settings)
    filled(bob, settings)

    def held() -> dict[str, int]:
        with scope(alice.scope):
            tables = rows.private_tables().items()
            return {table: model._default_manager.count() for table, model in tables}

    before = held()
    done(bob)
    assert held() == before


def test_a_dump_from_before_cannot_be_read_without_the_key(alice: Person, settings: LazySettings) -> None:
    filled(alice, settings)
    dumped = backup()
    assert str(alice.user.pk).encode() in dumped
    assert shows(dumped, [WORD]) == []
    done(alice)
    with login_as("owner"), connection.cursor() as cursor:
        cursor.execute("SELECT count(wrapped) FROM vault.data_keys WHERE customer_id = %s", [alice.user.pk])
        assert cursor.fetchone() == (0,)


def test_a_restored_dump_opens_as_long_as_the_key_lives_and_not_after(
    alice: Person, settings: LazySettings
) -> None:
    filled(alice, settings)
    with restored(backup()) as database:
        for erased in (False, True):
            if erased:
                done(alice)
            with connected_as("owner", database=database), scope(alice.scope):
                (held,) = Document.objects.filter(kind="soul")  # sealed as it is: nothing was opened yet
            with scope(alice.scope):
                if not erased:
                    assert WORD in held.text
                    continue
                with pytest.raises(KeyDestroyed):
                    assert held.text


def test_a_tenant_goes_with_everybody(alice: Person, bob: Person, settings: LazySettings) -> None:
    filled(alice, settings)
    filled(bob, settings)
    tenant = Scope(alice.scope.tenant_id)
    swept_twice(erase.begin(tenant, by=alice.user.pk))
    kept = {table for table, fate in FATE.items() if fate in (SHUT, TOMBSTONE, NAMELESS)} | {"data_keys"}
    found = {table for table, _ in rows_with(str(alice.user.pk), str(bob.user.pk), alice.user.email, WORD)}
    assert found - kept == set()
    assert not User.objects.filter(tenant_id=alice.scope.tenant_id, is_active=True).exists()


def test_the_last_owner_hands_over_first(alice: Person, bob: Person) -> None:
    with pytest.raises(erase.Refused, match="only owner"):
        done(alice)
    done(bob)
    assert done(alice).finished_at


def test_what_staff_ask_for_names_whom_it_is_about(alice: Person, bob: Person, charlie: Person) -> None:
    asked = requests.ask_erasure(staff=clerk("support"), whose=bob.scope, reason=WHY)
    requests.decide(asked.pk, "approved", staff=clerk("lead"), whose=bob.scope, reason=WHY)
    for other in (alice, charlie):
        with pytest.raises(erase.Refused):
            erase.begin(other.scope, by=other.user.pk, request=asked.pk)
    assert erase.begin(bob.scope, by=bob.user.pk, request=asked.pk).person == bob.user.pk


def test_what_somebody_wrote_who_still_had_the_key_goes_too(alice: Person, bob: Person) -> None:
    with scope(bob.scope):
        owner = keyring.customer_owner()
        held = keyring.key_of(owner)
    row = erase.begin(bob.scope, by=bob.user.pk)
    erase.proceed(row)
    keyring.cache.put(owner, held)  # what another process has at hand for up to a minute
    with scope(bob.scope):
        brain.save_document(kind="soul", body=WORD, base_version=0, by="advisor", reason=WORD)
        session = actions.open_session(close_previous=True)
    keyring.cache.drop(owner)
    row.refresh_from_db()
    assert (row.finished_at, erase.unfinished()[-1].pk) == (None, row.pk)
    later(row)
    assert erase.proceed(row).finished_at is not None
    assert row.counts["documents"] == 1
    kept = {table for table, fate in FATE.items() if fate in (SHUT, TOMBSTONE)} | {"data_keys"}
    found = {table for table, _ in rows_with(str(bob.user.pk), str(session))}
    assert found - kept == set()


def test_rows_are_not_erased_while_their_key_lives(alice: Person, settings: LazySettings) -> None:
    filled(alice, settings)
    with scope(alice.scope), transaction.atomic(), connection.cursor() as cursor:
        with pytest.raises(DatabaseError, match="no reason"), transaction.atomic():
            cursor.execute("SELECT app.erase_rows('documents', 10)")
        with pytest.raises(DatabaseError, match="no reason"), transaction.atomic():
            cursor.execute("SELECT app.forget_names('x')")


KILLED_AT = """
import os, signal, django
django.setup()
from memberintel.privacy import erase
from memberintel.privacy.models import Erasure
row = Erasure.objects.get(pk={id!r})
erase.proceed(row, told=lambda step: os.kill(os.getpid(), signal.SIGKILL) if step == {step!r} else None)
"""


@pytest.mark.parametrize("step", ["keys", "document_versions"])
def test_a_run_that_was_killed_is_finished_by_the_next(
    alice: Person, settings: LazySettings, step: str
) -> None:
    filled(alice, settings)
    row = erase.begin(alice.scope, by=alice.user.pk)
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "memberintel.settings"}
    script = KILLED_AT.format(id=str(row.pk), step=step)
    killed = subprocess.run([sys.executable, "-c", script], env=environment, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    row.refresh_from_db()
    assert (row.finished_at, row.pk in {found.pk for found in erase.unfinished()}) == (None, True)
    assert erase.proceed(row).finished_at is None
    later(row)
    subprocess.run([sys.executable, "manage.py", "erase", "--resume"], env=environment, check=True)
    row.refresh_from_db()
    assert row.finished_at is not None
    assert "sessions" in json.dumps(row.counts)
    assert not [table for table, _ in rows_with(alice.user.email)]
    assert isinstance(row.pk, UUID)


def test_the_page_asks_for_the_password_and_signs_out(settings: LazySettings) -> None:
    settings.SECURE_SSL_REDIRECT = False
    who = make_person(tier="free", password="correct horse battery")
    client = Client()
    client.force_login(who.user, backend="django.contrib.auth.backends.ModelBackend")
    wrong = client.post(reverse("erase"), {"password": "wrong"})
    assert (wrong.status_code, b"Nothing was erased" in wrong.content) == (409, True)
    assert Erasure.objects.filter(person=who.user.pk).count() == 0
    right = client.post(reverse("erase"), {"password": "correct horse battery"})
    assert (right.status_code, who.user.email.encode() in right.content) == (200, False)
    assert client.get(reverse("settings")).status_code == 302
    assert Erasure.objects.get(person=who.user.pk).asked_by == who.user.pk


def test_the_api_asks_for_the_password_too(settings: LazySettings) -> None:
    settings.SECURE_SSL_REDIRECT = False
    who = make_person(tier="free", password="correct horse battery")
    token = made_token(who, "account").secret
    asked = {"what": "me", "password": "wrong"}
    assert bearer(token).post("/api/v1/privacy/erasure/", asked, "application/json").status_code == 403
    assert not Erasure.objects.filter(person=who.user.pk).exists()
    asked["password"] = "correct horse battery"
    begun = bearer(token).post("/api/v1/privacy/erasure/", asked, "application/json")
    assert (begun.status_code, begun.json()["id"]) == (202, str(Erasure.objects.get(person=who.user.pk).pk))
    assert bearer(token).get("/api/v1/usage/").status_code == 401


def test_the_password_is_not_guessed_on_the_page(settings: LazySettings) -> None:
    settings.SECURE_SSL_REDIRECT = False
    who = make_person(tier="free", password="correct horse battery")
    client = Client()
    client.force_login(who.user, backend="django.contrib.auth.backends.ModelBackend")
    with at(clock.now()):  # no minute ends while the hashes are made
        for _ in range(10):
            assert client.post(reverse("erase"), {"password": "wrong"}).status_code == 409
        right = client.post(reverse("erase"), {"password": "correct horse battery"})
    assert (right.status_code, b"wait a minute" in right.content) == (429, True)
    assert not Erasure.objects.filter(person=who.user.pk).exists()


def test_only_an_owner_erases_the_account(bob: Person, settings: LazySettings) -> None:
    settings.SECURE_SSL_REDIRECT = False
    client = Client()
    client.force_login(bob.user, backend="django.contrib.auth.backends.ModelBackend")
    refused = client.post(reverse("erase"), {"password": "x", "what": "account"})
    assert (refused.status_code, b"Only an owner" in refused.content) == (409, True)
    asked = {"password": "x", "what": "account"}
    over = bearer(made_token(bob, "account").secret).post(
        "/api/v1/privacy/erasure/", asked, "application/json"
    )
    assert (over.status_code, "Only an owner" in over.json()["detail"]) == (403, True)
