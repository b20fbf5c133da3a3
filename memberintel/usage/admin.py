"""Cost and the clock's work on the support desk: single calls, sums with a plot, runs."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any, cast

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from unfold.admin import TabularInline

from memberintel.lib import clock
from memberintel.tenancy.admin import TierDesk
from memberintel.tenancy.context import Scope, scope
from memberintel.tenancy.desk import SUPPORT, Look, Made, act, flag, labels, link, record
from memberintel.tenancy.models import Tenant, User
from memberintel.usage import charges, runs, spending
from memberintel.usage.models import (
    BudgetReset,
    ChargeCounter,
    LedgerEntry,
    MonthlyReport,
    Run,
    TenantMonth,
    TierBudget,
)
from memberintel.usage.plot import plot

_MONTHS = 12
DEAREST = 25
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
            "dearest": _dearest(first),
            "prices_read": settings.LLM_PRICES_READ,
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


class BudgetsOfTier(TabularInline):  # type: ignore[misc]  # unfold has no types
    """A tier's budgets, changed where the tier is."""

    model = TierBudget
    fields = ("kind_label", "monthly_limit")
    readonly_fields = ("kind_label",)
    verbose_name_plural = "monthly budgets (empty: no limit)"
    extra = 0
    can_delete = False
    show_title = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("tenancy.view_tier")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("tenancy.change_tier")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return TierBudget.objects.using(SUPPORT).order_by("id")

    @admin.display(description="kind")
    def kind_label(self, row: TierBudget) -> str:
        """What is limited."""
        return str(row.get_kind_display())


# The page of tiers belongs to the floor below, which knows of no budgets.
TierDesk.inlines = [*TierDesk.inlines, BudgetsOfTier]


@admin.register(ChargeCounter)
class ChargeCounterDesk(Look):
    """What accounts have used of their budgets, month by month. A month's budget can be given anew."""

    list_display = ("month", "kind", "used", "resets", "account")
    fields = ("id", "tenant_link", "month", "kind", "used", "resets", "times")
    list_filter = (Made,)
    owners = ("tenant_id",)
    actions = ("give_anew",)

    def of_people(self, queryset: QuerySet[Any], found: list[User]) -> QuerySet[Any]:
        """A budget belongs to the whole account of a person."""
        return queryset.filter(tenant_id__in={user.tenant_id for user in found if user.tenant_id})

    @admin.display(description="account")
    def account(self, row: ChargeCounter) -> str:
        """Whose budget it is."""
        return str(row.tenant_id)

    @admin.display(description="given anew")
    def times(self, row: ChargeCounter) -> SafeString | str:
        """When, by whom, and what had been used until then."""
        found = BudgetReset.objects.using(SUPPORT).filter(
            tenant_id=row.tenant_id, kind=row.kind, month=row.month
        )
        by = User.objects.using(SUPPORT).in_bulk({each.by for each in found})
        told = [
            (f"{each.at:%-d %b, %H:%M}", by.get(each.by, each.by), each.used) for each in found.order_by("at")
        ]
        return format_html_join(SafeString("<br>"), "{} UTC by {}, after {}", told) or "never"

    @act("Give the whole budget of this month anew")
    def give_anew(self, request: HttpRequest, queryset: QuerySet[ChargeCounter]) -> None:
        """Reset the budgets chosen, each in its own account's scope."""
        done = sum(self._give(request, row) for row in queryset[: self.list_per_page])
        if done:
            messages.success(request, f"{done} {'budget is' if done == 1 else 'budgets are'} whole again.")
        else:
            messages.warning(request, "Nothing to do: only this month's budgets of which something is used.")

    def _give(self, request: HttpRequest, row: ChargeCounter) -> bool:
        """The budget, who gave it anew, and the line in the desk's log together."""
        if row.month != charges.this_month():
            return False
        with scope(Scope(row.tenant_id)), transaction.atomic():
            given = charges.reset(row.kind, by=cast(User, request.user).pk)
            if given is not None:
                record(
                    request, row, f"Budget given anew after {given.used:,} used: {row.get_kind_display()}."
                )
        return given is not None


@admin.register(MonthlyReport)
class MonthlyReportDesk(Look):
    """The report of each month: spend by purpose, model and account, and the alarms."""

    list_display = ("month_label", "cost", "tenants", "alarm_label", "made_at")
    fieldsets = (
        (None, {"fields": ("month_label", "made_at", "cost", "tenants")}),
        ("Alarms", {"fields": ("alarms_told",)}),
        ("By purpose and model", {"fields": ("by_purpose_and_model",)}),
        ("The dearest accounts", {"fields": ("dearest",)}),
        ("Wrap-ups", {"fields": ("pro_customers", "pro_wrap_ups", "most_held")}),
    )
    search_ids = ()  # twelve rows a year need no search
    owners = ()
    list_order = "-month"

    @admin.display(description="month")
    def month_label(self, row: MonthlyReport) -> str:
        """The month, and whether it goes on."""
        return f"{row} so far" if row.month == charges.this_month() else str(row)

    @admin.display(description="cost")
    def cost(self, row: MonthlyReport) -> str:
        """In dollars, of the calls whose price is known."""
        return spending.dollars(row.cost_micros)

    @labels("alarms", {"none": "success"})
    def alarm_label(self, row: MonthlyReport) -> str:
        """Which rang."""
        return ", ".join(alarm["code"].replace("_", " ") for alarm in row.alarms) or "none"

    @admin.display(description="alarms")
    def alarms_told(self, row: MonthlyReport) -> SafeString | str:
        """Each with what to do."""
        told = [(alarm["says"],) for alarm in row.alarms]
        return format_html_join(SafeString("<br>"), "{}", told) or "none"

    @admin.display(description="calls")
    def by_purpose_and_model(self, row: MonthlyReport) -> SafeString | str:
        """The dearest first. Prices are those of the settings' table, with the date it was read."""
        told = [
            (
                each["purpose"].replace("_", " "),
                each["model"],
                f"{each['calls']:,}",
                spending.dollars(each["cost_micros"]),
                f", price of {each['unpriced']:,} not known" if each["unpriced"] else "",
            )
            for each in row.sums
        ]
        return format_html_join(SafeString("<br>"), "{}, {}: {} calls, {}{}", told) or "none"

    @admin.display(description="accounts")
    def dearest(self, row: MonthlyReport) -> SafeString | str:
        """Those that cost most, with the part of their wrap-ups."""
        return (
            format_html_join(SafeString("<br>"), "{}: {} ({} of it for wrap-ups)", _dearest(row.month))
            or "none"
        )


def _dearest(month: date) -> list[tuple[SafeString, str, str]]:
    """(account, cost, cost of its wrap-ups) of the dearest, as the last report of the month has it."""
    found = TenantMonth.objects.using(SUPPORT).filter(month=month).order_by("-cost_micros")[:DEAREST]
    names = {
        row.pk: str(row) for row in Tenant.objects.using(SUPPORT).filter(pk__in=[r.tenant_id for r in found])
    }
    return [
        (
            link("tenancy_tenant", row.tenant_id, names.get(row.tenant_id, str(row.tenant_id))),
            spending.dollars(row.cost_micros),
            spending.dollars(row.wrap_up_micros),
        )
        for row in found
    ]


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
