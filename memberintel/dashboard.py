"""The support desk's first page: what needs attention, each with a way to it; and the desk's navigation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from memberintel.lib import clock
from memberintel.tenancy.desk import SUPPORT
from memberintel.usage import daily, runs, spending
from memberintel.usage.models import MonthlyReport, Run
from memberintel.usage.plot import plot
from memberintel.vault import damage
from sessions import oversight as sessions
from wrapups import oversight as wrapups
from wrapups.oversight import Owed

PLOTTED_DAYS = 30
_CLOCK_SILENT = timedelta(hours=26)  # the daily run comes every 24 hours
_RUNS_READ, _RUNS_SHOWN = 60, 6  # a day has a run for each step, a bad one a few more
PLACES = (
    ("tenancy_user", "People", "group"),
    ("tenancy_tenant", "Accounts", "storefront"),
    ("tenancy_tier", "Tiers", "workspace_premium"),
    ("chat_session", "Sessions", "forum"),
    ("wrapups_sessionlog", "Wrap-ups", "summarize"),
    ("wrapups_journalentry", "Journal", "auto_stories"),
    ("brain_document", "Documents", "description"),
    ("brain_documentversion", "Versions", "history"),
    ("brain_memoryentry", "Memory", "lightbulb"),
    ("brain_knowledgedraft", "Shared knowledge", "menu_book"),
    ("wrapups_legalreview", "Legal review of pooling", "gavel"),
    ("wrapups_closingjob", "Closing jobs", "pending_actions"),
    ("usage_run", "Runs", "schedule"),
    ("usage_ledgerentry", "Ledger", "receipt_long"),
    ("usage_chargecounter", "Budgets used", "speed"),
    ("usage_monthlyreport", "Monthly reports", "summarize"),
)
RECORD = (("privacy_auditrow", "Audit", "visibility"), ("privacy_staffrequest", "Requests", "how_to_reg"))
GROUPS = (
    ("Customers", PLACES[:3]),
    ("Content, as metadata", PLACES[3:9]),
    ("For all", PLACES[9:11]),
    ("Work and cost", PLACES[11:]),
    ("On record", RECORD),
)


@dataclass(frozen=True)
class Sign:
    """One thing to know: `state` is good, watch or bad."""

    state: str
    title: str
    value: str
    detail: str
    href: str


def fill(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Everything the first page shows, as far as the person may see it."""
    now, user = clock.now(), request.user
    context["title"] = "What needs attention"
    if user.has_perm("wrapups.view_closingjob"):
        owed, found = wrapups.owed(now), runs.newest(_RUNS_READ)
        context["signs"] = [
            _failed(owed),
            _unfunded(owed),
            _overdue(owed),
            _writer(owed, now),
            _clock(found, now),
            _not_closed(now),
            _unopened(now),
            _alarms(),
        ]
        context["runs"] = [(run, runs.state(run)) for run in found[:_RUNS_SHOWN]]
    if user.has_perm("usage.view_ledgerentry"):
        context |= _spend(now.date())
    if user.is_superuser:
        entries = LogEntry.objects.using(SUPPORT).select_related("user", "content_type").order_by("-id")[:8]
        context["acts"] = [_act(entry) for entry in entries]
    return context


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The menu at the side: what the person may look at."""
    home, sums = reverse("admin:index"), reverse("admin:usage_ledgerentry_sums")
    groups: list[dict[str, Any]] = [{"items": [_entry(request, "Attention", "notifications", home)]}]
    for title, places in GROUPS:
        items = [
            _entry(request, words, icon, _list(page))
            for page, words, icon in places
            if request.user.has_perm("{}.view_{}".format(*page.split("_")))
        ]
        if title == "Work and cost" and request.user.has_perm("usage.view_ledgerentry"):
            items.append(_entry(request, "Spend", "bar_chart", sums))
        if title == "For all" and request.user.has_perm("wrapups.view_pooledgroup"):
            items.append(_entry(request, "Pooled review", "diversity_3", reverse("admin:wrapups_pool")))
        if items:
            groups.append({"title": title, "separator": True, "items": items})
    return groups


def _entry(request: HttpRequest, words: str, icon: str, address: str) -> dict[str, Any]:
    """A line of the menu. A row's page belongs to its list; the pages named here have none below them."""
    pages = ("admin:index", "admin:usage_ledgerentry_sums", "admin:wrapups_pool")
    below = not {request.path, address} & set(map(reverse, pages)) and request.path.startswith(address)
    return {"title": words, "icon": icon, "link": address, "active": request.path == address or below}


def _failed(owed: Owed) -> Sign:
    codes = ", ".join(f"{code} ({number})" for code, number in owed.codes)
    return Sign(
        "bad" if owed.failed else "good",
        "Failed wrap-ups",
        _capped(owed.failed),
        codes or "Every wrap-up that was tried has been written.",
        _list("wrapups_closingjob", state="failed"),
    )


def _unfunded(owed: Owed) -> Sign:
    return Sign(
        "watch" if owed.unfunded else "good",
        "Unfunded wrap-ups",
        _capped(owed.unfunded),
        "Of the last 7 days: their accounts' budgets are used up."
        if owed.unfunded
        else "Every wrap-up of the last 7 days had a budget.",
        _list("wrapups_closingjob", state="unfunded", made="7"),
    )


