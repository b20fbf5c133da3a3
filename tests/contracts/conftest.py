"""The loopback server the providers' SDKs talk to, and the backends under test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from evals.loopback.server import Server, running
from memberintel.llm import windows
from tests.contracts.rigs import RIGS, STEERABLE, WIRED, Rig, WireRig


@pytest.fixture(scope="session")
def loopback() -> Iterator[Server]:
    """One server for the whole run; each test steers it anew."""
    with running() as server:
        yield server


@pytest.fixture(params=RIGS, ids=lambda rig: rig.name)
def rig(request: pytest.FixtureRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """Every backend in turn."""
    return _made(request, settings, monkeypatch)


@pytest.fixture(params=STEERABLE, ids=lambda rig: rig.name)
def steered(request: pytest.FixtureRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """A backend that can be made to fail."""
    return _made(request, settings, monkeypatch)


@pytest.fixture(params=WIRED, ids=lambda rig: rig.name)
def wired(request: pytest.FixtureRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> WireRig:
    """A provider reached over HTTP."""
    made = _made(request, settings, monkeypatch)
    assert isinstance(made, WireRig)
    return made


def _made(request: pytest.FixtureRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Rig:
    kind = request.param
    rig: Rig = kind(request.getfixturevalue("loopback")) if issubclass(kind, WireRig) else kind()
    if isinstance(rig, WireRig):
        for name, value in rig.variables().items():
            monkeypatch.setenv(name, value)
    windows._told.clear()
    settings.LLM_ROUTES = dict.fromkeys(settings.PURPOSES, (rig.route,)) | {
        "embed": (rig.embeds or rig.route,)
    }
    settings.LLM_PATIENCE = {"tries": 3, "first_wait": 0.0, "longest_wait": 1.0}
    settings.LLM_OFFLINE_PACE_SECONDS = 0.001
    return rig
