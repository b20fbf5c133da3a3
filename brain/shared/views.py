"""The pages of shared knowledge: what it holds, by topic, and one article to read."""

from __future__ import annotations

from itertools import groupby

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from brain.shared import queries
from memberintel.accounts.access import signed_in


@require_safe
@signed_in
def knowledge(request: HttpRequest) -> HttpResponse:
    """All articles by topic."""
    by_topic = groupby(queries.articles(), key=lambda article: article.topic)
    topics = [(topic, list(found)) for topic, found in by_topic]
    return render(request, "brain/shared/knowledge.html", {"place": "brain", "topics": topics})


@require_safe
@signed_in
def article(request: HttpRequest, slug: str) -> HttpResponse:
    """One article."""
    found = queries.article(slug=slug)
    if found is None:
        raise Http404
    return render(request, "brain/shared/article.html", {"place": "brain", "article": found})
