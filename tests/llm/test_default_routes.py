"""Who serves what, as delivered."""

from __future__ import annotations

import pytest
from pytest_django.fixtures import Settings

from memberintel.llm import routes
from memberintel.llm.errors import Unavailable


@pytest.fixture(autouse=True)
def keyless(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The machine's own keys are not there."""
    for name in ("ANTHROPIC_API_KEY", "GOOGLE_CLOUD_PROJECT", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def chain(purpose: str) -> list[str]:
    return [str(each) for each in routes.chain(purpose)]


def test_by_default_and_without_keys_the_offline_advisor_does_what_it_can() -> None:
    for purpose in ("chat", "wrap_up", "journal", "mood", "distill", "compact", "title"):
        assert chain(purpose) == ["offline:extractive"]
    assert chain("embed") == ["offline:words-and-stems-1"]
    with pytest.raises(Unavailable) as raised:
        routes.chain("judge")
    assert "ANTHROPIC_API_KEY" in raised.value.message
    assert routes.variables_to_set() == ("ANTHROPIC_API_KEY", "GOOGLE_CLOUD_PROJECT", "GEMINI_API_KEY")


def test_with_both_keys_anthropic_answers_and_gemini_writes(keyless: pytest.MonkeyPatch) -> None:
    keyless.setenv("ANTHROPIC_API_KEY", "k")
    keyless.setenv("GOOGLE_CLOUD_PROJECT", "p")
    assert chain("chat")[0].startswith("anthropic:")
    assert chain("wrap_up")[0] == "gemini:gemini-2.5-flash"
    assert not any(
        "offline" in each for purpose in ("chat", "wrap_up", "journal", "mood") for each in chain(purpose)
    )


@pytest.mark.parametrize(
    ("variable", "provider"),
    [("ANTHROPIC_API_KEY", "anthropic"), ("GOOGLE_CLOUD_PROJECT", "gemini"), ("GEMINI_API_KEY", "gemini")],
)
def test_one_key_serves_every_purpose_but_embeddings(
    settings: Settings, keyless: pytest.MonkeyPatch, variable: str, provider: str
) -> None:
    keyless.setenv(variable, "k")
    for purpose in settings.PURPOSES:
        assert routes.chain(purpose)[0].provider == ("offline" if purpose == "embed" else provider)
    assert not routes.answers_offline()
