"""What the queue and the clock ask of the brain."""

from __future__ import annotations

import asyncio
import logging

from celery import shared_task

from brain.memory import reembed
from brain.shared import vectors as shared
from memberintel.tenancy.context import Scope, current_scope
from memberintel.tenancy.tasks import SystemTask, TenantTask

logger = logging.getLogger(__name__)


@shared_task(base=TenantTask)  # type: ignore[untyped-decorator]
def embed_missing() -> None:
    """Give the customer's entries that have no vector one."""
    who = current_scope()
    try:
        asyncio.run(reembed.of_customer(who, reembed.missing(), "", reembed.Done()))
    except reembed.NoEmbedder:
        logger.warning("no embedder answers yet; the clock tries again")


@shared_task(base=SystemTask)  # type: ignore[untyped-decorator]
def embed_all_missing() -> None:
    """Give every entry that has no vector one, whoever's it is."""
    try:
        reembed.run("")
    except reembed.NoEmbedder:
        logger.warning("no embedder answers yet; the clock tries again")


@shared_task(base=SystemTask)  # type: ignore[untyped-decorator]
def embed_knowledge() -> None:
    """Give published articles that have no vector one."""
    try:
        shared.run("")
    except reembed.NoEmbedder:
        logger.warning("no embedder answers yet; the clock tries again")


def embed_knowledge_soon() -> None:
    """Have published articles embedded. Never raises: the clock finds them too."""
    try:
        embed_knowledge.apply_async(retry=False)
    except Exception as error:
        logger.warning("the queue takes nothing (%s): articles wait for the clock", type(error).__name__)


def embed_later(who: Scope) -> None:
    """Have the customer's entries without a vector embedded soon. Never raises: the clock finds them too."""
    try:
        embed_missing.apply_async(
            (), {"tenant": str(who.tenant_id), "customer": str(who.customer_id)}, countdown=60, retry=False
        )
    except Exception as error:
        logger.warning("the queue takes nothing (%s): entries wait for the clock", type(error).__name__)
