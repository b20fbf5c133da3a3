"""What every page of the product may say."""

from __future__ import annotations

from django.http import HttpRequest

from memberintel.accounts import letters
from memberintel.llm import routes


def page(request: HttpRequest) -> dict[str, object]:
    """Whether the offline advisor answers and what to set, the person's name, where letters go without mail."""
    person = getattr(request, "person", None)
    return {
        "offline_advisor": routes.answers_offline(),
        "model_variables": routes.variables_to_set() or ("ANTHROPIC_API_KEY",),
        "person_name": person.display_name if person else "",
        "mail_folder": letters.folder(),
        "mail_page": letters.readable_by(request),
    }
