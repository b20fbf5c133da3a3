"""What the server answers of its own accord: what the offline advisor would, to the same prompt."""

from __future__ import annotations

import json
from typing import Any

from memberintel.llm.backends.offline import advice, notes
from memberintel.llm.types import Prompt

Schema = dict[str, Any]


def answer(prompt: Prompt, schema: Schema | None) -> str:
    """The text of the answer. The wire does not say what a call is for; its shape and its words do."""
    if schema is not None:
        if "next_session_note" in schema.get("properties", {}):
            return notes.wrap_up(prompt)
        return json.dumps(_filled(schema, schema), ensure_ascii=False)
    instructions = "\n".join(prompt.system)
    if "<transcript>" in prompt.messages[0].text:
        return notes.compact(prompt)
    if "a title of at most" in instructions:
        return notes.title(prompt) or "A conversation"
    return advice.answer(prompt)


def _filled(schema: Schema, whole: Schema) -> Any:
    """The plainest value of a shape."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return _filled(whole["$defs"][name], whole)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _filled(schema["anyOf"][0], whole)
    if schema.get("type") == "object":
        return {name: _filled(each, whole) for name, each in schema.get("properties", {}).items()}
    plain: dict[str, Any] = {"array": [], "integer": 0, "number": 0, "boolean": False, "null": None}
    return plain.get(schema.get("type", ""), "Nothing to add.")
