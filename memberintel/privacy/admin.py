"""The audit on the support desk, as metadata, and what staff ask a second person for."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import admin, messages
from django.db import models
from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse

from memberintel.privacy import requests
from memberintel.privacy.models import AuditRow, StaffRequest
from memberintel.privacy.requests import Decision, Refused
from memberintel.tenancy.context import Scope
from memberintel.tenancy.desk import SUPPORT, Look, Made, act, flag, labels, opener
from memberintel.tenancy.models import User
from memberintel.tenancy.staff import ROLES


def _address(person: Any) -> str:
    found = User.objects.using(SUPPORT).filter(pk=person).first() if person else None
    return found.email if found else str(person or "-")


@admin.register(AuditRow)
class AuditDesk(Look):
    """Who did what to whom. The reasons are for those it was done to."""

    list_display = ("at", "action", "role", "customer", "what")
    list_filter = (flag("by_staff", "by", "By staff only", Q(role__in=list(ROLES))), Made)
    fields = ("id", "at", "action", "role", "by", "customer_link", "tenant_link", "what", "grant_id")
    search_ids = ("id", "actor")
    owners = ("tenant_id", "customer_id", "actor")

    @admin.display(description="by")
    def by(self, row: AuditRow) -> str:
        """The actor's address."""
        return _address(row.actor)


@admin.register(StaffRequest)
class RequestDesk(Look):
    """Erasures that staff asked for. A second person decides."""

    list_display = ("asked_at", "action", "customer", "state")
    list_filter = (flag("open", "open", "To be decided", Q(decision="")), Made)
    fields = (
        *("id", "action", "customer_link", "tenant_link", "state", "asked_at", "asked_by_address"),
        *("decided_at", "decided_by_address", "done_at"),
    )
    actions = ("approve", "decline", "withdraw")
    search_ids = ("id",)
    owners = ("tenant_id", "customer_id")

    def has_act_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perms(["privacy.view_staffrequest", "privacy.ask_erasure"])

    def opens(self, row: StaffRequest) -> list[tuple[str, str]]:
        """Why it was asked for, and the page on which it is carried out."""
        if not row.customer_id:
            return []
        page = ("Where it stands", reverse("admin:ask_erasure", args=[row.customer_id]))
        return [opener("Read the reason", "request", row.pk), page]

    @labels("state", {"open": "warning", "approved": "info", "done": "success"})
    def state(self, row: StaffRequest) -> str:
        """Open, how it was decided, or done."""
        return "done" if row.done_at else row.decision or "open"

    @admin.display(description="asked by")
    def asked_by_address(self, row: StaffRequest) -> str:
        """The address of who asked."""
        return _address(row.asked_by)

    @admin.display(description="decided by")
    def decided_by_address(self, row: StaffRequest) -> str:
        """The address of who decided."""
        return _address(row.decided_by)

    @act("Approve")
    def approve(self, request: HttpRequest, queryset: models.QuerySet[StaffRequest]) -> None:
        """As the second person."""
        self._decide(request, queryset, "approved")

    @act("Decline")
    def decline(self, request: HttpRequest, queryset: models.QuerySet[StaffRequest]) -> None:
        """As the second person."""
        self._decide(request, queryset, "declined")

    @act("Withdraw")
    def withdraw(self, request: HttpRequest, queryset: models.QuerySet[StaffRequest]) -> None:
        """As the one who asked."""
        self._decide(request, queryset, "withdrawn")

    def _decide(
        self, request: HttpRequest, chosen: models.QuerySet[StaffRequest], decision: Decision
    ) -> None:
        for row in chosen[: self.list_per_page]:
            try:
                requests.decide(
                    row.pk,
                    decision,
                    staff=cast(User, request.user),
                    whose=Scope(row.tenant_id, row.customer_id),
                    reason=request.POST["reason"],
                )
            except Refused as refusal:
                messages.error(request, refusal.text)
            else:
                messages.success(request, f"It is {decision}.")
