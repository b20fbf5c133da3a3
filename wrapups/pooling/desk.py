"""Pooling on the support desk: the lock, and the pooled review, where staff read groups and write articles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, cast
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path, reverse

from brain.domain.knowledge import LONGEST, Written
from brain.shared import actions as shared
from memberintel.lib import clock
from memberintel.privacy import audit
from memberintel.tenancy.context import SYSTEM_TENANT_ID
from memberintel.tenancy.desk import SUPPORT, Look, act, labels, record
from memberintel.tenancy.models import User
from wrapups.domain.pooling import own_words
from wrapups.pooling import choices, insights, legal, queries, review
from wrapups.pooling.models import LegalReview

LEAST_OWN = 12  # words of an article that are not a phrase of its group
NAMES = {True: "on", False: "off"}


class InsightForm(forms.Form):
    """An article in the words of whoever writes it; it begins empty."""

    title = forms.CharField(max_length=LONGEST["title"])
    topic = forms.CharField(max_length=LONGEST["topic"])
    slug = forms.SlugField(max_length=80, help_text="Its address: small letters, digits, hyphens.")
    text = forms.CharField(max_length=LONGEST["text"], widget=forms.Textarea(attrs={"rows": 12}))

    def __init__(self, *args: Any, phrases: tuple[str, ...], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._phrases = phrases

    def clean_text(self) -> str:
        """The text, unless it is what stands above it over again."""
        text: str = self.cleaned_data["text"]
        if own_words(text, self._phrases) < LEAST_OWN:
            raise forms.ValidationError(
                "Write it in words of your own: beside the phrases above there is hardly anything."
            )
        return text


@admin.register(LegalReview)
class LegalReviewDesk(Look):
    """What lawyers said about pooling. Without a review that stands it is locked; with one it can be turned on."""

    list_display = ("recorded_at", "reference", "ground", "state", "ended_at")
    fields = ("reference", "ground", "state", "recorded_at", "recorded_by", "ended_at")
    editable: ClassVar = ("reference", "ground")
    search_ids = ()
    owners = ()
    actions = ("turn_on", "turn_off", "take_back")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("wrapups.add_legalreview")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return super().get_fieldsets(request, obj) if obj else [(None, {"fields": self.editable})]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """What was recorded stays as it is; another review takes its place."""
        return super().get_readonly_fields(request, obj) if obj else []

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Django's, which holds a transaction of another login; what is added is written when that is over."""
        response = super().changeform_view(request, *args, **kwargs)
        row: LegalReview | None = getattr(request, "desk_added", None)
        if row is not None:
            request.desk_act = ("legal_review_recorded", row.reference)  # type: ignore[attr-defined]
            record(request, row, "Recorded.")
            legal.record(row, by=cast(User, request.user), using=SUPPORT)
        return response

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        request.desk_added = obj  # type: ignore[attr-defined]

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Nothing yet: see `changeform_view`."""

    @labels("state", {"on": "success", "off": "warning"})
    def state(self, row: LegalReview) -> str:
        """On, off, or over."""
        return "over" if row.ended_at else NAMES[row.running]

    @act("Turn pooling on")
    def turn_on(self, request: HttpRequest, queryset: QuerySet[LegalReview]) -> None:
        """From now on items of accounts that take part are compared, once a week."""
        self._turn(request, queryset, on=True)

    @act("Turn pooling off, and delete what it found")
    def turn_off(self, request: HttpRequest, queryset: QuerySet[LegalReview]) -> None:
        """Nothing is compared any more, and what was found is gone."""
        self._turn(request, queryset, on=False)

    @act("Take the review back, and lock pooling")
    def take_back(self, request: HttpRequest, queryset: QuerySet[LegalReview]) -> None:
        """As if there had been none."""
        take_back = partial(legal.take_back, using=SUPPORT)
        self._change(request, queryset, take_back, "Taken back.", "It is taken back, and pooling is locked.")

    def _turn(self, request: HttpRequest, queryset: QuerySet[LegalReview], *, on: bool) -> None:
        turn, name = partial(legal.turn, on=on, using=SUPPORT), NAMES[on]
        self._change(request, queryset, turn, f"Turned {name}.", f"Pooling is {name}.")

    def _change(
        self,
        request: HttpRequest,
        queryset: QuerySet[LegalReview],
        change: Callable[[LegalReview], None],
        kept: str,
        told: str,
    ) -> None:
        """Put `kept` on record, change the reviews chosen, and say so; of one that is over, that it is."""
        for row in queryset:
            try:
                if row.ended_at is not None:
                    raise legal.Ended
                record(request, row, kept)
                change(row)
            except legal.Ended:  # it may have been ended just now, by somebody else
                messages.error(request, "This review is over.")
            else:
                messages.success(request, told)

    # --- the pooled review -------------------------------------------------------------------------------

    def get_urls(self) -> list[Any]:
        site = self.admin_site
        return [
            path("pool/", site.admin_view(self.pool), name="wrapups_pool"),
            path("pool/<uuid:group>/", site.admin_view(self.insight), name="wrapups_insight"),
            *super().get_urls(),
        ]

    def pool(self, request: HttpRequest) -> HttpResponse:
        """The groups that enough accounts stand behind now. That somebody looked is on record."""
        _require(request, "wrapups.view_pooledgroup")
        found = queries.shown()
        if found:
            person = cast(User, request.user).pk
            audit.record("pool_read", actor=person, subject=None, tenant=SYSTEM_TENANT_ID)
        standing, then = choices.review(), review.next_at()
        context = {
            **self.admin_site.each_context(request),
            "title": "Pooled review",
            "groups": found,
            "locked": standing is None,
            "running": bool(standing and standing.running),
            "next_at": then if then and then > clock.now() else None,
            "may_write": request.user.has_perm("wrapups.change_pooledgroup"),
        }
        return TemplateResponse(request, "admin/pool.html", context)

    def insight(self, request: HttpRequest, group: UUID) -> HttpResponse:
        """Write an article of a group: a draft of shared knowledge, which is published like any other."""
        _require(request, "wrapups.view_pooledgroup")
        _require(request, "wrapups.change_pooledgroup")
        found = queries.one(group)
        if found is None:
            raise Http404
        form = InsightForm(request.POST or None, phrases=found.phrases)
        if request.method == "POST" and form.is_valid():
            try:
                return self._written(request, group, Written(**form.cleaned_data))
            except shared.Taken:
                form.add_error("slug", "There is an article with this slug.")
            except insights.Gone:
                messages.error(
                    request, "Too few accounts stand behind this group by now; nothing was written."
                )
                return redirect("admin:wrapups_pool")
        context = {
            **self.admin_site.each_context(request),
            "title": "Write an article",
            "group": found,
            "form": form,
        }
        status = 400 if form.is_bound else 200
        return TemplateResponse(request, "admin/insight.html", context, status=status)

    def _written(self, request: HttpRequest, group: UUID, article: Written) -> HttpResponse:
        draft = insights.write(group, article, using=SUPPORT)
        request.desk_act = ("insight_written", "")  # type: ignore[attr-defined]
        with transaction.atomic():
            record(request, draft, "Written of a pooled group.")
        messages.success(request, "It is a draft. Nobody reads it until it is published.")
        return redirect(reverse("admin:brain_knowledgedraft_change", args=[draft.pk]))


def _require(request: HttpRequest, permission: str) -> None:
    if not request.user.has_perm(permission):
        raise PermissionDenied
