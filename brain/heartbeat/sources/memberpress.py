"""MemberPress, through the REST API of its Developer Tools (`/wp-json/mp/v1/`).

What its API does not say is not made up: there is no list of what happened, so those who left are the members
without an active membership whose last transaction ran out on the day, and the currency is the one the owner names.
Lists are read page by page and never held.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from django.conf import settings

from brain.domain.heartbeat.metrics import digits
from brain.heartbeat.sources.base import Failed, Fetched, Tally, Window
from memberintel.lib import outbound
from memberintel.lib.outbound import Answer, Limits, Unreachable

FLOWS: Final = ("new", "churned", "failed_payments")
PAGE: Final = 100
MOST_PAGES: Final = 5_000
_MONTHS: Final = {
    "months": Decimal(1),
    "years": Decimal(12),
    "weeks": Decimal(12) / 52,
    "days": Decimal(12) / 365,
}
_TRIES: Final = 3

Data = Mapping[str, Any]


class MemberPress:
    """A WordPress site with MemberPress on it."""

    days_back = 30

    def __init__(self, credentials: Mapping[str, Any]) -> None:
        self._address = str(credentials["url"]).rstrip("/")
        self._key = str(credentials["key"])
        self._currency = str(credentials["currency"])
        self._limits = Limits(
            seconds=settings.HEARTBEAT_REQUEST_SECONDS, loopback=settings.HEARTBEAT_ALLOW_LOOPBACK
        )
        self._until = time.monotonic() + settings.HEARTBEAT_SOURCE_SECONDS

    def check(self) -> None:
        """Whether the key opens the API, and the address has one."""
        with _translated():
            told = self._get("me", {})
            if not isinstance(told, Mapping):
                raise Failed("no_api", _NO_API, again=False)
            self._get("members", {"page": 1, "per_page": 1})

    def fetch(self, window: Window) -> Fetched:
        """See the module."""
        tally = Tally(window, FLOWS)
        with _translated():
            stocks = {"active_members": self._members(tally)}
            trials, paused, mrr = self._subscriptions(tally)
            self._transactions(tally)
        stocks |= {"trials": trials, "paused": paused}
        return tally.fetched(stocks, {self._currency: mrr})

    # --- the three lists ---------------------------------------------------------------------------------

    def _members(self, tally: Tally) -> int:
        active = 0
        for member in self._all("members"):
            if member.get("active_memberships"):
                active += 1
                continue
            last = member.get("latest_txn")
            if isinstance(last, Mapping) and last.get("status") in {"complete", "confirmed"}:
                tally.add("churned", tally.window.day_of(_moment(last.get("expires_at"))))
        return active

    def _subscriptions(self, tally: Tally) -> tuple[int, int, int]:
        """Running trials, paused ones, and the MRR of the others in minor units."""
        trials, monthly = 0, Decimal(0)
        standing: Counter[str] = Counter()
        for subscription in self._all("subscriptions"):
            status = str(subscription.get("status"))
            standing[status] += 1
            began = _moment(subscription.get("created_at"))
            trial_days = int(subscription.get("trial_days") or 0) if _flag(subscription.get("trial")) else 0
            pays_from = None if began is None else began + trial_days * 86_400
            if status == "active" and pays_from is not None and pays_from > tally.window.now.timestamp():
                trials += 1
                continue
            if status in {"active", "cancelled", "suspended"}:
                tally.add("new", tally.window.day_of(pays_from))
            if status == "active":
                monthly += _monthly(subscription)
        minor = monthly.scaleb(digits(self._currency)).quantize(Decimal(1), ROUND_HALF_EVEN)
        return trials, standing["suspended"], int(minor)

    def _transactions(self, tally: Tally) -> None:
        """Failed payments. The list is left early once it proves to run from new to old, past the window."""
        before: float | None = None
        falling = True
        for transaction in self._all("transactions"):
            at = _moment(transaction.get("created_at"))
            if at is None:
                continue
            falling = falling and (before is None or at <= before)
            before = at
            if transaction.get("status") == "failed":
                tally.add("failed_payments", tally.window.day_of(at))
            if falling and at < (tally.window.began - timedelta(days=2)).timestamp():
                return

    # --- pages -------------------------------------------------------------------------------------------

    def _all(self, what: str) -> Iterator[Data]:
        for page in range(1, MOST_PAGES + 1):
            entries = self._get(what, {"page": page, "per_page": PAGE})
            if not isinstance(entries, list):
                raise Failed("unreadable", _UNREADABLE)
            yield from entries
            if len(entries) < PAGE:
                return
        raise Failed("too_long", f"There are more than {MOST_PAGES * PAGE:,} {what}.", again=False)

    def _get(self, what: str, asked: Mapping[str, int]) -> Any:
        query = f"?{urlencode(asked)}" if asked else ""
        url = f"{self._address}/wp-json/mp/v1/{what}{query}"
        for attempt in range(1, _TRIES + 1):
            if time.monotonic() > self._until:
                raise Failed("too_slow", "The site took too long to give all its members.")
            answer = outbound.get(url, {"MEMBERPRESS-API-KEY": self._key}, self._limits)
            if answer.status not in {429, 502, 503, 504} or attempt == _TRIES:
                break
            time.sleep(_wait(answer, attempt))
        return _read(answer)


_NO_API: Final = (
    "There is no MemberPress API at this address. Check the address, and that the Developer Tools of MemberPress are"
    " switched on."
)
_UNREADABLE: Final = "The site's answer was not what MemberPress describes."


def address(given: str) -> str:
    """The address of a site as it is kept; Unreachable with what is wrong with it. Nothing is asked for yet."""
    place = outbound.parse(
        given if "://" in given else f"https://{given}", loopback=settings.HEARTBEAT_ALLOW_LOOPBACK
    )
    path = urlsplit(place.path).path.partition("/wp-json")[0].rstrip("/")
    usual = 443 if place.scheme == "https" else 80
    port = "" if place.port == usual else f":{place.port}"
    return f"{place.scheme}://{place.host}{port}{path}"


def _wait(answer: Answer, attempt: int) -> float:
    asked = answer.headers.get("retry-after", "")
    given = float(asked) if asked.isdigit() else settings.HEARTBEAT_RETRY_SECONDS * 2 ** (attempt - 1)
    return min(given, 30.0)


def _read(answer: Answer) -> Any:
    match answer.status:
        case 200:
            return json.loads(answer.body)
        case 401 | 403:
            raise Failed("bad_key", "The site does not accept this key.", again=False)
        case 404:
            raise Failed("no_api", _NO_API, again=False)
        case 429:
            raise Failed("rate_limited", "The site is getting too many requests just now.")
        case _:
            raise Failed("broken", "The site has a problem of its own.")


def _monthly(subscription: Data) -> Decimal:
    """What it brings in a month, in the currency itself. A membership for life brings nothing a month."""
    months = _MONTHS.get(str(subscription.get("period_type")))
    period = int(subscription.get("period") or 0)
    if months is None or period <= 0:
        return Decimal(0)
    return Decimal(str(subscription.get("price") or 0)) / (months * period)


def _moment(text: Any) -> float | None:
    """Seconds since 1970 of a moment as MemberPress writes it, in UTC; None for "0000-00-00 00:00:00" and the like."""
    try:
        return datetime.strptime(str(text), "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _flag(value: Any) -> bool:
    return value not in (None, False, 0, "", "0")


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except Unreachable as error:
        again = error.code in {"timeout", "unreachable", "unknown_name"}
        raise Failed(error.code, str(error), again=again) from None
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError):
        raise Failed("unreadable", _UNREADABLE) from None