def _overdue(owed: Owed) -> Sign:
    detail = (
        f"The oldest has waited {_span(clock.now() - owed.oldest)}." if owed.oldest else "Nothing is waiting."
    )
    return Sign(
        "watch" if owed.overdue else "good",
        "Overdue jobs",
        _capped(owed.overdue),
        f"{_capped(owed.waiting)} on the queue. {detail}",
        _list("wrapups_closingjob", state="queued"),
    )


def _writer(owed: Owed, now: datetime) -> Sign:
    """Whether somebody writes what is owed; there being nothing to write is health too."""
    last = f"{_span(now - owed.last_written)} ago" if owed.last_written else "never"
    stuck = owed.overdue > 0 and (owed.last_written is None or now - owed.last_written > timedelta(hours=1))
    words = "When the last wrap-up was written."
    if owed.failed:
        words += " Some jobs have failed."
    if stuck:
        words = "Jobs wait and nothing is written: is a worker running?"
    state = "bad" if stuck else "watch" if owed.failed else "good"
    return Sign(state, "Writer", last, words, _list("wrapups_sessionlog"))


def _clock(found: list[Run], now: datetime) -> Sign:
    """Whether each step of the daily run came, and how it ended last."""
    page = _list("usage_run")
    steps = {kind for kind in settings.DAILY_STEPS if daily.wanted(kind)}
    last = {run.kind: run for run in reversed(found) if run.kind in steps}
    if not last:
        return Sign("watch", "Daily run", "never", "It comes after 03:00 UTC.", page)
    newest = max(last.values(), key=lambda run: run.started_at)
    value = f"{_span(now - newest.started_at)} ago"
    if late := [kind for kind, run in last.items() if now - run.started_at > _CLOCK_SILENT]:
        words = f"Not for a day: {', '.join(late)}. Is the clock (celery beat) running?"
        return Sign("bad", "Daily run", value, words, page)
    if broken := [f"{kind}: {run.error}" for kind, run in last.items() if run.error]:
        return Sign("bad", "Daily run", value, "; ".join(broken), page)
    if at_work := [kind for kind, run in last.items() if not run.finished_at]:
        return Sign("good", "Daily run", value, f"It has not finished: {', '.join(at_work)}.", page)
    return Sign("good", "Daily run", value, "It ended well.", page)


def _not_closed(now: datetime) -> Sign:
    late = sessions.not_closed(now)
    return Sign(
        "bad" if late else "good",
        "Sessions left open",
        f"{late}+" if late >= sessions.MOST else str(late),
        "Silent for hours and not closed: is the clock running?"
        if late
        else "Silent sessions are closed in time.",
        _list("chat_session", open="1"),
    )


def _unopened(now: datetime) -> Sign:
    """Sealed values that somebody came across and that did not open."""
    seen = damage.seen(now)
    newest = f" Last seen {_span(now - seen[0].last_at)} ago: {seen[0]}." if seen else ""
    words = (
        "Restore them from a backup; the customer sees that they cannot be opened."
        if seen
        else "None was met."
    )
    value = f"{len(seen)}+" if len(seen) >= damage.MOST else str(len(seen))
    return Sign(
        "bad" if seen else "good", "Rows that cannot be opened", value, words + newest, _list("chat_session")
    )


def _alarms() -> Sign:
    """What the newest report says must be decided anew."""
    report = MonthlyReport.objects.using(SUPPORT).order_by("-month").first()
    page = _list("usage_monthlyreport")
    if report is None:
        return Sign("good", "Alarms", "0", "The first report comes with the daily run.", page)
    words = " ".join(alarm["says"] for alarm in report.alarms) or f"Nothing in the report of {report}."
    return Sign("watch" if report.alarms else "good", "Alarms", str(len(report.alarms)), words, page)


def _spend(today: date) -> dict[str, Any]:
    first = min(today.replace(day=1), today - timedelta(days=PLOTTED_DAYS - 1))
    found = spending.by_day(first, today)
    month = [each for each in found if each.day >= today.replace(day=1)]
    whole = spending.total(month)
    start = today - timedelta(days=PLOTTED_DAYS - 1)
    return {
        "spend": spending.dollars(whole.cost_micros),
        "spend_month": f"{today:%B %Y}",
        "spend_calls": f"{whole.calls:,}",
        "spend_failed": f"{whole.failed:,}",
        "spend_unpriced": whole.unpriced,
        "spend_rows": [
            (
                each.purpose.replace("_", " "),
                each.model,
                f"{each.calls:,}",
                spending.dollars(each.cost_micros),
            )
            for each in spending.by_purpose_and_model(month)[:6]
        ],
        "plot": plot([each for each in found if each.day >= start], start, today),
    }


def _act(entry: LogEntry) -> dict[str, Any]:
    return {
        "at": entry.action_time,
        "who": entry.user.get_username(),
        "what": entry.get_change_message(),
        "on": f"{entry.content_type.name if entry.content_type else ''} {entry.object_repr}",
        "href": entry.get_admin_url(),
    }


def _list(page: str, **where: str) -> str:
    query = f"?{urlencode(where)}" if where else ""
    return reverse(f"admin:{page}_changelist") + query


def _capped(number: int) -> str:
    return f"{number}+" if number >= wrapups.MOST else str(number)


def _span(time: timedelta) -> str:
    """A length of time in one unit."""
    seconds = max(int(time.total_seconds()), 0)
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{seconds // size} {unit}{'s' if seconds // size > 1 else ''}"
    return f"{seconds} s"
