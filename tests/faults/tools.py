"""Tools that do as they are told: one takes its time, one fails at length."""

from __future__ import annotations

import asyncio

from pydantic import BaseModel, Field

from brain.domain.tools import AdvisorTool, ToolContext, ToolError


class Wait(BaseModel):
    """How long."""

    seconds: float = Field(ge=0, le=100)


async def _wait(context: ToolContext, given: Wait) -> str:
    await asyncio.sleep(given.seconds)
    return f"waited {given.seconds:g} seconds"


wait = AdvisorTool("wait", "Waits for a while.", Wait, _wait)


class Shout(BaseModel):
    """What, and how often."""

    text: str = Field(max_length=100)
    times: int = Field(ge=1, le=1_000_000)


async def _shout(context: ToolContext, given: Shout) -> str:
    raise ToolError("too_loud", given.text * given.times)


shout = AdvisorTool("shout", "Fails, with a long text.", Shout, _shout)
