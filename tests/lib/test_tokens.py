from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memberintel.lib import tokens
from tests.waiting import PATIENCE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("Hello, world!", 4),
        ("The studio opens on Friday at 17:00.", 11),
    ],
)
def test_counts_as_o200k_base_does(text: str, expected: int) -> None:
    assert tokens.count(text) == expected


def test_the_name_of_a_special_token_is_plain_text() -> None:
    assert tokens.count("<|endoftext|>") > 1


def test_a_lone_surrogate_counts_and_does_not_raise() -> None:
    assert tokens.count("a\ud800b") >= 1


@pytest.mark.parametrize("run", ["a", "A", " ", "\n", "!", "é", "漢"])
def test_a_huge_run_of_one_letter_takes_no_time(run: str) -> None:
    began = time.process_time()
    assert tokens.count(run * 300_000) > 1000
    assert time.process_time() - began < 30


def test_many_runs_just_short_of_the_cut_take_no_time() -> None:
    began = time.process_time()
    tokens.count(("x" * (tokens.LONGEST_RUN - 1) + " ") * 40)
    assert time.process_time() - began < 30


@given(st.text(max_size=200))
def test_any_text_counts(text: str) -> None:
    assert 0 <= tokens.count(text) <= 4 * len(text)


def test_cutting_a_long_run_loses_no_text() -> None:
    text = "words before " + "x" * 20_000 + " words after" + " " * 9_000 + "end"
    assert "".join(tokens._pieces(text)) == text
    assert max(map(len, tokens._pieces(text))) <= tokens.LONGEST_RUN


def test_prepare_makes_a_private_folder_and_mends_a_damaged_file(tmp_path: Path) -> None:
    folder = tmp_path / "tokens"
    target = tokens.prepare(folder) / tokens.VOCABULARY_NAME
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    whole = target.read_bytes()
    target.write_bytes(b"damaged")
    tokens.prepare(folder)
    assert target.read_bytes() == whole
    assert [entry.name for entry in folder.iterdir()] == [tokens.VOCABULARY_NAME]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("not a folder")
    with pytest.raises(tokens.VocabularyMissing, match="TIKTOKEN_CACHE_DIR"):
        tokens.prepare(blocker / "tokens")


def test_a_fresh_process_counts_without_a_network(tmp_path: Path) -> None:
    """A new data folder, and sockets that raise."""
    program = (
        "import socket\n"
        "def refuse(*a, **k): raise AssertionError('network')\n"
        "socket.socket.connect = refuse; socket.getaddrinfo = refuse\n"
        "from memberintel.lib import tokens\n"
        "print(tokens.count('Hello, world!'))\n"
    )
    environ = {key: value for key, value in os.environ.items() if key != "TIKTOKEN_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environ | {"MEMBERINTEL_DATA": str(tmp_path)},
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout.strip() == "4"
    assert (tmp_path / "tokens" / tokens.VOCABULARY_NAME).is_file()
