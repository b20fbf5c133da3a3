"""The API of usage: the month's budgets and what models were called for."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memberintel.accounts.rest import Endpoint, described
from memberintel.usage import charges, queries
from memberintel.usage.models import Kind


class BudgetOut(serializers.Serializer[Any]):
    """What the team may have made of a kind in a month. `limit` and `left` are null where there is no limit."""

    kind = serializers.ChoiceField(choices=Kind.choices)
    limit = serializers.IntegerField(allow_null=True)
    used = serializers.IntegerField()
    left = serializers.IntegerField(allow_null=True)

    class Meta:
        ref_name = "Budget"


class CallsOut(serializers.Serializer[Any]):
    """Your own calls of models for one purpose. Tokens."""

    purpose = serializers.CharField()
    calls = serializers.IntegerField()
    failed = serializers.IntegerField()
    input_tokens = serializers.IntegerField(help_text="Without those that came from the cache.")
    cached_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()

    class Meta:
        ref_name = "Calls"


class UsageOut(serializers.Serializer[Any]):
    """A calendar month in UTC, from `month` to the day before `renews`."""

    month = serializers.DateField(help_text="Its first day.")
    renews = serializers.DateField(help_text="From this day on, 0:00 UTC, the budgets are whole again.")
    budgets = BudgetOut(many=True)
    calls = CallsOut(many=True)

    class Meta:
        ref_name = "Usage"


class Usage(Endpoint):
    """Usage of this month."""

    scopes = {"GET": ("read",)}

    @described("get_usage", tag="usage", gives={200: UsageOut})
    def get(self, request: Request) -> Response:
        """What was used this month of the team's budgets, and your own calls of models."""
        month = charges.this_month()
        found = {
            "month": month,
            "renews": charges.renewal(month),
            "budgets": charges.budgets(),
            "calls": queries.calls_by_purpose(month),
        }
        return Response(UsageOut(found).data)
