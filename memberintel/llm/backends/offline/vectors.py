"""Vectors of texts without a network: what their words mean, and which words they are.

One half is the mean of a table of word vectors that comes in the wheel of wordllama, the other hashed stems; the
cosine of two vectors is the mean of both halves' cosines. Meaning alone finds paraphrases and misses names and
figures, stems the other way round: `evals/retrieval` measures either and both.

The table is read here and not through wordllama's own code, which sets up logging for the whole process when it
is imported and pads every text of a batch to the longest.
"""

from __future__ import annotations

import math
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from memberintel.lib import stems

MODEL = "words-and-stems-1"  # another way to make vectors is another name: those of two are not compared
TABLE_SIZE = 256
LONGEST_READ = 20_000  # characters of one text; what a longer one is about, its beginning tells


class _Table(NamedTuple):
    tokenizer: Tokenizer
    weights: NDArray[np.float16]  # a row a token


def vector(text: str) -> tuple[float, ...]:
    """A unit vector; all zero for a text without words."""
    read = text[:LONGEST_READ]
    halves = (*meaning(read), *stems.vector(read))
    length = math.sqrt(sum(value * value for value in halves))
    return tuple(value / length for value in halves) if length else halves


def meaning(text: str) -> tuple[float, ...]:
    """The half that tells what the words mean, as a unit vector; all zero for a text without words."""
    table = _table()
    ids = table.tokenizer.encode(text.strip(), add_special_tokens=False).ids
    if not ids:
        return (0.0,) * TABLE_SIZE
    mean = table.weights[ids].astype(np.float32).mean(axis=0)
    unit: list[float] = (mean / (np.linalg.norm(mean) or 1)).tolist()
    return tuple(unit)


@cache
def _table() -> _Table:
    """Tokenizer and weights, read at first use: a tenth of a second, and some 50 MB of memory."""
    found = find_spec("wordllama")
    if found is None or found.origin is None:
        raise RuntimeError("the package wordllama is not installed")
    here = Path(found.origin).parent
    tokenizer = Tokenizer.from_file(str(here / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return _Table(
        tokenizer, load_file(here / "weights" / f"l2_supercat_{TABLE_SIZE}.safetensors")["embedding.weight"]
    )
