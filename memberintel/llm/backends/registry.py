"""Finds the backend of a provider by its name in settings."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from django.conf import settings

from memberintel.llm.backends.base import Backend


@cache
def backend(provider: str) -> Backend:
    """The one backend of `provider` in this process; imported on first use, so that an SDK that no route names
    costs nothing. KeyError for a provider that settings do not know."""
    module, _, name = settings.LLM_BACKENDS[provider].rpartition(".")
    made: Backend = getattr(import_module(module), name)()
    return made
