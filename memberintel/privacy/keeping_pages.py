"""The page on which owners say how long content is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, cast

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from memberintel.accounts.access import owner_required, signed_in
from memberintel.privacy import keeping, retention
from memberintel.privacy.retention import KINDS, Kind
from memberintel.tenancy.models import User

PLAN, GOOD, DAYS = "plan", "good", "days"
_NO_DAYS: Final = f"Say for how many days, from 1 to {keeping.MOST:,}."


@dataclass(frozen=True)
class Asked:
    """What the form asks of a kind: which of the three, and for how many days."""

    what: str
    plan: str
    choice: forms.BoundField
    days: forms.BoundField


class KeepingForm(forms.Form):
    """Of each kind: as the plan says, for good, or for so many days."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for kind in KINDS:
            self.fields[kind] = forms.ChoiceField(choices=[(each, each) for each in (PLAN, GOOD, DAYS)])
            self.fields[f"{kind}_days"] = forms.IntegerField(
                min_value=1,
                max_value=keeping.MOST,
                required=False,
                error_messages=dict.fromkeys(("invalid", "min_value", "max_value"), _NO_DAYS),
            )

    def clean(self) -> dict[str, Any]:
        """The days must be there where they are chosen; elsewhere they say nothing."""
        for kind in KINDS:
            name = f"{kind}_days"
            if self.cleaned_data.get(kind) != DAYS:
                self.errors.pop(name, None)
            elif name not in self.errors and self.cleaned_data.get(name) is None:
                self.add_error(name, _NO_DAYS)
        return self.cleaned_data

    def days(self) -> dict[Kind, int | None]:
        """What was chosen, as an account says it."""
        return {kind: self._days(kind) for kind in KINDS}

    def _days(self, kind: Kind) -> int | None:
        choice = self.cleaned_data[kind]
        return None if choice == PLAN else 0 if choice == GOOD else self.cleaned_data[f"{kind}_days"]

    def asked(self) -> list[Asked]:
        """Everything the form asks, kind by kind."""
        plan = keeping.by_tier()
        return [
            Asked(retention.WHAT[kind], _in_words(plan[kind]), self[kind], self[f"{kind}_days"])
            for kind in KINDS
        ]


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
@owner_required
def keep(request: HttpRequest) -> HttpResponse:
    """Say how long things are kept. What that would delete is told first, and has to be agreed to."""
    if request.method != "POST":
        return _page(request, KeepingForm(initial=_initial()))
    form = KeepingForm(request.POST)
    if not form.is_valid():
        return _page(request, form)
    try:
        agreed = request.POST.getlist("agreed")
        keeping.choose(by=cast(User, request.user).pk, days=form.days(), agreed=agreed)
    except keeping.NotAgreed as asked:
        return render(request, "privacy/shorter.html", {"shorter": asked.shorter, "form": form})
    messages.success(request, "Kept. It counts from the next daily run on.")
    return redirect("privacy")


def _page(request: HttpRequest, form: KeepingForm) -> HttpResponse:
    return render(request, "privacy/keep.html", {"form": form, "most": keeping.MOST})


def _initial() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind, days in keeping.said().items():
        found[kind] = PLAN if days is None else DAYS if days else GOOD
        found[f"{kind}_days"] = days or None
    return found


def _in_words(days: int | None) -> str:
    if days is None:
        return "for good"
    return "for 1 day" if days == 1 else f"for {days:,} days"
