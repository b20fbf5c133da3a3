"""The advisor's tool for numbers that are not in the prompt."""

from __future__ import annotations

import json
from datetime import date, timedelta
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from brain.domain.heartbeat.metrics import FLOWS, SOURCE_NAMES, in_major
from brain.domain.heartbeat.plot import Series, series
from brain.domain.tools import AdvisorTool, ToolContext, ToolError
from brain.heartbeat import queries
from brain.heartbeat.queries import SiteView
from memberintel.lib import clock
from memberintel.lib.moments import FIRST_DAY, LAST_DAY
from memberintel.tenancy.context import Scope
from memberintel.tenancy.unit import unit

MOST_DAYS: Final = 370
MOST_POINTS: Final = 400
Metric = Literal[
    "active_members", "mrr", "new", "churned", "failed_payments", "trials", "trials_ended", "trials_converted"
]


class Asked(BaseModel):
    """Which numbers."""

    model_config = ConfigDict(extra="forbid")

    metrics: list[Metric] = Field(min_length=1, max_length=8)
    site: str = Field(default="", max_length=80, description="Name of the site; empty for all sites.")
    first_day: date | None = Field(
        default=None, description="First day, as 2026-11-01; by default 29 days before the last."
    )
    last_day: date | None = Field(default=None, description="Last day; by default the newest there is.")


async def run(context: ToolContext, asked: Asked) -> str:
    """The numbers as JSON; ToolError for a site that is not there, a range the wrong way round, or too much."""
    found = await unit(Scope(context.tenant_id, context.customer_id), _found, asked)
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def _found(asked: Asked) -> dict[str, Any]:
    sites = _sites(asked.site)
    told = [_site(site, asked) for site in sites]
    points = sum(
        len(each["days"]) for site in told for source in site["sources"] for each in source["metrics"]
    )
    if points > MOST_POINTS:
        raise ToolError(
            "too_many",
            f"That is {points} numbers; at most {MOST_POINTS} fit. Ask for fewer days, metrics or sites.",
        )
    return {"sites": told}


def _sites(name: str) -> list[SiteView]:
    sites = queries.sites()
    if not sites:
        raise ToolError("no_site", "No site is set up yet. An owner adds one in the settings, under Sites.")
    wanted = " ".join(name.split()).casefold()
    found = [site for site in sites if not wanted or site.name.casefold() == wanted]
    if not found:
        names = ", ".join(site.name for site in sites)
        raise ToolError("no_such_site", f"There is no site of that name. There are: {names}.")
    return found


def _site(site: SiteView, asked: Asked) -> dict[str, Any]:
    sources = [_source(site, source.kind, asked) for source in site.sources]
    return {"site": site.name, "time_zone": site.time_zone, "sources": [each for each in sources if each]}


def _source(site: SiteView, kind: Any, asked: Asked) -> dict[str, Any] | None:
    if not all(FIRST_DAY <= day <= LAST_DAY for day in (asked.first_day, asked.last_day) if day):
        raise ToolError("bad_range", f"There are days from {FIRST_DAY} to {LAST_DAY}.")
    source = site.source(kind)
    last = asked.last_day or (source.through if source else None) or clock.now().date()
    first = asked.first_day or last - timedelta(days=29)
    if first > last:
        raise ToolError("bad_range", "The first day lies after the last.")
    if (last - first).days >= MOST_DAYS:
        raise ToolError("too_long", f"At most {MOST_DAYS} days at a time.")
    days = queries.days(site.id, kind, first, last)
    if not days:
        return None
    return {
        "source": SOURCE_NAMES[kind],
        "newest_day": str(days[-1].day),
        "metrics": [_metric(each) for each in series(days, asked.metrics)],
    }


def _metric(given: Series) -> dict[str, Any]:
    """A day without a number is one nobody knows, and is left out."""
    told: dict[str, Any] = {
        "metric": given.name,
        "meaning": "during the day" if given.name in FLOWS else "at its end",
    }
    if given.currency:
        told["currency"] = given.currency
        return told | {
            "days": {str(day): str(in_major(value, given.currency)) for day, value in given.values}
        }
    return told | {"days": {str(day): value for day, value in given.values}}


site_metrics = AdvisorTool(
    name="site_metrics",
    description=(
        "Daily numbers of the owner's membership sites: active members, MRR by currency, new and churned members,"
        " failed payments, trials. Use it when the numbers in the prompt do not go back far enough or are not in"
        " the detail you need. Days nobody knows are left out; never fill them in."
    ),
    arguments=Asked,
    run=run,
)
