from __future__ import annotations

import pytest
from pytest_django.fixtures import Settings

from memberintel.llm import routes
from memberintel.llm.errors import Unavailable
from memberintel.llm.routes import Route, UnknownPurpose

OFFLINE = Route("offline", "extractive")


@pytest.fixture(autouse=True)
def keyed(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Two providers that need a key, neither of which has one."""
    settings.LLM_KEYS = {
        "offline": (),
        "scripted": (),
        "acme": ("ACME_KEY",),
        "other": ("OTHER_A", "OTHER_B"),
    }
    for name in ("ACME_KEY", "OTHER_A", "OTHER_B"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def route(settings: Settings, purpose: str, *chain: str) -> None:
    settings.LLM_ROUTES = {**settings.LLM_ROUTES, purpose: chain}


def test_without_keys_the_offline_advisor_answers(settings: Settings) -> None:
    route(settings, "chat", "acme:big", "offline:extractive")
    assert routes.chain("chat") == (OFFLINE,)
    assert routes.answers_offline()
    assert routes.variables_to_set() == ("ACME_KEY",)


@pytest.mark.parametrize("purpose", ["chat", "wrap_up"])
def test_with_a_key_offline_is_no_fallback_for_chat_or_wrap_ups(
    settings: Settings, keyed: pytest.MonkeyPatch, purpose: str
) -> None:
    route(settings, purpose, "acme:big", "offline:extractive")
    keyed.setenv("ACME_KEY", "k")
    assert routes.chain(purpose) == (Route("acme", "big"),)
    assert not routes.answers_offline(purpose)


def test_also_when_the_key_is_another_provider_s(settings: Settings, keyed: pytest.MonkeyPatch) -> None:
    route(settings, "chat", "acme:big", "offline:extractive")
    keyed.setenv("OTHER_B", "k")
    with pytest.raises(Unavailable, match="no key") as raised:
        routes.chain("chat")
    assert "ACME_KEY" in raised.value.message
    assert not raised.value.retryable
    assert not routes.answers_offline()


def test_a_purpose_routed_to_offline_on_purpose_stays_there(
    settings: Settings, keyed: pytest.MonkeyPatch
) -> None:
    route(settings, "chat", "offline:extractive")
    keyed.setenv("ACME_KEY", "k")
    assert routes.chain("chat") == (OFFLINE,)


def test_other_purposes_may_fall_back_to_offline(settings: Settings, keyed: pytest.MonkeyPatch) -> None:
    route(settings, "title", "acme:small", "offline:extractive")
    keyed.setenv("ACME_KEY", "k")
    assert routes.chain("title") == (Route("acme", "small"), OFFLINE)


def test_a_chain_keeps_its_order_and_skips_what_has_no_key(
    settings: Settings, keyed: pytest.MonkeyPatch
) -> None:
    route(settings, "chat", "acme:big", "other:mid", "acme:small")
    keyed.setenv("OTHER_A", "k")
    assert routes.chain("chat") == (Route("other", "mid"),)
    keyed.setenv("ACME_KEY", "k")
    assert [str(each) for each in routes.chain("chat")] == ["acme:big", "other:mid", "acme:small"]


@pytest.mark.parametrize("text", ["nobody:model", "acme", "acme:", ":model"])
def test_a_route_that_cannot_be_read_is_named(settings: Settings, text: str) -> None:
    route(settings, "chat", text)
    with pytest.raises(UnknownPurpose, match="provider:model"):
        routes.chain("chat")


def test_an_unknown_purpose_is_a_mistake() -> None:
    with pytest.raises(UnknownPurpose):
        routes.chain("small_talk")


def test_a_model_name_may_hold_a_colon() -> None:
    assert routes.parse("acme:family:7b") == Route("acme", "family:7b")
