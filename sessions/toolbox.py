"""The tools the advisor may use: offering them, and running what a model calls.

A session offers the tools its prompt was frozen with, byte for byte, until the prompt is stated anew: another
release may have others, and calls of one that is gone, or whose arguments have changed, are answered with an
error the model can read.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from django.conf import settings
from django.utils.module_loading import import_string
from pydantic import BaseModel, ValidationError

from brain.domain.tools import AdvisorTool, ToolContext, ToolError
from memberintel.lib.text import clean
from memberintel.llm.types import Tool, ToolCall
from memberintel.vault.errors import CannotOpen
from sessions.domain.rounds import fitted

logger = logging.getLogger(__name__)

PROBLEMS_TOLD: Final = 5

UNKNOWN: Final = "There is no such tool. Use one of those you were offered, or answer without."
FAILED: Final = "The tool failed on our side. Nothing is known to have changed. Go on without it, and say so."
LOCKED: Final = "What the tool needs cannot be opened right now. Go on without it, and say so."
LATE: Final = "No result came in time; whether it took effect is not known."
TOO_MANY: Final = "Too many calls at once; this one was not made. Ask for less at a time."
OVER: Final = "No more tools can be used for this answer."


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came to: the text the model reads, and whether it is an error."""

    text: str
    error: bool = False


def definitions(*, off_record: bool) -> tuple[Tool, ...]:
    """What a model is offered, in the order of the settings; off the record only what changes nothing."""
    return tuple(
        _definition(tool)
        for tool in _tools(tuple(settings.ADVISOR_TOOLS)).values()
        if not (off_record and tool.writes)
    )


async def use(
    calls: Sequence[ToolCall],
    *,
    context: ToolContext,
    offered: frozenset[str],
    ended: Callable[[int, Outcome], None],
) -> None:
    """Run the calls of a round side by side; `ended` hears of each as it comes to its end, by its place.

    Those that write run one after another, in their order: two edits of one document would be a matter of
    luck. Each has the deadline `tool`. What a tool raises is its own outcome and never leaves here.
    """
    bound, writing = asyncio.Semaphore(settings.TOOLS_AT_ONCE), asyncio.Lock()

    async def one(place: int, call: ToolCall) -> None:
        tool = _tool(call.name, context, offered)
        if tool is None:
            outcome = _error("unknown_tool", UNKNOWN)
        elif place >= settings.TOOL_CALLS_A_ROUND:
            outcome = _error("too_many_calls", TOO_MANY)
        else:
            async with AsyncExitStack() as held:
                if tool.writes:
                    await held.enter_async_context(writing)
                await held.enter_async_context(bound)
                outcome = await _outcome(tool, call, context)
        ended(place, outcome)

    async with asyncio.TaskGroup() as group:
        for place, call in enumerate(calls):
            group.create_task(one(place, call))


def _tool(name: str, context: ToolContext, offered: frozenset[str]) -> AdvisorTool | None:
    tool = _tools(tuple(settings.ADVISOR_TOOLS)).get(name)
    if tool is None or name not in offered or (tool.writes and context.off_record):
        return None
    return tool


async def _outcome(tool: AdvisorTool, call: ToolCall, context: ToolContext) -> Outcome:
    try:
        arguments = tool.arguments.model_validate_json(_arguments(call.arguments))
    except ValidationError as error:
        return _error("invalid_arguments", _problems(error))
    running = asyncio.ensure_future(tool.run(context, arguments))
    try:
        # Not a timeout around it: a tool that does not heed being cancelled must not hold up the turn.
        await asyncio.wait({running}, timeout=settings.TURN_DEADLINES["tool"])
        return await _read(running) if running.done() else _error("timed_out", LATE)
    finally:
        if not running.done():
            running.cancel()
            running.add_done_callback(_hear)


async def _read(running: asyncio.Future[str]) -> Outcome:
    try:
        return Outcome(fitted(str(await running), settings.TOOL_RESULT_CHARACTERS))
    except ToolError as error:
        return _error(error.code, error.message)
    except CannotOpen as error:
        logger.error("a tool could not open what it needs: %s", type(error).__name__)
        return _error("locked", LOCKED)
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) is not None and task.cancelling():
            raise
        return _error("failed", FAILED)
    except Exception as error:
        # The type alone: an exception's text may quote what a person wrote.
        logger.error("a tool failed: %s", type(error).__name__)
        return _error("failed", FAILED)


def _hear(running: asyncio.Future[str]) -> None:
    """Nobody waits for it any more; without this its exception would be reported as forgotten."""
    if not running.cancelled() and (error := running.exception()) is not None:
        logger.warning("a tool that was given up failed: %s", type(error).__name__)


def refused() -> Outcome:
    """For a call made after the last round."""
    return _error("no_more_rounds", OVER)


def _error(code: str, message: str) -> Outcome:
    return Outcome(fitted(f"{code}: {message}", settings.TOOL_ERROR_CHARACTERS), error=True)


def _arguments(text: str) -> str:
    """The arguments without what no text of ours may hold, such as NUL; what is no JSON as it is."""
    try:
        return json.dumps(_cleaned(json.loads(text)))
    except (ValueError, RecursionError):
        return text


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    if isinstance(value, dict):
        return {clean(name): _cleaned(each) for name, each in value.items()}
    return value


def _problems(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}" for each in found]
    return "; ".join(lines[:PROBLEMS_TOLD])


@cache
def _tools(paths: tuple[str, ...]) -> dict[str, AdvisorTool]:
    """By name, in order. ImportError names a path that is wrong, ValueError a name that two tools have."""
    found: dict[str, AdvisorTool] = {}
    for path in paths:
        tool: AdvisorTool = import_string(path)
        if tool.name in found:
            raise ValueError(f"two tools are called {tool.name!r}")
        found[tool.name] = tool
    return found


@cache
def _definition(tool: AdvisorTool) -> Tool:
    return Tool(tool.name, tool.description, schema_of(tool.arguments))


def schema_of(arguments: type[BaseModel]) -> str:
    """The JSON schema of a tool's arguments, the same bytes in every process."""
    return json.dumps(arguments.model_json_schema(), sort_keys=True, separators=(",", ":"))
