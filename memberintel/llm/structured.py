"""Reading an answer as JSON of a given shape, and telling the model what is wrong with it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pydantic import BaseModel, ValidationError

from memberintel.llm.types import Message, Prompt

PROBLEMS_TOLD = 10
_FENCED = re.compile(r"^\s*```[a-zA-Z]*\s*\n(.*?)\n?\s*```\s*$", re.DOTALL)


@dataclass(frozen=True)
class Problem:
    """Why an answer does not fit, in words for the model that wrote it. Not for logs."""

    text: str = field(repr=False)


def read[T: BaseModel](shape: type[T], answer: str) -> T | Problem:
    """The answer as `shape`, or what is wrong with it. A code fence around it is forgiven."""
    fenced = _FENCED.match(answer)
    try:
        return shape.model_validate_json(fenced.group(1) if fenced else answer)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [f"- {'.'.join(map(str, each['loc'])) or 'answer'}: {each['msg']}" for each in found]
    return Problem("\n".join(lines[:PROBLEMS_TOLD]))


def repair(prompt: Prompt, answer: str, problem: Problem) -> Prompt:
    """The prompt again, followed by the answer it got and what is wrong with that."""
    request = (
        "Your answer could not be read:\n"
        f"{problem.text}\n"
        "Answer again with the corrected JSON alone, without any other text."
    )
    # Providers refuse an empty assistant message.
    return prompt.followed_by(Message("assistant", answer or "(empty)"), Message("user", request))
