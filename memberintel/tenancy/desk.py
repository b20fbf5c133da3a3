"""What the pages of the support desk share: reading across tenants, and lists that never count a table.

Rows are read over the login `support`, which may look at every tenant and change nothing of theirs; their
text is ciphertext and is never opened here. A list shows one page and whether there is a next one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import reduce, wraps
from operator import or_
from typing import TYPE_CHECKING, Any, ClassVar, cast
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.options import ActionLocation
from django.contrib.admin.utils import flatten_fieldsets
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ValidationError
from django.core.paginator import Page, Paginator
from django.db import models
from django.db.models import F, Func, Q
from django.dispatch import Signal
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.decorators import action, display
from unfold.views import ChangeList
from unfold.widgets import UnfoldAdminTextareaWidget

from memberintel.lib import clock
from memberintel.lib.ids import uuid7
from memberintel.lib.text import clean
from memberintel.tenancy.models import PrivateModel, TenantModel, User
from memberintel.tenancy.staff import REASON_AT_MOST, TOO_SHORT, NoReason, reason_in

acted = Signal()
"""Staff did something to a row: `request`, `row`, `action` (a word), `reason`; sent in the act's transaction."""

SUPPORT = "support"
OPEN_CONTENT = "privacy.open_content"
ROWS = 25
FARTHEST = 200  # pages; further back a filter leads faster than the database could
_PEOPLE = 20  # of those whose address begins with what was searched for
_SPANS = (("1", "Last 24 hours"), ("7", "Last 7 days"), ("30", "Last 30 days"), ("90", "Last 90 days"))


def configured() -> bool:
    """Whether this process has the login that the desk reads over."""
    return SUPPORT in settings.DATABASES


def since(moment: datetime) -> UUID:
    """The lowest id of a row made at `moment`: ids begin with their time, so the key's index serves for it."""
    return uuid7(moment, bytes(10))


def people(beginning: str) -> list[User]:
    """The accounts whose address is, or begins with, what is given; a few at most, the exact one first."""
    address = clean(beginning).strip().lower()
    if not address:
        return []
    found = User.objects.using(SUPPORT).filter(email__startswith=address).order_by("email")
    return list(found[:_PEOPLE])


def as_id(text: str) -> UUID | None:
    """The text as an id, or None."""
    try:
        return UUID(text.strip())
    except ValueError:
        return None


def sealed_names(model: type[models.Model]) -> list[str]:
    """The fields of a model that hold sealed bytes. They stay in the database."""
    return [f.name for f in model._meta.concrete_fields if f.get_internal_type() == "BinaryField"]


if TYPE_CHECKING:
    _Pages = Paginator[Any]
else:  # generic in the stubs only
    _Pages = Paginator


class OnePage(_Pages):
    """Pages without a total: each asks for one row more than it shows, to know whether there is a next."""

    template_name = "admin/next_previous.html"

    @property
    def count(self) -> int:
        """No total is known; whoever shows one shows this page's rows."""
        return 0

    def rows(self, number: int) -> tuple[list[Any], bool]:
        """The rows of a page, and whether more follow."""
        start = (number - 1) * self.per_page
        found = list(self.object_list[start : start + self.per_page + 1])
        return found[: self.per_page], len(found) > self.per_page

    def page(self, number: Any) -> Page:  # type: ignore[type-arg]  # generic in the stubs only
        """A page as Django's templates know it."""
        return Page(self.rows(int(number))[0], int(number), self)


