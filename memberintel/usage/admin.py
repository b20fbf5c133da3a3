"""Cost and the clock's work on the support desk: single calls, sums with a plot, runs."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.safestring import SafeString

from memberintel.lib import clock
from memberintel.tenancy.desk import Look, Made, flag, labels, link
from memberintel.usage import runs, spending
from memberintel.usage.models import LedgerEntry, Run
from memberintel.usage.plot import plot

_MONTHS = 12
OUTCOMES = {"complete": "success", "failed": "danger", "invalid": "danger", "cancelled": "warning"}


@admin.register(LedgerEntry)
class LedgerDesk(Look):
    """Every call of a model."""

    list_display = (
        "started_at",
        "purpose",
        "model_name",
        "outcome_label",
        "tokens",
        "cost",
        "took",
        "customer",
    )
    list_filter = (
        flag("failed", "outcome", "Failed or invalid", Q(outcome__in=["failed", "invalid"])),
        flag("unpriced", "price", "Price not known", Q(cost_micros=None)),
        Made,
    )
    fieldsets = (
        (None, {"fields": ("id", "customer_link", "tenant_link", "session_link", "turn")}),
        ("Call", {"fields": ("purpose", "model_name", "attempt", "started_at", "took", "request_bytes")}),
        ("Outcome", {"fields": ("outcome_label", "error_code", "error_reason")}),
        (
            "Tokens and cost",
            {
                "fields": (
                    *("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens"),
                    *("estimated", "cost"),
                )
            },
        ),
    )
    change_list_template = "admin/ledger_list.html"

    @admin.display(description="model")
    def model_name(self, row: LedgerEntry) -> str:
        """provider:model."""
        return f"{row.provider}:{row.model}"

    @labels("outcome", OUTCOMES)
    def outcome_label(self, row: LedgerEntry) -> str:
        """The outcome, coloured."""
        return row.outcome

    @admin.display(description="tokens in / out")
    def tokens(self, row: LedgerEntry) -> str:
        """Input and output."""
        return f"{row.input_tokens:,} / {row.output_tokens:,}"

    @admin.display(description="cost")
    def cost(self, row: LedgerEntry) -> str:
        """In dollars; unknown is not nothing."""
        return "not known" if row.cost_micros is None else spending.dollars(row.cost_micros)

    @admin.display(description="took")
    def took(self, row: LedgerEntry) -> str:
        """Seconds."""
        return f"{row.duration_ms / 1000:.1f} s"

    @admin.display(description="session")
    def session_link(self, row: LedgerEntry) -> SafeString | str:
        """The session it was made for."""
        return link("chat_session", row.session, str(row.session)) if row.session else "-"

    def get_urls(self) -> list[Any]:
        sums = path("sums/", self.admin_site.admin_view(self.sums), name="usage_ledgerentry_sums")
        return [sums, *super().get_urls()]

    def sums(self, request: HttpRequest) -> HttpResponse:
        """A month by purpose and model, and day by day."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        first = _month(request.GET.get("month", ""))
        last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
        found = spending.by_day(first, min(last, clock.now().date()))
        context = {
            **self.admin_site.each_context(request),
            "title": f"Spend in {first:%B %Y}",
            "opts": self.opts,
            "rows": [_row(each) for each in spending.by_purpose_and_model(found)],
            "total": _row(spending.total(found)),
            "plot": plot(found, first, last),
            "months": [(month, month == first) for month in _months()],
        }
        return TemplateResponse(request, "admin/ledger_sums.html", context)


@admin.register(Run)
class RunDesk(Look):
    """Runs of the clock's daily work."""

    list_display = ("started_at", "kind", "state_label", "took", "counted", "error")
    fields = (
        "id",
        "kind",
        "state_label",
        "started_at",
        "finished_at",
        "took",
        "counted",
        "error",
        "lease_until",
    )
    list_filter = (Made,)
    search_ids = ("id",)
    owners = ()

    @labels("state", {"finished": "success", "broke": "danger", "at work": "info", "killed": "warning"})
    def state_label(self, row: Run) -> str:
        """How it ended, if it has; a run whose lease has lapsed was killed."""
        return runs.state(row)

    @admin.display(description="took")
    def took(self, row: Run) -> str:
        """Its length in seconds."""
        return f"{(row.finished_at - row.started_at).total_seconds():.1f} s" if row.finished_at else "-"

    @admin.display(description="counts")
    def counted(self, row: Run) -> str:
        """What it counted, in words."""
        return ", ".join(f"{name} {number}" for name, number in sorted(row.counts.items())) or "-"


def _row(each: spending.Sums) -> dict[str, Any]:
    return {
        "purpose": each.purpose.replace("_", " "),
        "model": each.model,
        "calls": f"{each.calls:,}",
        "failed": f"{each.failed:,}" if each.failed else "",
        "input": f"{each.input_tokens:,}",
        "cached": f"{each.cached_tokens:,}",
        "output": f"{each.output_tokens:,}",
        "cost": spending.dollars(each.cost_micros),
        "unpriced": f"{each.unpriced:,}" if each.unpriced else "",
    }


def _month(text: str) -> date:
    """The first of the month given as 2026-11; of the present one when it is none that is offered."""
    return next((month for month in _months() if f"{month:%Y-%m}" == text), _months()[0])


def _months() -> list[date]:
    """The months one can look at, this one first."""
    months = [clock.now().date().replace(day=1)]
    while len(months) < _MONTHS:
        months.append((months[-1] - timedelta(days=1)).replace(day=1))
    return months
