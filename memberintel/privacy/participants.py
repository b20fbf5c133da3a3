"""Every app that keeps something about a customer takes part in showing, moving and destroying it.

Settings list the modules as `PRIVACY_PARTICIPANTS`. A module may define any of the functions named here; each is
called in the customer's scope:

`forget_session(session: UUID) -> dict[str, int]`: delete what is kept about a session that is being erased, inside
the transaction that erases it; gives counts by what was deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from django.conf import settings


def taking_part(name: str) -> list[Callable[..., Any]]:
    """The function `name` of every participant that has one, in the order of the settings."""
    modules = [import_module(path) for path in settings.PRIVACY_PARTICIPANTS]
    return [getattr(module, name) for module in modules if hasattr(module, name)]
