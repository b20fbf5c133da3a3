"""Tools the advisor may use in a turn: what one is, what it is told of the turn, how it fails. Pure.

Settings list them as `ADVISOR_TOOLS`, dotted paths in the order in which a model is offered them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The turn a tool is called in. `message_seq` is the number of the message that is being answered."""

    tenant_id: UUID
    customer_id: UUID
    session_id: UUID
    turn_id: UUID
    message_seq: int
    off_record: bool = False


@dataclass(frozen=True, slots=True)
class AdvisorTool:
    """A tool. `run` gets arguments that fit `arguments` and gives the text the model reads; ToolError when it fails.

    `writes`: it changes what is kept of the customer; such tools are not offered off the record. One that writes
    a document answers with a JSON object whose key `changed` is {document, version, change}, or a list of them.
    """

    name: str
    description: str
    arguments: type[BaseModel]
    run: Callable[[ToolContext, Any], Awaitable[str]]
    writes: bool = False


class ToolError(Exception):
    """A tool could not do what was asked. The model reads `code` and `message`; the turn goes on."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
