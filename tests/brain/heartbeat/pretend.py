"""Servers on this machine that answer as Stripe and MemberPress do: their paths, lists, pages and errors."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

KEY = "rk_test_pretended"

type Reply = tuple[int, Any, dict[str, str]]


@dataclass
class Pretended:
    """What the server has, what it was asked, and the answers it gives first, whatever it is asked."""

    url: str = ""
    lists: dict[str, Sequence[dict[str, Any]]] = field(default_factory=dict)
    things: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    first: list[Reply] = field(default_factory=list)
    key: str = KEY


type Answer = Callable[[Pretended, str, dict[str, list[str]], dict[str, str]], Reply]


@contextmanager
def serving(answer: Answer) -> Iterator[Pretended]:
    """The server, until the block is left."""
    state = Pretended()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            state.asked.append(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, told, more = (
                state.first.pop(0)
                if state.first
                else answer(state, parts.path, parse_qs(parts.query), headers)
            )
            body = told if isinstance(told, bytes) else json.dumps(told).encode()
            self.send_response(status)
            for name, value in {
                "Content-Type": "application/json",
                "Content-Length": str(len(body)),
                **more,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def stripe(state: Pretended, path: str, query: dict[str, list[str]], headers: dict[str, str]) -> Reply:
    """As api.stripe.com."""
    if headers.get("authorization") != f"Bearer {state.key}":
        return 401, {"error": {"type": "invalid_request_error", "message": f"Invalid API Key: {KEY}"}}, {}
    what = path.removeprefix("/v1/")
    if what in state.things:
        return 200, state.things[what], {}
    if what not in state.lists:
        return 404, {"error": {"type": "invalid_request_error", "message": "No such thing"}}, {}
    rows = state.lists[what]
    if "type" in query:
        rows = [row for row in rows if row["type"] == query["type"][0]]
    if "created[gte]" in query:
        low, high = int(query["created[gte]"][0]), int(query["created[lt]"][0])
        rows = [row for row in rows if low <= row["created"] < high]
    start = 0
    if "starting_after" in query:
        start = next(n for n, row in enumerate(rows) if row["id"] == query["starting_after"][0]) + 1
    page = rows[start : start + int(query.get("limit", ["10"])[0])]
    more = start + len(page) < len(rows)
    return 200, {"object": "list", "url": path, "has_more": more, "data": list(page)}, {}


def memberpress(state: Pretended, path: str, query: dict[str, list[str]], headers: dict[str, str]) -> Reply:
    """As a WordPress site with MemberPress."""
    if not path.startswith("/wp-json/mp/v1/"):
        return 404, b"<html>nothing here</html>", {"Content-Type": "text/html"}
    if headers.get("memberpress-api-key") != state.key:
        return 401, {"code": "rest_forbidden", "message": "Sorry, you are not allowed to do that."}, {}
    what = path.removeprefix("/wp-json/mp/v1/")
    if what == "me":
        return 200, {"success": True, "data": {"username": "admin"}}, {}
    rows = state.lists.get(what, [])
    page, size = int(query["page"][0]), int(query["per_page"][0])
    return 200, list(rows[(page - 1) * size : page * size]), {"X-WP-Total": str(len(rows))}


# --- the things themselves -------------------------------------------------------------------------------


def price(amount: int | None, interval: str = "month", count: int = 1, **more: Any) -> dict[str, Any]:
    """A recurring price of Stripe's."""
    return {
        "id": "price_1",
        "object": "price",
        "billing_scheme": "per_unit",
        "currency": "usd",
        "product": "prod_1",
        "recurring": {"interval": interval, "interval_count": count, "usage_type": "licensed"},
        "transform_quantity": None,
        "type": "recurring",
        "unit_amount": amount,
        "unit_amount_decimal": None if amount is None else str(amount),
        **more,
    }


def item(of: dict[str, Any], quantity: int | None = 1, **more: Any) -> dict[str, Any]:
    """An item of a subscription."""
    told = {"id": "si_1", "object": "subscription_item", "price": of, "discounts": [], **more}
    return told | ({} if quantity is None else {"quantity": quantity})


def discount(coupon: Any, end: int | None = None) -> dict[str, Any]:
    """A discount, with its coupon's id or the coupon."""
    source = {"type": "coupon", "coupon": coupon}
    return {"id": "di_1", "object": "discount", "start": 1, "end": end, "source": source}


def coupon(**more: Any) -> dict[str, Any]:
    """A coupon."""
    told = {"id": "co_1", "object": "coupon", "duration": "forever", "percent_off": None, "amount_off": None}
    return {**told, "currency": None, **more}


def subscription(*items: dict[str, Any], status: str = "active", **more: Any) -> dict[str, Any]:
    """A subscription."""
    return {
        "id": "sub_1",
        "object": "subscription",
        "status": status,
        "currency": "usd",
        "created": 1_700_000_000,
        "start_date": 1_700_000_000,
        "trial_end": None,
        "ended_at": None,
        "canceled_at": None,
        "cancellation_details": {"reason": None},
        "pause_collection": None,
        "discounts": [],
        "items": {"object": "list", "has_more": False, "url": "/v1/subscription_items", "data": list(items)},
        **more,
    }


def event(name: str, kind: str, created: int, about: dict[str, Any]) -> dict[str, Any]:
    """An event."""
    return {"id": name, "object": "event", "type": kind, "created": created, "data": {"object": about}}
