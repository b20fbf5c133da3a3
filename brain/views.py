"""The brain's pages: SOUL and BIBLE, to read and to edit."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from brain import actions, queries
from brain.domain.documents import KINDS, DocumentText, Kind, Rejected, Stale, Version, version_in
from brain.memory import queries as memory
from memberintel.accounts.access import signed_in
from memberintel.lib import tokens
from memberintel.vault.errors import CannotOpen


@dataclass(frozen=True)
class About:
    """What a document is for, in words, and an example of how one begins."""

    name: str
    purpose: str
    example: str


ABOUT: dict[Kind, About] = {
    "soul": About(
        "SOUL",
        "Who you are and how you want to be spoken to.",
        "For example: I run a small dance studio and do most things myself. Be direct, skip the praise, "
        "and give me one step at a time.",
    ),
    "bible": About(
        "BIBLE",
        "The facts of your business: what you offer, to whom, at what price, and what is under way.",
        "For example: 140 members at $49 a month. Beginners' course twice a year. Churn was 6 % in May.",
    ),
}


@dataclass(frozen=True)
class Card:
    """A document on the overview, with its size and limit in tokens; `damaged` when it cannot be opened."""

    name: str
    about: str
    document: DocumentText
    limit: int
    size: int = 0
    newest: Version | None = None
    damaged: bool = False


@require_safe
@signed_in
def brain(request: HttpRequest) -> HttpResponse:
    """Both documents at a glance."""
    page = {
        "place": "brain",
        "cards": [_card(kind) for kind in KINDS],
        "memories": memory.count(),
        "cap": memory.cap(),
    }
    return render(request, "brain/brain.html", page)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def document(request: HttpRequest, kind: str) -> HttpResponse:
    """One document in its editor. A stale edit comes back with both texts, and nothing typed is lost."""
    if kind not in KINDS:
        raise Http404
    if request.method == "POST":
        return _save(request, kind)
    try:
        standing = queries.document(kind)
    except CannotOpen:
        return _editor(request, kind, damaged=True)
    return _editor(request, kind, body=standing.text, base_version=standing.version)


def _save(request: HttpRequest, kind: Kind) -> HttpResponse:
    body, reason = request.POST.get("body", ""), request.POST.get("reason", "")
    base, typed = base_version(request), {"body": body, "reason": reason}
    try:
        saved = actions.save_document(kind=kind, body=body, base_version=base, by="customer", reason=reason)
    except Stale as stale:
        return _editor(
            request,
            kind,
            **typed,
            base_version=stale.fresh.version,
            fresh=stale.fresh,
            problem=stale,
            status=409,
        )
    except Rejected as rejected:
        return _editor(request, kind, **typed, base_version=base, problem=rejected, status=413)
    except CannotOpen:
        return _editor(request, kind, **typed, damaged=True, status=503)
    if saved.version == base:
        messages.info(request, f"{ABOUT[kind].name} already says that; there was nothing to save.")
    else:
        messages.success(
            request, f"Saved as version {saved.version}. Your advisor reads it from the next conversation on."
        )
    return redirect("document", kind)


def base_version(request: HttpRequest) -> int:
    """The version a form was made on; -1, which never stands, for what is no number."""
    return version_in(request.POST.get("base_version", ""))


def _editor(request: HttpRequest, kind: Kind, *, status: int = 200, **context: object) -> HttpResponse:
    about, limit = ABOUT[kind], settings.DOCUMENT_LIMIT_TOKENS[kind]
    page = {
        "place": "brain",
        "kind": kind,
        "name": about.name,
        "about": about.purpose,
        "example": about.example,
        "limit": limit,
        "limit_words": limit * 3 // 4,
        "size": tokens.count(str(context.get("body", ""))),
    }
    return render(request, "brain/document.html", page | context, status=status)


def _card(kind: Kind) -> Card:
    about, limit = ABOUT[kind], settings.DOCUMENT_LIMIT_TOKENS[kind]
    try:
        found = queries.document(kind)
    except CannotOpen:
        return Card(about.name, about.purpose, DocumentText(kind), limit, damaged=True)
    newest = queries.version(kind, found.version)
    return Card(about.name, about.purpose, found, limit, tokens.count(found.text), newest)