class DeskList(ChangeList):  # type: ignore[misc]  # unfold has no types
    """A list without a count; with the addresses of the people its rows belong to."""

    has_next = False
    farthest = False

    def get_results(self, request: HttpRequest) -> None:
        """Fetch one page."""
        self.page_num: int = min(max(int(self.page_num), 1), FARTHEST)
        pages: OnePage = self.model_admin.get_paginator(request, self.queryset, self.list_per_page)
        self.result_list, self.has_next = pages.rows(self.page_num)
        self.farthest = self.has_next and self.page_num == FARTHEST
        self.has_next = self.has_next and not self.farthest
        self.result_count = len(self.result_list)
        self.full_result_count = None
        self.show_full_result_count = False
        self.show_admin_actions = True
        self.can_show_all = False
        self.multi_page = self.has_next or self.page_num > 1
        self.paginator = pages
        with_people(self.result_list)

    def get_ordering(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> list[Any]:
        """Newest first, along the primary key. Of a few owners' rows: the owners' index first, then a sort.

        The planner would otherwise walk the key backwards past everybody's rows to find those of somebody who
        left long ago.
        """
        if self.model_admin.narrowed(request):
            return [Func(F("id"), function="uuid_send", output_field=models.BinaryField()).desc()]
        return [self.model_admin.list_order]


def with_people(rows: Iterable[Any]) -> None:
    """Give each row of a customer its person as `person` (None without one), with one query for all."""
    rows = list(rows)
    ids = {row.customer_id for row in rows if getattr(row, "customer_id", None)}
    found = User.objects.using(SUPPORT).only("id", "email").in_bulk(ids) if ids else {}
    for row in rows:
        if hasattr(row, "customer_id"):
            row.person = found.get(row.customer_id)


class Made(admin.SimpleListFilter):
    """Rows made in the last days."""

    title = "made"
    parameter_name = "made"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return _SPANS

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> models.QuerySet[Any]:
        if self.value() in dict(_SPANS):
            queryset = queryset.filter(id__gte=since(clock.now() - timedelta(days=int(self.value() or 0))))
        return queryset


class Flag(admin.SimpleListFilter):
    """Rows of which something holds. Give it an index: see the migrations of the tables that use it."""

    label = ""
    condition = Q()

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        return [("1", self.label)]

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> models.QuerySet[Any]:
        return queryset.filter(self.condition) if self.value() == "1" else queryset


def flag(name: str, words: str, label: str, condition: Q) -> type[Flag]:
    """A filter `?name=1`."""
    made = {"title": words, "parameter_name": name, "label": label, "condition": condition}
    return type(f"Flag_{name}", (Flag,), made)


class Look(ModelAdmin):  # type: ignore[misc]  # unfold has no types
    """A list and a page of rows to look at. Nothing is added, changed or deleted here."""

    paginator = OnePage
    list_per_page = ROWS
    show_full_result_count = False
    list_disable_select_all = True
    list_fullwidth = True
    sortable_by = ()
    list_order = "-id"  # ids begin with their time
    actions_on_top = True
    actions: ClassVar[tuple[Any, ...]] = ()
    search_help_text = "An e-mail address or its beginning, or an id"
    # Columns an id is compared with that is no customer's; each begins an index.
    search_ids: tuple[str, ...] = ("id", "tenant_id")
    # Columns that tell whose rows these are; a list that names one is short.
    owners: tuple[str, ...] = ("tenant_id", "customer_id", "session_id", "session")
    change_form_outer_after_template: str | None = "admin/acts.html"

    # --- what may be done --------------------------------------------------------------------------------

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_act_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the actions of this page are for the person."""
        options = self.opts
        return request.user.has_perm(f"{options.app_label}.change_{options.model_name}")

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The row's page, with the list's actions as buttons: they are posted to the list, with one row chosen."""
        extra = dict(extra_context or {})
        found = self.get_object(request, object_id) if object_id else None
        if found is not None and request.user.has_perm(OPEN_CONTENT):
            extra["opens"] = self.opens(found)
        extra["acts"] = self.get_action_choices(request, default_choices=[])
        extra["show_save_and_continue"] = extra["show_save_and_add_another"] = False
        response: HttpResponse = super().changeform_view(request, object_id, form_url, extra)
        return response

    def get_action_choices(
        self,
        request: HttpRequest,
        default_choices: Any = None,
        action_location: ActionLocation = ActionLocation.CHANGE_LIST,
    ) -> list[tuple[str, str]]:
        """As Django's: unfold's lacks the last parameter, which is warned of."""
        if default_choices is None:
            default_choices = [("", "What to do with them")]
        choices: list[tuple[str, str]] = admin.ModelAdmin.get_action_choices(
            self, request, default_choices, action_location
        )
        return choices

    def opens(self, row: Any) -> list[tuple[str, str]]:
        """Words and addresses of what is sealed in or about the row and can be opened with a reason."""
        return []

    # --- reading -----------------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        """Every tenant's rows, without their sealed columns."""
        rows: models.QuerySet[Any] = self.model._default_manager.using(SUPPORT)
        return rows.defer(*sealed_names(self.model))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """All that is shown. A page names its fields: one that is added to a model is not shown by itself."""
        return list(flatten_fieldsets(self.get_fieldsets(request, obj)))

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return DeskList

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        return self.search_ids

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[Any], search_term: str
    ) -> tuple[models.QuerySet[Any], bool]:
        """By id exactly, or by the beginning of the owner's address."""
        if not search_term.strip() or not self.search_ids:
            return queryset, False
        wanted = as_id(search_term)
        if not issubclass(self.model, TenantModel):
            return (queryset.filter(pk=wanted) if wanted else queryset.none()), False
        if wanted is None:
            return self.of_people(queryset, people(search_term)), False
        person = User.objects.using(SUPPORT).filter(pk=wanted, tenant__isnull=False).first()
        if person is not None:
            return self.of_people(queryset, [person]), False
        return queryset.filter(reduce(or_, (Q(**{name: wanted}) for name in self.search_ids))), False

    def of_people(self, queryset: models.QuerySet[Any], found: list[User]) -> models.QuerySet[Any]:
        """The rows that belong to these people."""
        return queryset.filter(
            tenant_id__in={user.tenant_id for user in found if user.tenant_id},
            customer_id__in={user.pk for user in found},
        )

    def narrowed(self, request: HttpRequest) -> bool:
        """Whether the list is asked for the rows of a few owners."""
        asked = request.GET
        return bool(self.search_ids and asked.get("q", "").strip()) or any(
            name in asked for name in self.owners
        )

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Only what an index serves: the filters; the tenant, and with it the customer and the session."""
        if lookup in {getattr(each, "parameter_name", "") for each in self.list_filter}:
            return True
        return lookup in self.owners and request is not None and "tenant_id" in request.GET

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """The row, with its person, or None."""
        try:
            found = self.get_queryset(request).get(pk=clean(object_id))
        except (self.model.DoesNotExist, ValidationError):
            return None
        with_people([found])
        return found

    # --- columns -----------------------------------------------------------------------------------------

    @admin.display(description="customer")
    def customer(self, row: Any) -> str:
        """Whose row it is, without a link: the row itself is the link."""
        return (
            row.person.email if row.person else ("the tenant as a whole" if not row.customer_id else "erased")
        )

    @admin.display(description="customer")
    def customer_link(self, row: Any) -> SafeString | str:
        """The person a row belongs to."""
        if not isinstance(row, PrivateModel) and not getattr(row, "customer_id", None):
            return "the tenant as a whole"
        return link("tenancy_user", row.customer_id, row.person.email if row.person else str(row.customer_id))

    @admin.display(description="tenant")
    def tenant_link(self, row: Any) -> SafeString:
        """The account a row belongs to."""
        return link("tenancy_tenant", row.tenant_id, str(row.tenant_id))


class WithReason(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    """A change says why."""

    reason = forms.CharField(
        label="Why",
        max_length=REASON_AT_MOST,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 2}),
        help_text="Kept in the audit; the customer can read it.",
    )

    def clean_reason(self) -> str:
        """A sentence, or no change."""
        try:
            return reason_in(self.cleaned_data["reason"])
        except NoReason:
            raise ValidationError(TOO_SHORT) from None

    @cached_property
    def changed_data(self) -> list[str]:
        """What was changed of the row."""
        return [name for name in super().changed_data if name != "reason"]


class Edit(Look):
    """A page on which a few fields of a tenant-less row can be changed, with a reason, on record."""

    editable: tuple[str, ...] = ()
    form = WithReason

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_act_permission(request, obj)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        found = list(super().get_fieldsets(request, obj))
        return [*found, ("Change", {"fields": ("reason",)})] if self.has_act_permission(request) else found

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        changeable = (*self.editable, "reason")
        return [name for name in super().get_readonly_fields(request, obj) if name not in changeable]

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Django's, which holds a transaction without a scope; the change is written when that is over."""
        response: HttpResponse = super().changeform_view(request, *args, **kwargs)
        for row, names, message in getattr(request, "desk_changes", ()):
            self.write(request, row, names, message)
        return response

    def write(self, request: HttpRequest, row: Any, names: list[str], message: Any) -> None:
        """Write the fields `names` of the row over the login `support`, once what is done is on record."""
        record(request, row, message)
        if names:
            row.save(using=SUPPORT, update_fields=names)

    def save_model(self, request: HttpRequest, obj: models.Model, form: Any, change: bool) -> None:
        """Nothing yet: see `changeform_view`."""

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        """What was changed; kept on the request for `write`, with the reason for `record`."""
        message = super().construct_change_message(request, form, formsets, add)
        names = [name for name in form.changed_data if name in self.editable]
        request.desk_act = ("added" if add else "changed", form.cleaned_data["reason"])  # type: ignore[attr-defined]
        request.desk_changes = [] if add or not message else [(form.instance, names, message)]  # type: ignore[attr-defined]
        return message

    def log_change(self, request: HttpRequest, obj: models.Model, message: Any) -> Any:
        """Nothing yet: see `changeform_view`."""


