"""The page of usage: what the month's budgets were, and what models were called for."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from memberintel.accounts.access import signed_in, tier_of
from memberintel.usage import charges, queries
from memberintel.usage.charges import Budget

PURPOSES = {
    "chat": "Answers",
    "wrap_up": "Wrap-ups",
    "journal": "Journal",
    "mood": "Mood and themes of the day",
    "distill": "Findings from what was looked up",
    "compact": "Summaries of long conversations",
    "title": "Titles",
    "judge": "Checks of quality",
    "embed": "Comparing texts by meaning",
}


@dataclass(frozen=True)
class Row:
    """A budget with the length of its bar, 0 to 100."""

    budget: Budget
    bar: int


@require_safe
@signed_in
def month(request: HttpRequest) -> HttpResponse:
    """This month's budgets of the team, and the person's own calls of models."""
    rows = [Row(budget, _bar(budget)) for budget in charges.budgets()]
    calls = queries.calls_by_purpose(charges.this_month())
    context = {
        "place": "usage",
        "tier": tier_of(request),
        "month": charges.this_month(),
        "renews": rows[0].budget.renews,
        "rows": rows,
        "used_up": [row.budget for row in rows if row.budget.left == 0],
        "calls": [(PURPOSES.get(each.purpose, each.purpose), each) for each in calls],
    }
    return render(request, "accounts/usage.html", context)


def _bar(budget: Budget) -> int:
    """Something used shows, however little."""
    if budget.limit is None or not budget.used:
        return 0
    return 100 if budget.used >= budget.limit else max(1, budget.used * 100 // budget.limit)
