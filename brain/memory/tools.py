"""The advisor's tool to look into MEMORY."""

from __future__ import annotations

import json

from pydantic import BaseModel, Field

from brain import embedding
from brain.domain.memory import MOST_RECALLED, nearest
from brain.domain.tools import AdvisorTool, ToolContext
from brain.memory import queries
from memberintel.tenancy.context import Scope
from memberintel.tenancy.unit import unit


class SearchMemory(BaseModel):
    """What to look for."""

    query: str = Field(min_length=1, max_length=500, description="What you want to know, in a sentence.")


async def search(context: ToolContext, given: SearchMemory) -> str:
    """The entries nearest to the query as JSON: id, text, why and when each was kept, how near it is."""
    who = Scope(context.tenant_id, context.customer_id)
    known = await unit(who, queries.known)
    vector = await embedding.vector(given.query, who) if known.things else None
    found = nearest(given.query, vector, known.things, embedding.nearness(), most=MOST_RECALLED)
    told = [
        {
            "id": str(near.key.id),
            "text": near.key.text,
            "reason": near.key.reason,
            "kept_on": near.key.updated_at.date().isoformat(),
            "nearness": near.words,
        }
        for near in found
    ]
    answer: dict[str, object] = {"found": told, "kept_in_all": len(known.things) + known.damaged}
    if known.damaged:
        answer["cannot_be_opened"] = known.damaged
    return json.dumps(answer, ensure_ascii=False)


search_memory = AdvisorTool(
    name="search_memory",
    description="Look into MEMORY, the single insights kept about the owner, for what is near a question. Use it when "
    "the owner refers to something that is not in front of you, and before you keep something new.",
    arguments=SearchMemory,
    run=search,
)
