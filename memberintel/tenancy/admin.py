"""Accounts on the support desk: tiers, tenants and the people in them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db import models, transaction
from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memberintel.tenancy.context import SYSTEM, SYSTEM_TENANT_ID, Scope, scope
from memberintel.tenancy.desk import (
    SUPPORT,
    Edit,
    Look,
    Made,
    act,
    as_id,
    flag,
    labels,
    link,
    listed,
    opener,
    people,
    record,
)
from memberintel.tenancy.models import KEEPING, Tenant, Tier, User

# The lists that can be narrowed to an account, in the order a person asks for them.
ABOUT = (
    ("chat_session", "Sessions"),
    ("wrapups_sessionlog", "Wrap-ups"),
    ("wrapups_journalentry", "Journal"),
    ("wrapups_closingjob", "Closing jobs"),
    ("brain_document", "Documents"),
    ("brain_documentversion", "Versions"),
    ("brain_memoryentry", "Memory"),
    ("usage_ledgerentry", "Ledger"),
    ("privacy_auditrow", "Audit"),
)


def lists_of(**owner: Any) -> SafeString:
    """Links to everything there is of an account, as metadata."""
    return format_html(
        '<span class="desk-links">{}</span>',
        SafeString(
            " ".join(
                (
                    *(listed(page, words, **owner) for page, words in ABOUT),
                    listed("usage_chargecounter", "Budgets", tenant_id=owner["tenant_id"]),
                )
            )
        ),
    )


@admin.register(Tier)
class TierDesk(Edit):
    """What a tier includes."""

    list_display = ("name", "key", "wrap_up_pages", "wrap_ups_injected", "memory_cap")
    fieldsets = (
        (None, {"fields": ("key", "name", "wrap_up_pages", "wrap_ups_injected", "memory_cap")}),
        (
            "How long content is kept",
            {
                "fields": KEEPING,
                "description": "Empty or 0: for good. What is older is deleted in the next daily run, of every account"
                " of this tier that says nothing else.",
            },
        ),
    )
    editable = ("name", "wrap_up_pages", "wrap_ups_injected", "memory_cap", *KEEPING)
    search_ids = ()  # three rows need no search
    owners = ()
    list_order = "key"


@admin.register(Tenant)
class TenantDesk(Edit):
    """Paying accounts. Their tier is changed here."""

    list_display = ("label", "tier", "people", "created_at")
    list_select_related = ("tier",)
    list_filter = (("tier", admin.RelatedFieldListFilter), Made)
    fieldsets = (
        (None, {"fields": ("name", "id", "tier", "created_at", "colleagues", "look_at")}),
        (
            "How long content is kept",
            {
                "fields": KEEPING,
                "description": "Empty: as the tier says. 0: for good. What is older is deleted in the next daily run.",
            },
        ),
    )
    editable = ("tier", *KEEPING)
    search_ids = ("id",)
    owners = ()

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        return super().get_queryset(request).select_related("tier").exclude(pk=SYSTEM_TENANT_ID)

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[Any], search_term: str
    ) -> tuple[models.QuerySet[Any], bool]:
        """The account of a person, by address or id, or of that id."""
        if not search_term.strip():
            return queryset, False
        wanted = as_id(search_term)
        found = User.objects.using(SUPPORT).filter(pk=wanted) if wanted else people(search_term)
        ids = {user.tenant_id for user in found} | {wanted}
        return queryset.filter(pk__in=ids - {None}), False

    def formfield_for_dbfield(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        """The plain choice: tiers are edited on their own page."""
        if db_field.name != "tier":
            return super().formfield_for_dbfield(db_field, request, **kwargs)
        field = super().formfield_for_dbfield(db_field, request, **kwargs, using=SUPPORT)
        field.widget = getattr(field.widget, "widget", field.widget)
        return field

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        return lookup == "tier__key__exact" or super().lookup_allowed(lookup, value, request)

    def write(self, request: HttpRequest, row: Tenant, names: list[str], message: Any) -> None:
        """The change, its line in the log and that in the audit, in one transaction of the tenant's scope."""
        with scope(Scope(row.pk)), transaction.atomic():
            record(request, row, message)
            if names:
                row.save(using="default", update_fields=names)

    @admin.display(description="account")
    def label(self, row: Tenant) -> str:
        """Its name, else its id."""
        return str(row)

    @admin.display(description="people")
    def people(self, row: Tenant) -> SafeString:
        """A link to its people: counting them would be a query for each row."""
        return listed("tenancy_user", "Show", tenant_id=row.pk)

    @admin.display(description="colleagues")
    def colleagues(self, row: Tenant) -> SafeString:
        """The first people of the account."""
        found = User.objects.using(SUPPORT).filter(tenant_id=row.pk).order_by("id")[:21]
        words = [
            format_html("{}{}{}", link("tenancy_user", user.pk, user.email), *_marks(user))
            for user in found[:20]
        ]
        if len(found) > 20:
            words.append(listed("tenancy_user", "all of them", tenant_id=row.pk))
        return SafeString("<br>".join(words)) if words else SafeString("nobody yet")

    @admin.display(description="look at")
    def look_at(self, row: Tenant) -> SafeString:
        """The lists of this account."""
        return lists_of(tenant_id=row.pk)


