"""The advisor's tool for numbers."""

from __future__ import annotations

import json
from datetime import date, timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.utils.module_loading import import_string
from pydantic import ValidationError

from brain.domain.tools import AdvisorTool, ToolContext, ToolError
from brain.heartbeat.tools import MOST_POINTS, site_metrics
from memberintel.lib.ids import uuid7
from memberintel.tenancy.unit import unit
from tests.brain.heartbeat.stage import numbers, site_of
from tests.conftest import Person

LAST = date(2026, 11, 30)


async def asked(who: Person, **arguments: Any) -> Any:
    customer = who.scope.customer_id
    context = ToolContext(who.scope.tenant_id, customer, uuid7(), uuid7(), 1)
    return json.loads(await site_metrics.run(context, site_metrics.arguments.model_validate(arguments)))


async def refused(who: Person, **arguments: Any) -> str:
    with pytest.raises(ToolError) as caught:
        await asked(who, **arguments)
    assert caught.value.message.endswith(".")
    return caught.value.code


def test_the_settings_offer_it(settings: LazySettings) -> None:
    assert "brain.heartbeat.tools.site_metrics" in settings.ADVISOR_TOOLS
    tool = import_string("brain.heartbeat.tools.site_metrics")
    assert isinstance(tool, AdvisorTool)
    assert not tool.writes


async def test_it_gives_numbers_with_their_source_and_days(alice: Person, bob: Person) -> None:
    site = await unit(alice.scope, site_of, alice)
    await unit(alice.scope, numbers, alice, site, LAST)
    told = await asked(bob, metrics=["mrr", "active_members"], site=" kiln  & KIN", first_day="2026-11-29")
    assert told == {
        "sites": [
            {
                "site": "Kiln & Kin",
                "time_zone": "UTC",
                "sources": [
                    {
                        "source": "an uploaded file",
                        "newest_day": "2026-11-30",
                        "metrics": [
                            {
                                "metric": "mrr",
                                "meaning": "at its end",
                                "currency": "USD",
                                "days": {"2026-11-29": "999.50", "2026-11-30": "1000.00"},
                            },
                            {
                                "metric": "active_members",
                                "meaning": "at its end",
                                "days": {"2026-11-29": 199, "2026-11-30": 200},
                            },
                        ],
                    }
                ],
            }
        ]
    }
    month = await asked(alice, metrics=["new"])
    assert len(month["sites"][0]["sources"][0]["metrics"][0]["days"]) == 30


async def test_what_is_not_there_is_said(alice: Person, charlie: Person) -> None:
    assert await refused(alice, metrics=["mrr"]) == "no_site"
    await unit(alice.scope, site_of, alice)
    assert await refused(charlie, metrics=["mrr"]) == "no_site"
    assert await refused(alice, metrics=["mrr"], site="Another") == "no_such_site"
    assert (await asked(alice, metrics=["mrr"]))["sites"][0]["sources"] == []


async def test_it_is_bounded(alice: Person) -> None:
    site = await unit(alice.scope, site_of, alice)
    await unit(alice.scope, numbers, alice, site, LAST, 200)
    first = str(LAST - timedelta(days=199))
    every = ["mrr", "new", "churned"]
    assert await refused(alice, metrics=every, first_day=first, last_day=str(LAST)) == "too_many"
    assert await refused(alice, metrics=every, first_day="2020-01-01", last_day=str(LAST)) == "too_long"
    assert await refused(alice, metrics=every, first_day=str(LAST), last_day=first) == "bad_range"
    assert await refused(alice, metrics=every, last_day="0001-01-01") == "bad_range"
    told = await asked(alice, metrics=every[:2], first_day=first, last_day=str(LAST))
    assert len(json.dumps(told)) < 40 * MOST_POINTS


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"metrics": []},
        {"metrics": ["secrets"]},
        {"metrics": ["mrr"], "first_day": "soon"},
        {"metrics": ["mrr"], "x": 1},
    ],
)
def test_arguments_that_do_not_fit(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        site_metrics.arguments.model_validate(arguments)