def record(request: HttpRequest, row: models.Model, message: Any, *, using: str = "default") -> LogEntry:
    """A line in the desk's log, and by `acted` one in the audit, with the reason given for the present act.

    Call it in the scope and transaction of the act. `__str__` of a row with content is its id, so no text lands
    in the log.
    """
    action, reason = getattr(request, "desk_act", ("changed", ""))
    acted.send(sender=type(row), request=request, row=row, action=action, reason=reason)
    entry = LogEntry(
        user=cast(User, request.user),
        content_type_id=ContentType.objects.get_for_model(row).pk,
        object_id=str(row.pk),
        object_repr=str(row)[:200],
        action_flag=CHANGE,
        change_message=message if isinstance(message, str) else json.dumps(message),
        action_time=clock.now(),
    )
    entry.save(using=using)
    return entry


def opener(words: str, kind: str, key: Any) -> tuple[str, str]:
    """An entry of `Look.opens`: `kind` is one of the openable kinds, `key` the id it is addressed by."""
    return words, reverse("admin:open", args=[kind, key])


def labels[F: Callable[..., Any]](description: str, colours: Mapping[str, str]) -> Callable[[F], F]:
    """A column of words in coloured labels."""
    return cast("Callable[[F], F]", display(description=description, label=dict(colours)))


