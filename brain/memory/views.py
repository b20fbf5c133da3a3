"""The pages of MEMORY: all entries with room for a new one, one to read and change, and deleting it."""

from __future__ import annotations

from typing import cast
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from brain.domain.documents import version_in
from brain.domain.memory import Changed, Empty, Full, Known, Memory, NotFound, NotKept, Similar, TooLong
from brain.memory import actions, queries
from brain.memory.actions import Choice, New
from memberintel.accounts.access import scope_of, signed_in
from memberintel.accounts.rest import wait
from memberintel.tenancy.models import User
from memberintel.vault.errors import CannotOpen, Damaged

BOTH = "both"
STATUS: dict[type[NotKept], int] = {Empty: 400, TooLong: 413}


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def memories(request: HttpRequest) -> HttpResponse:
    """All entries, newest first, and a new one. Where a choice is needed, it is asked for beside what was typed."""
    if request.method != "POST":
        return _list(request)
    typed = {"text": request.POST.get("text", ""), "reason": request.POST.get("reason", "")}
    chosen = request.POST.get("choice", "")
    choice = Choice(replace=_id(chosen), keep_both=chosen == BOTH)
    try:
        kept = _remember(request, typed, choice)
    except (Similar, Full) as problem:
        both = isinstance(problem, Similar)
        return _list(request, typed, problem, status=409, options=problem.entries, both=both, chosen=chosen)
    except NotKept as problem:
        return _list(request, typed, problem, status=STATUS.get(type(problem), 409))
    except Damaged:
        return _list(request, typed, "That entry cannot be opened, so it was not replaced.", status=503)
    words = "It replaces what stood there; the earlier text is kept with it." if choice.replace else ""
    messages.success(request, f"Kept. {words}".strip())
    return redirect("memory", kept.id) if choice.replace else redirect("memories")


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def memory(request: HttpRequest, entry: UUID) -> HttpResponse:
    """One entry: why it was kept, where it came from, what it said before; to change."""
    found = _memory(entry)
    if request.method != "POST" or not found.readable:
        return _entry(request, found, {"text": found.text, "reason": found.reason})
    typed = {"text": request.POST.get("text", ""), "reason": request.POST.get("reason", "")}
    base = version_in(request.POST.get("base_version", ""))
    try:
        _remember(request, typed, Choice(replace=entry, base_version=base))
    except NotFound:
        raise Http404 from None
    except Changed as problem:
        return _entry(request, problem.fresh, typed, problem, 409, fresh=problem.fresh)
    except NotKept as problem:
        status = STATUS.get(type(problem), 409)
        other = problem.entry if isinstance(problem, Known) else None
        return _entry(request, found, typed, problem, status, other=other)
    messages.success(request, "Saved. From the next message on I go by your words.")
    return redirect("memory", entry)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def delete(request: HttpRequest, entry: UUID) -> HttpResponse:
    """Ask once, then delete for good."""
    if request.method != "POST":
        return render(request, "brain/memory/delete.html", {"place": "brain", "memory": _memory(entry)})
    try:
        actions.delete(entry)
    except NotFound:
        raise Http404 from None
    messages.success(request, "Deleted, also from what I knew in earlier conversations.")
    return redirect("memories")


def _remember(request: HttpRequest, typed: dict[str, str], choice: Choice) -> Memory:
    new = New(typed["text"], typed["reason"], "customer")
    return wait(actions.remember, new=new, who=scope_of(cast(User, request.user)), choice=choice)


def _id(chosen: str) -> UUID | None:
    try:
        return UUID(chosen)
    except ValueError:
        return None


def _memory(entry: UUID) -> Memory:
    found = queries.memory(entry)
    if found is None:
        raise Http404
    return found


def _list(
    request: HttpRequest,
    typed: dict[str, str] | None = None,
    problem: NotKept | str = "",
    *,
    status: int = 200,
    **more: object,
) -> HttpResponse:
    kept, cap = queries.memories(), queries.cap()
    page = {
        "place": "brain",
        "memories": kept,
        "cap": cap,
        "over": len(kept) > cap,
        "limit": settings.MEMORY_LIMIT_CHARACTERS,
        "typed": typed or {},
        "problem": problem,
    }
    return render(request, "brain/memory/memories.html", page | more, status=status)


def _entry(
    request: HttpRequest,
    found: Memory,
    typed: dict[str, str],
    problem: NotKept | None = None,
    status: int = 200,
    **more: object,
) -> HttpResponse:
    try:
        before = queries.before(found.id)
    except CannotOpen:
        before = []
    page = {
        "place": "brain",
        "memory": found,
        "before": before,
        "typed": typed,
        "problem": problem,
        "limit": settings.MEMORY_LIMIT_CHARACTERS,
    }
    return render(request, "brain/memory/memory.html", page | more, status=status)
