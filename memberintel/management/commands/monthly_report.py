"""Make the report of a month."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from memberintel import report
from memberintel.tenancy.context import outside_scopes
from memberintel.usage import charges, runs
from memberintel.usage.models import MonthlyReport
from memberintel.usage.spending import dollars


class Command(BaseCommand):
    """`manage.py monthly_report`: what the daily run does by itself, for any month."""

    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--month", metavar="YYYY-MM", type=_month, help="by default the last one")

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.PROCESS != "worker":
            raise CommandError("The report needs the worker's login. Set MEMBERINTEL_PROCESS=worker.")
        this = charges.this_month()
        month = options["month"] or (this - timedelta(days=1)).replace(day=1)
        if month > this:
            raise CommandError(f"{month:%Y-%m} has not begun.")
        try:
            with outside_scopes(), runs.recorded("monthly_report") as run:
                made = report.make(month)
                run.count("tenants", made.tenants)
        except runs.AtWork:
            raise CommandError("Another process makes the report just now. Try again in a minute.") from None
        self.stdout.write(_told(made))


def _month(text: str) -> date:
    return datetime.strptime(text, "%Y-%m").date()  # noqa: DTZ007 (a month, no moment)


def _told(made: MonthlyReport) -> str:
    lines = [f"{made.month:%B %Y}: {dollars(made.cost_micros)}, {made.tenants} accounts"]
    lines += [
        f"  {row['purpose']:<10} {row['model']:<40} {row['calls']:>9,} calls {dollars(row['cost_micros']):>12}"
        for row in made.sums
    ]
    lines += [f"ALARM {alarm['code']}: {alarm['says']}" for alarm in made.alarms] or ["No alarm."]
    return "\n".join(lines)