def act[F: Callable[..., Any]](description: str) -> Callable[[F], F]:
    """An action on rows, for those who may act. It is confirmed on a page of its own, which asks for the reason."""

    def decorate(method: F) -> F:
        @wraps(method)
        def confirmed(page: Look, request: HttpRequest, queryset: models.QuerySet[Any]) -> Any:
            try:
                reason = reason_in(request.POST.get("reason", ""))
            except NoReason:
                return _confirm(page, request, queryset, description, method.__name__)
            request.desk_act = (method.__name__, reason)  # type: ignore[attr-defined]  # for `record`
            return method(page, request, queryset)

        return cast(F, action(description=description, permissions=["act"])(confirmed))

    return decorate


def _confirm(
    page: Look, request: HttpRequest, rows: models.QuerySet[Any], title: str, name: str
) -> HttpResponse:
    typed = "confirmed" in request.POST
    options = page.opts
    context = {
        **page.admin_site.each_context(request),
        "title": title,
        "action": name,
        "rows": list(rows[: page.list_per_page]),
        "problem": TOO_SHORT if typed else "",
        "typed_reason": request.POST.get("reason", ""),
        "address": reverse(f"admin:{options.app_label}_{options.model_name}_changelist"),
    }
    return TemplateResponse(request, "admin/confirm.html", context, status=400 if typed else 200)


def link(page: str, key: Any, words: str) -> SafeString:
    """A link to a row's page."""
    return format_html(
        '<a class="desk-link" href="{}">{}</a>', reverse(f"admin:{page}_change", args=[key]), words
    )


def listed(page: str, words: str, **where: Any) -> SafeString:
    """A link to a list."""
    query = f"?{urlencode(where)}" if where else ""
    return format_html(
        '<a class="desk-link" href="{}{}">{}</a>', reverse(f"admin:{page}_changelist"), query, words
    )