def _marks(user: User) -> tuple[str, str]:
    return (" · owner" if user.is_owner else "", "" if user.is_active else " · deactivated")


@admin.register(User)
class UserDesk(Look):
    """Customers and staff. An address is all that tells who somebody is."""

    list_display = ("email", "account", "tier", "role", "active", "last_login", "date_joined")
    list_select_related = ("tenant", "tenant__tier")
    list_filter = (
        flag("staff", "staff", "Staff only", Q(is_staff=True)),
        flag("off", "deactivated", "Deactivated only", Q(is_active=False)),
        Made,
    )
    fields = ("email", "id", "account", "tier", "role", "active", "last_login", "date_joined", "look_at")
    actions = ("activate", "deactivate")
    search_ids = ("id", "tenant_id")
    owners = ("tenant_id",)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        return super().get_queryset(request).select_related("tenant__tier")

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[Any], search_term: str
    ) -> tuple[models.QuerySet[Any], bool]:
        """An id, or the beginning of an address."""
        if not search_term.strip():
            return queryset, False
        wanted = as_id(search_term)
        if wanted is not None:
            return queryset.filter(Q(pk=wanted) | Q(tenant_id=wanted)), False
        return queryset.filter(pk__in={user.pk for user in people(search_term)}), False

    def opens(self, row: User) -> list[tuple[str, str]]:
        """What a customer has one of, and where to ask that they be erased."""
        if not row.tenant_id:
            return []
        more = (("Take a copy for them", "take_copy"), ("Erase them", "ask_erasure"))
        kinds = {
            "SOUL": "soul",
            "BIBLE": "bible",
            "MEMORY": "memories",
            "HEARTBEAT": "heartbeat",
            "the journal": "journal",
        }
        return [
            *(opener(f"Open {words}", kind, row.pk) for words, kind in kinds.items()),
            *((words, reverse(f"admin:{page}", args=[row.pk])) for words, page in more),
        ]

    @admin.display(description="account")
    def account(self, row: User) -> SafeString | str:
        """The tenant."""
        return link("tenancy_tenant", row.tenant_id, str(row.tenant)) if row.tenant else "-"

    @admin.display(description="tier")
    def tier(self, row: User) -> str:
        """What the tenant has paid for."""
        return row.tenant.tier.name if row.tenant else "-"

    @labels("role", {"staff": "info", "owner": "success"})
    def role(self, row: User) -> str:
        """Staff, owner of the tenant, or colleague."""
        if row.is_staff:
            return "staff"
        return "owner" if row.is_owner else "colleague"

    @admin.display(description="active", boolean=True)
    def active(self, row: User) -> bool:
        """Whether the person may sign in."""
        return row.is_active

    @admin.display(description="look at")
    def look_at(self, row: User) -> SafeString | str:
        """The lists of this customer."""
        return lists_of(tenant_id=row.tenant_id, customer_id=row.pk) if row.tenant_id else "-"

    # --- actions -----------------------------------------------------------------------------------------

    @act("Let them sign in again")
    def activate(self, request: HttpRequest, queryset: models.QuerySet[User]) -> None:
        """Activate the people chosen."""
        self._switch(request, queryset, True)

    @act("Deactivate: signed out at once, nothing is deleted")
    def deactivate(self, request: HttpRequest, queryset: models.QuerySet[User]) -> None:
        """Deactivate the people chosen."""
        self._switch(request, queryset, False)

    def _switch(self, request: HttpRequest, chosen: models.QuerySet[User], active: bool) -> None:
        changed = 0
        for user in chosen[: self.list_per_page]:
            if user.pk == request.user.pk or (user.is_staff and not request.user.is_superuser):
                messages.error(request, f"{user.email}: only another administrator may do this.")
            elif user.is_active is not active:
                switch(request, user, active)
                changed += 1
        word = "may sign in again" if active else "deactivated"
        messages.success(request, f"{changed} {'person' if changed == 1 else 'people'} {word}.")


def switch(request: HttpRequest, user: User, active: bool) -> None:
    """Let a person sign in or not; with its lines in the log and the audit, in one transaction of their scope."""
    whose = Scope(user.tenant_id, user.pk) if user.tenant_id else SYSTEM
    with scope(whose), transaction.atomic():
        User.objects.filter(pk=user.pk).update(is_active=active)
        record(request, user, "Activated." if active else "Deactivated.")
