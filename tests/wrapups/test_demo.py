"""The demo: made once on an empty database, told again later, and never among other people's accounts."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connections

from brain import queries as brain
from brain.heartbeat import queries as sites
from memberintel.accounts.access import scope_of
from memberintel.accounts.queries import person
from memberintel.lib import clock
from memberintel.tenancy.context import scope
from memberintel.tenancy.models import User
from sessions import importer, queries
from sessions.models import Session, SessionEvent
from tests import services
from tests.conftest import make_person
from wrapups.demo import accounts, history


@pytest.fixture(autouse=True)
def empty_database(tmp_path: Path, settings: Any) -> Iterator[None]:
    """A database without people, and a data folder of its own."""
    name = f"demo_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    services.copy_template(name)
    settings.DATA_DIR, settings.EMBEDDED = tmp_path, True
    connection = connections["default"]
    before = connection.settings_dict
    connection.close()
    connection.settings_dict = {**before, "NAME": name}
    yield
    connection.close()
    connection.settings_dict = before


def demo(**options: Any) -> str:
    out = StringIO()
    call_command("demo", stdout=out, **options)
    return out.getvalue()


def pro() -> User:
    return User.objects.get(email=accounts.PRO)


def everything() -> dict[str, Any]:
    """What stands in the database for the Pro customer, and who has accounts."""
    with scope(scope_of(pro())):
        return {
            "users": sorted(User.objects.values_list("email", "password")),
            "sessions": sorted(Session.objects.values_list("id", "last_seq", "closed_at")),
            "events": SessionEvent.objects.count(),
            "documents": [(each.kind, each.version, each.text) for each in brain.documents()],
        }


def test_it_makes_three_accounts_with_the_passwords_it_prints(tmp_path: Path) -> None:
    said = demo()
    passwords = json.loads((tmp_path / "demo.json").read_text())["passwords"]
    for email in (accounts.PRO, accounts.FREE, accounts.STAFF):
        assert f"{email} " in said
        assert passwords[email] in said
        assert User.objects.get(email=email).check_password(passwords[email])
    tiers = {user.email: user.tenant.tier_id for user in User.objects.exclude(tenant=None) if user.tenant}
    assert tiers == {accounts.PRO: "pro", accounts.FREE: "free"}
    assert User.objects.get(email=accounts.STAFF).is_staff
    assert stat.S_IMODE((tmp_path / "demo.json").stat().st_mode) == 0o600


def test_the_pro_customer_has_a_history_of_the_last_weeks() -> None:
    demo()
    with scope(scope_of(pro())):
        rows = list(Session.objects.order_by("started_at"))
        assert [row.substantive for row in rows] == [True, True, True, False, True]
        assert all(row.imported and row.closed_at for row in rows)
        assert timedelta(days=1) < clock.now() - rows[-1].ended_at < timedelta(days=9)
        assert "Kiln & Kin" in brain.document("bible").text
        assert brain.document("soul").text.startswith("I am Mara")
        assert person().display_name == "Mara"
        assert len(queries.transcript_lines(rows[0].id)) == 8


def test_the_pro_customers_site_has_numbers_up_to_yesterday() -> None:
    begun = clock.now().date()
    demo()
    with scope(scope_of(pro())):
        (site,) = sites.sites()
        told = sites.told(site.id)
        assert (site.name, len(sites.days(site.id, "csv", date.min, date.max))) == ("Kiln & Kin", 90)
        assert told is not None
        assert begun <= told.day + timedelta(days=1) <= clock.now().date()  # it may be midnight
        assert "MRR: " in (told.text or "")


def test_a_second_run_changes_nothing_and_prints_the_same() -> None:
    first = demo()
    before = everything()
    assert demo() == first
    assert everything() == before


def test_what_the_customer_deleted_does_not_come_back() -> None:
    first = demo()
    with scope(scope_of(pro())):
        Session.objects.update(archived_at=clock.now())
    assert demo() == first
    with scope(scope_of(pro())):
        assert not Session.objects.filter(archived_at=None).exists()


def test_an_interrupted_run_is_finished_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = importer.import_conversation, iter(range(2))

    def twice(*args: Any, **kwargs: Any) -> importer.Imported:
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(importer, "import_conversation", twice)
        with pytest.raises(KeyboardInterrupt):
            demo()
    demo()
    with scope(scope_of(pro())):
        assert Session.objects.count() == 5


def test_other_peoples_database_is_left_alone(tmp_path: Path) -> None:
    make_person(tier="pro")
    assert demo() == ""
    assert User.objects.count() == 1
    assert not (tmp_path / "demo.json").exists()


def test_outside_the_embedded_mode_only_when_forced(settings: Any) -> None:
    settings.EMBEDDED = False
    assert demo() == ""
    assert not User.objects.exists()
    assert accounts.PRO in demo(force=True)


@pytest.mark.parametrize("day", [date(2026, 3, 2) + timedelta(days=n) for n in range(7)])
def test_the_last_session_lies_two_to_eight_days_back_on_its_weekday(day: date) -> None:
    now = datetime(2027, 1, 1, tzinfo=UTC)
    moved = history.conversation(day=day, now=now)
    last = moved.sessions[-1].started_at.date()
    assert timedelta(days=2) <= day - last <= timedelta(days=8)
    assert last.strftime("%A") == "Thursday"
