"""Which model answers for which purpose: read from settings, in order of preference."""

from __future__ import annotations

import os
from dataclasses import dataclass

from django.conf import settings

from memberintel.llm.errors import Unavailable

OFFLINE = "offline"
# A customer must never mistake extraction for advice because a provider was down for a minute, nor must an
# extract pass for a summary.
NEVER_OFFLINE_AS_FALLBACK = frozenset({"chat", "wrap_up", "compact", "journal", "mood"})


class UnknownPurpose(ValueError):
    """A purpose, or a route, that settings do not know: a mistake in the program or in the settings."""


@dataclass(frozen=True)
class Route:
    """A provider and one of its models, in settings "provider:model"."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"


def chain(purpose: str) -> tuple[Route, ...]:
    """The models to try for `purpose`, best first; never empty.

    A provider without its key is skipped. `offline` stands in for chat, wrap-ups and summaries only while no
    provider has a key, unless it is what the settings name first. Unavailable when nothing is left.
    """
    named = tuple(parse(text) for text in _named(purpose))
    usable = tuple(route for route in named if has_key(route.provider))
    if purpose in NEVER_OFFLINE_AS_FALLBACK and any_key() and named[0].provider != OFFLINE:
        usable = tuple(route for route in usable if route.provider != OFFLINE)
    if not usable:
        raise Unavailable(
            f"No model is set up for this. Set {' or '.join(variables_to_set(purpose))}.",
            reason="no key",
            retryable=False,
        )
    return usable


def parse(text: str) -> Route:
    """A route from "provider:model"; UnknownPurpose when it is neither a known provider nor has a model."""
    provider, _, model = text.partition(":")
    if provider not in settings.LLM_KEYS or not model:
        raise UnknownPurpose(f"{text!r} is no route; write provider:model, of {sorted(settings.LLM_KEYS)}")
    return Route(provider, model)


def has_key(provider: str) -> bool:
    """Whether a provider can be called: one of its variables is set, or it needs none."""
    names = settings.LLM_KEYS[provider]
    return not names or any(os.environ.get(name) for name in names)


def any_key() -> bool:
    """Whether any provider that needs a key has one."""
    return any(has_key(provider) for provider, names in settings.LLM_KEYS.items() if names)


def answers_offline(purpose: str = "chat") -> bool:
    """Whether the offline advisor answers for `purpose`; pages say so, with `variables_to_set`."""
    try:
        return chain(purpose)[0].provider == OFFLINE
    except Unavailable:
        return False


def variables_to_set(purpose: str = "chat") -> tuple[str, ...]:
    """The variables any one of which would give `purpose` a real model."""
    providers = [parse(text).provider for text in _named(purpose)]
    real = [provider for provider in providers if settings.LLM_KEYS[provider]] or list(settings.LLM_KEYS)
    return tuple(dict.fromkeys(name for provider in real for name in settings.LLM_KEYS[provider]))


def _named(purpose: str) -> tuple[str, ...]:
    try:
        return tuple(settings.LLM_ROUTES[purpose])
    except KeyError:
        raise UnknownPurpose(f"{purpose!r} is no purpose of a model call") from None
