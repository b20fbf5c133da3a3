"""The pages of what SOUL and BIBLE once said: all versions, one of them, what changed between two, and undoing."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from brain import actions, queries
from brain.domain.diff import Line, diff
from brain.domain.documents import KINDS, REASON_CHARACTERS, Kind, NoVersion, Rejected, Version
from brain.views import ABOUT, base_version
from memberintel.accounts.access import signed_in
from memberintel.vault.errors import CannotOpen

PAGE = 20
CONTEXT_LINES = 3


@require_safe
@signed_in
def versions(request: HttpRequest, kind: str) -> HttpResponse:
    """Who changed the document, when and why, newest first, a page at a time."""
    known = _known(kind)
    before = _number(request, "before") if "before" in request.GET else None
    found = queries.versions(known, before=before, limit=PAGE + 1)
    shown = found[:PAGE]
    context = {
        "versions": shown,
        "older": shown[-1].version if len(found) > PAGE else None,
        "paged": before is not None,
        "newest": queries.newest_version(known),
    }
    return render(request, "brain/versions.html", _page(known) | context)


@require_safe
@signed_in
def version(request: HttpRequest, kind: str, version: int) -> HttpResponse:
    """What the document said in that version, who wrote it and why."""
    return _version_page(request, _known(kind), version)


@require_POST
@signed_in
def restore(request: HttpRequest, kind: str, version: int) -> HttpResponse:
    """Make the document say again what it said then."""
    known, reason = _known(kind), request.POST.get("reason", "")
    try:
        saved = actions.restore(
            kind=known, version=version, base_version=base_version(request), by="customer", reason=reason
        )
    except NoVersion:
        raise Http404 from None
    except Rejected as rejected:
        return _version_page(request, known, version, problem=rejected, reason=reason, status=409)
    except CannotOpen:
        return _version_page(request, known, version, reason=reason, damaged=True, status=503)
    if saved.version == base_version(request):
        messages.info(request, f"{ABOUT[known].name} says that already; there was nothing to restore.")
    else:
        messages.success(
            request,
            f"Version {version} is back, as version {saved.version}. Your advisor reads it from the next conversation"
            " on.",
        )
    return redirect("document", known)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def redact(request: HttpRequest, kind: str, version: int) -> HttpResponse:
    """Take what a version said out of it, for good: the question, and the answer."""
    known = _known(kind)
    found, standing = _found(known, version), queries.newest_version(known)
    if request.method != "POST":
        context = {"version": found, "standing": version == standing, "newest": standing}
        return render(request, "brain/redact.html", _page(known) | context)
    try:
        actions.redact(kind=known, version=version)
    except NoVersion:
        raise Http404 from None
    except Rejected as rejected:
        return _version_page(request, known, version, problem=rejected, status=409)
    messages.success(
        request, f"What version {version} said is gone, here and from every prompt it ever stood in."
    )
    return redirect("document-versions", known)


@require_safe
@signed_in
def compare(request: HttpRequest, kind: str) -> HttpResponse:
    """What changed between two versions, word by word."""
    known = _known(kind)
    before, after = _found(known, _number(request, "before")), _found(known, _number(request, "after"))
    told = [each for each in (before, after) if each.redacted_on or not each.readable]
    lines = [] if told else diff(before.text, after.text)
    context = {
        "before": before,
        "after": after,
        "sides": (before, after),
        "untold": told,
        "stretches": _folded(lines),
        "same": all(line.sign == "same" for line in lines),
        "newest": queries.newest_version(known),
    }
    return render(request, "brain/diff.html", _page(known) | context)


@dataclass
class Stretch:
    """Lines to show, or how many are passed over because nothing near them changed."""

    lines: list[Line] = field(default_factory=list)
    skipped: int = 0


def _folded(lines: list[Line]) -> list[Stretch]:
    near = {
        other
        for place, line in enumerate(lines)
        if line.sign != "same"
        for other in range(place - CONTEXT_LINES, place + CONTEXT_LINES + 1)
    }
    found: list[Stretch] = []
    for shown, group in groupby(enumerate(lines), key=lambda numbered: numbered[0] in near):
        stretch = [line for _, line in group]
        worth = shown or len(stretch) == 1  # saying that one line is passed over takes a line too
        found.append(Stretch(stretch) if worth else Stretch(skipped=len(stretch)))
    return found


def _version_page(
    request: HttpRequest, kind: Kind, version: int, *, status: int = 200, **more: object
) -> HttpResponse:
    found = _found(kind, version)
    newest = queries.newest_version(kind)
    context = {
        "version": found,
        "standing": version == newest,
        "newest": newest,
        "previous": version - 1,
        "reason_limit": REASON_CHARACTERS,
    }
    return render(request, "brain/version.html", _page(kind) | context | more, status=status)


def _page(kind: Kind) -> dict[str, object]:
    about = ABOUT[kind]
    return {
        "place": "brain",
        "kind": kind,
        "name": about.name,
        "about": about.purpose,
        "limit": settings.DOCUMENT_LIMIT_TOKENS[kind],
    }


def _known(kind: str) -> Kind:
    if kind not in KINDS:
        raise Http404
    return kind


def _found(kind: Kind, version: int) -> Version:
    found = queries.version(kind, version)
    if found is None:
        raise Http404
    return found


def _number(request: HttpRequest, name: str) -> int:
    given = request.GET.get(name, "")
    if not given.isascii() or not given.isdigit() or len(given) > 9:
        raise BadRequest(f"{name} is the number of a version")
    return int(given)
