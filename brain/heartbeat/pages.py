"""The HEARTBEAT page of every colleague: what the numbers tell, plots of them; and for owners, uploading a file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from brain.domain.heartbeat import csv_file
from brain.domain.heartbeat.csv_file import BadFile
from brain.domain.heartbeat.metrics import SOURCE_NAMES
from brain.domain.heartbeat.plot import Plot, Series, plot, series
from brain.domain.prompt import day_in_words
from brain.heartbeat import actions, queries
from brain.heartbeat.forms import UploadForm
from brain.heartbeat.queries import NotFound, SiteView, SourceView
from brain.heartbeat.sync import ERRORS, SOMETHING
from memberintel.accounts.access import owner_required, signed_in

RANGES: Final = (30, 90, 365)
DRAWN: Final = ("mrr", "active_members", "new", "churned", "failed_payments", "trials")
MOST_PLOTS: Final = 12


@dataclass(frozen=True)
class Table:
    """The numbers behind the plots: the names of the columns, and a row for each day, newest first."""

    columns: tuple[str, ...]
    rows: tuple[tuple[date, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Shown:
    """What one source gave, drawn; and what is the matter with it."""

    name: str
    source: SourceView
    plots: tuple[Plot, ...]
    table: Table | None
    trouble: str


@require_safe
@signed_in
def heartbeat(request: HttpRequest, site: UUID | None = None) -> HttpResponse:
    """The numbers of a site in words and plots; without one, of the first."""
    sites = queries.sites()
    chosen = next((each for each in sites if site is None or each.id == site), None)
    if chosen is None and site is not None:
        raise Http404
    given = request.GET.get("days", "")
    length = int(given) if given in {str(each) for each in RANGES} else RANGES[1]
    context: dict[str, object] = {"place": "brain", "sites": sites, "site": chosen}
    if chosen is not None:
        context |= {
            "told": queries.told(chosen.id),
            "sources": [_shown(chosen, source, length) for source in chosen.sources],
            "ranges": RANGES,
            "length": length,
        }
    return render(request, "brain/heartbeat.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
@owner_required
def upload(request: HttpRequest, site: UUID) -> HttpResponse:
    """Send a file of numbers. With a fault in it nothing is kept, and every fault is named."""
    try:
        found = queries.site(site)
        form = UploadForm(request.POST or None, request.FILES or None)
        if request.method != "POST":
            return _upload(request, found, form)
        if not form.is_valid():
            return _upload(request, found, form, status=400)
        done = actions.upload(site, form.cleaned_data["file"].read(csv_file.MOST_BYTES + 1))
    except NotFound:
        raise Http404 from None
    except BadFile as refused:
        return _upload(request, found, UploadForm(), faults=refused, status=400)
    days = f"{done.days} days" if done.days > 1 else "One day"
    messages.success(request, f"{days} kept, from {day_in_words(done.first)} to {day_in_words(done.last)}.")
    return redirect("heartbeat-site", site)


@require_safe
@signed_in
def sample(request: HttpRequest) -> HttpResponse:
    """A file to begin with."""
    headers = {"Content-Disposition": 'attachment; filename="heartbeat-sample.csv"'}
    return HttpResponse(csv_file.SAMPLE, content_type="text/csv; charset=utf-8", headers=headers)


def trouble(source: SourceView) -> str:
    """What is the matter with a source, as a sentence; "" when nothing is."""
    if source.state != "failing":
        return ""
    name = SOURCE_NAMES[source.kind]
    kept = f" The numbers below end on {day_in_words(source.through)}." if source.through else ""
    return f"{name} could not be read the last time: {ERRORS.get(source.last_error, SOMETHING)}.{kept}"


def _upload(
    request: HttpRequest,
    site: SiteView,
    form: UploadForm,
    *,
    faults: BadFile | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "place": "brain",
        "site": site,
        "form": form,
        "faults": faults,
        "columns": csv_file.ABOUT.items(),
        "sample": csv_file.SAMPLE,
    }
    return render(request, "brain/upload.html", context, status=status)


def _shown(site: SiteView, source: SourceView, length: int) -> Shown:
    name = SOURCE_NAMES[source.kind]
    name = name[0].upper() + name[1:]
    last = source.through
    if last is None:
        return Shown(name, source, (), None, trouble(source))
    first = last - timedelta(days=length - 1)
    days = queries.days(site.id, source.kind, first, last)
    every = series(days, DRAWN)[:MOST_PLOTS]
    # From the first day there is, where that is later: an empty half of a plot tells nothing.
    begin = days[0].day if days else first
    plots = [drawn for each in every if (drawn := plot(each, begin, last))]
    return Shown(name, source, tuple(plots), _table(every), trouble(source))


def _table(every: list[Series]) -> Table | None:
    if not every:
        return None
    columns = [dict(each.values) for each in every]
    days = sorted({day for column in columns for day in column}, reverse=True)

    def cells(day: date) -> tuple[str, ...]:
        pairs = zip(every, columns, strict=True)
        return tuple(each.words(column[day]) if day in column else "–" for each, column in pairs)

    return Table(tuple(each.title for each in every), tuple((day, cells(day)) for day in days))
