"""The external memory, by its maker's own client. The only place that talks to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings


class Refused(Exception):
    """The memory did not take it. `code` is from our own words; `lasting`: asking again changes nothing."""

    def __init__(self, code: str, *, lasting: bool = False) -> None:
        super().__init__(code)
        self.code, self.lasting = code, lasting


@dataclass(frozen=True)
class Document:
    """What is to stand there under an id."""

    id: str
    content: str
    date: str
    metadata: Mapping[str, str | Sequence[str]]


def put(namespace: str, document: Document) -> None:
    """Write the document, over what stood there. Raises Refused. Blocks: not inside a transaction."""
    _asked(
        lambda client: client.add(
            namespace,
            id=document.id,
            content=document.content,
            date=document.date,
            metadata=dict(document.metadata),
        )
    )


def delete(namespace: str, document: str) -> None:
    """Delete a document, or with "" all that stands in the namespace; what is not there is gone. Raises Refused."""

    def ask(client: Any) -> object:
        if document:
            return client.documents.delete(namespace, ids=[document])
        return client.namespaces.delete(namespace)

    try:
        _asked(ask)
    except Refused as refused:
        if refused.code != "http 404":
            raise


def _asked(ask: Any) -> None:
    import supermemory

    try:
        ask(_client(settings.SUPERMEMORY_API_KEY, settings.SUPERMEMORY_BASE_URL))
    except supermemory.APIStatusError as error:
        status = error.status_code
        raise Refused(
            f"http {status}", lasting=400 <= status < 500 and status not in (408, 409, 429)
        ) from None
    except supermemory.APITimeoutError:
        raise Refused("timed out") from None
    except supermemory.SupermemoryError:
        raise Refused("no connection") from None


@cache
def _client(key: str, address: str) -> Any:
    import supermemory  # slow to load, and most installations never need it

    return supermemory.Supermemory(
        api_key=key,
        base_url=address or None,
        max_retries=0,
        timeout=float(settings.SUPERMEMORY_SECONDS),
    )
