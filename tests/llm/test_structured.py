from __future__ import annotations

from typing import Literal

import pytest
from pydantic import BaseModel

from memberintel.llm import structured
from memberintel.llm.structured import Problem
from memberintel.llm.types import Message, Prompt


class Mood(BaseModel):
    mood: Literal["low", "good"]
    themes: list[str]


@pytest.mark.parametrize(
    "answer",
    [
        '{"mood": "good", "themes": ["a"]}',
        '```json\n{"mood": "good", "themes": ["a"]}\n```',
        '  ```\n{"mood": "good", "themes": ["a"]}```  ',
    ],
)
def test_json_is_read_also_from_a_code_fence(answer: str) -> None:
    assert structured.read(Mood, answer) == Mood(mood="good", themes=["a"])


@pytest.mark.parametrize("answer", ["", "no", '{"mood": "good"}', '{"mood": "SECRET", "themes": [1]}', "[]"])
def test_what_is_wrong_is_said_without_repeating_the_answer(answer: str) -> None:
    problem = structured.read(Mood, answer)
    assert isinstance(problem, Problem)
    assert problem.text.startswith("- ")
    assert "SECRET" not in problem.text
    assert problem.text not in repr(problem)


def test_a_repair_carries_the_answer_and_the_problem_after_the_same_prompt() -> None:
    prompt = Prompt(("s",), (Message("user", "q"),))
    again = structured.repair(prompt, "", Problem("- mood: wrong"))
    assert again.wire().startswith(prompt.wire())
    assert [message.role for message in again.messages] == ["user", "assistant", "user"]
    assert all(message.text for message in again.messages)
    assert "- mood: wrong" in again.messages[-1].text
