"""How far the hand-over to the external memory is, in the current scope."""

from __future__ import annotations

from django.db.models import Count

from wrapups.models import HandOver


def counts() -> dict[str, int]:
    """How many of the customer's sessions and days are handed over, are to be, and could not be."""
    found = dict(HandOver.objects.values_list("state").annotate(Count("id")))
    return {state.value: found.get(state.value, 0) for state in HandOver.State}
