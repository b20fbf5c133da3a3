"""What Prometheus reads: numbers under names of ours, for who holds the token, of every process of the machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.test import AsyncClient, Client

from memberintel.lib import analytics
from memberintel.usage import runs
from tests.admin.scene import PLANTED, plant
from tests.conftest import Person

TOKEN = "a token for the scraper"
UUIDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}")


@pytest.fixture(autouse=True)
def _token(settings: LazySettings) -> None:
    settings.METRICS_TOKEN, settings.SECURE_SSL_REDIRECT = TOKEN, False


def read() -> str:
    answer = Client().get("/metrics", headers={"authorization": f"Bearer {TOKEN}"})
    assert (answer.status_code, answer["Content-Type"].split(";")[0]) == (200, "text/plain")
    return answer.content.decode()


def value(line: str) -> float:
    found = re.search(rf"^{re.escape(line)} (\S+)$", read(), re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_without_the_token_there_is_nothing(settings: LazySettings) -> None:
    for headers in ({}, {"authorization": "Bearer another"}, {"authorization": "Bearer "}):
        assert Client().get("/metrics", headers=headers).status_code == 404
    settings.METRICS_TOKEN = ""
    assert Client().get("/metrics", headers={"authorization": "Bearer "}).status_code == 404


async def test_requests_are_counted_under_the_name_of_their_route(alice: Person) -> None:
    from asgiref.sync import sync_to_async

    line = 'memberintel_requests_total{method="GET",route="session",status="302"}'
    before = await sync_to_async(value)(line)
    await AsyncClient().get(f"/sessions/{uuid4()}/")
    await sync_to_async(Client().get)(f"/sessions/{uuid4()}/")
    assert await sync_to_async(value)(line) == before + 2


def test_an_address_that_leads_nowhere_makes_no_name() -> None:
    Client().get(f"/nowhere/{PLANTED}/")
    Client().generic("ODD", "/healthz")
    told = read()
    assert PLANTED not in told
    assert 'method="other"' in told
    assert "ODD" not in told


def test_a_customers_work_leaves_numbers_and_no_text(alice: Person) -> None:
    line = (
        'memberintel_model_calls_total{model="extractive",outcome="failed",provider="offline",purpose="chat"}'
    )
    before = value(line)
    plant(alice)
    told = read()
    assert value(line) == before + 1
    assert not [word for word in (PLANTED, alice.user.email, "@") if word in told]
    assert not UUIDS.search(told)


def test_runs_and_events_and_what_waits(alice: Person) -> None:
    kind = f"test-{uuid4().hex[:6]}"
    with runs.recorded(kind):
        analytics.record("something_happened", count=3)
    told = read()
    assert f'memberintel_runs_total{{kind="{kind}",outcome="well"}} 1.0' in told
    assert 'memberintel_events_total{event="something_happened"}' in told
    assert re.search(r'^memberintel_owed_wrap_ups\{state="waiting"\} \d', told, re.MULTILINE)


COUNT = "from memberintel.lib.metrics import EVENTS; EVENTS.labels('counted').inc(2)"
SUM = """
import django
django.setup()
from django.test import RequestFactory
from memberintel.metrics import metrics
print(metrics(RequestFactory().get('/metrics', headers={'authorization': 'Bearer t'})).content.decode())
"""


def test_any_process_tells_the_sums_of_all(tmp_path: Path) -> None:
    env = os.environ | {
        "PROMETHEUS_MULTIPROC_DIR": str(tmp_path),
        "METRICS_TOKEN": "t",
        "DJANGO_SETTINGS_MODULE": "memberintel.settings",
    }
    for _ in range(2):
        subprocess.run([sys.executable, "-c", COUNT], env=env, check=True)
    told = subprocess.run(
        [sys.executable, "-c", SUM], env=env, check=True, capture_output=True, text=True
    ).stdout
    assert 'memberintel_events_total{event="counted"} 4.0' in told
    assert "memberintel_owed_wrap_ups" in told
