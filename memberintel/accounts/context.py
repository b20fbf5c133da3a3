"""What every page of the product may say."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest


def page(request: HttpRequest) -> dict[str, object]:
    """Whether the offline advisor answers, the person's name, and where letters go when there is no mail."""
    person = getattr(request, "person", None)
    return {
        "offline_advisor": settings.LLM_ROUTES["chat"][0].startswith("offline:"),
        "person_name": person.display_name if person else "",
        "mail_folder": settings.DATA_DIR / "mail" if settings.EMBEDDED else None,
    }
