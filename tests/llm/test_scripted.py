"""The scripted backend steered through a file, as a test steers another process."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from memberintel.llm.backends import scripted
from memberintel.llm.backends.base import RawDelta, Request
from memberintel.llm.errors import ModelError, Unavailable
from memberintel.llm.types import Finished, Message, Prompt, TextDelta
from tests.waiting import PATIENCE

PROMPT = Prompt((), (Message("user", "hello"),))


def heard(name: str) -> list[RawDelta]:
    async def listen() -> list[RawDelta]:
        return [delta async for delta in scripted.Scripted().stream(Request("chat", name, PROMPT))]

    return asyncio.run(listen())


def text(name: str) -> str:
    return "".join(delta.text for delta in heard(name) if isinstance(delta, TextDelta))


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "script.json"
    monkeypatch.setenv(scripted.VARIABLE, str(path))
    return path


def write(path: Path, plays: dict[str, list[dict[str, object]]]) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(plays))
    os.replace(fresh, path)


def test_plays_follow_each_other_and_the_last_is_repeated(file: Path) -> None:
    write(file, {"demo": [{"steps": [{"text": "one"}]}, {"steps": [{"text": "two"}]}]})
    assert [text("demo") for _ in range(3)] == ["one", "two", "two"]


def test_a_changed_file_starts_anew(file: Path) -> None:
    write(file, {"demo": [{"steps": [{"text": "old"}]}]})
    assert text("demo") == "old"
    write(file, {"demo": [{"steps": [{"text": "new"}]}]})
    assert text("demo") == "new"


def test_what_was_sent_is_appended_to_a_private_file(file: Path) -> None:
    write(file, {"demo": [{"steps": [{"text": "x"}]}]})
    heard("demo")
    heard("demo")
    calls = Path(f"{file}.calls")
    assert stat.S_IMODE(calls.stat().st_mode) == 0o600
    records = [json.loads(line) for line in calls.read_text().splitlines()]
    assert [record["wire"].encode() for record in records] == [PROMPT.wire()] * 2
    assert {(record["name"], record["purpose"]) for record in records} == {("demo", "chat")}


@pytest.mark.parametrize("content", [None, "{", '{"other": []}'])
def test_a_script_that_is_not_there_is_a_typed_error(file: Path, content: str | None) -> None:
    if content is not None:
        file.write_text(content)
    with pytest.raises(Unavailable):
        heard("nobody")


IN_ANOTHER_PROCESS = """
import asyncio
import django
django.setup()
from memberintel.llm import seam
from memberintel.llm.types import Message, Prompt
from memberintel.tenancy.context import SYSTEM
done = asyncio.run(seam.complete("chat", Prompt((), (Message("user", "hello"),)), scope=SYSTEM))
print(done.provider, done.text)
"""


def test_variables_route_another_process_to_a_script(file: Path) -> None:
    write(file, {"demo": [{"steps": [{"error": "overloaded"}]}, {"steps": [{"text": "played"}]}]})
    done = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS],
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "memberintel.settings",
            "LLM_ROUTE_CHAT": "scripted:demo",
        },
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout.strip() == "scripted played"
    assert len(Path(f"{file}.calls").read_text().splitlines()) == 2


def test_a_text_in_words_keeps_every_character() -> None:
    scripted.script("words", [{"steps": [{"words": " One, two\n\nthree  four ", "delay": 0.0}]}])
    deltas = [delta.text for delta in heard("words") if isinstance(delta, TextDelta)]
    assert "".join(deltas) == " One, two\n\nthree  four "
    assert len(deltas) == 4


def test_a_play_can_say_why_it_stops_and_what_it_used() -> None:
    scripted.script("end", [{"steps": [], "stop_reason": "max_tokens", "usage": [1, 2, 3, 4]}])
    (finished,) = heard("end")
    assert isinstance(finished, Finished)
    assert finished.stop_reason == "max_tokens"
    assert finished.usage.cached_tokens == 3


def test_the_offline_advisor_can_answer_through_a_script() -> None:
    scripted.script("through", [{"steps": [{"offline": True}]}])
    deltas = heard("through")
    finished = deltas[-1]
    assert isinstance(finished, Finished)
    assert (finished.provider, finished.model) == ("scripted", "through")
    assert [delta for delta in deltas if isinstance(delta, Finished)] == [finished]
    assert len(scripted.wires("through")) == 1


def test_a_step_nobody_knows_is_an_error() -> None:
    scripted.script("odd", [{"steps": [{"dance": True}]}])
    with pytest.raises(ModelError):
        heard("odd")


def test_an_empty_script_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        scripted.script("none", [])
