"""Stripe, through its own SDK: subscriptions as they stand, and what happened to them, from its events.

Stripe keeps no history of subscriptions one could list by day; it keeps events for 30 days. So what stands (active
members, MRR, trials) is read once, and what happened (new, churned, failed payments) for each missed day of the
last 30. Lists are paged through and never held: memory does not grow with their length.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from typing import Any, Final

import stripe
from django.conf import settings

from brain.domain.heartbeat import recurring
from brain.domain.heartbeat.recurring import Data, Lookups, Unpriced
from brain.heartbeat.sources.base import Failed, Fetched, Tally, Window

DAYS_OF_EVENTS: Final = 30
FLOWS: Final = ("new", "churned", "failed_payments", "trials_ended", "trials_converted")
_EXPANDED: Final = ["data.discounts", "data.items.data.discounts"]  # four levels are the most there are
_DUNNING: Final = 45 * 86_400  # seconds after a trial in which its first payment may be tried again
_KEPT: Final = 2_000  # coupons or prices remembered at once


class Stripe:
    """An account, read with a restricted key."""

    days_back = DAYS_OF_EVENTS

    def __init__(self, credentials: Mapping[str, Any]) -> None:
        seconds = settings.HEARTBEAT_REQUEST_SECONDS
        self._client = stripe.StripeClient(
            credentials["key"],
            http_client=stripe.RequestsClient(timeout=(seconds, seconds)),
            base_addresses={"api": settings.STRIPE_API_BASE} if settings.STRIPE_API_BASE else {},
            max_network_retries=2,  # with the SDK's own waiting; it heeds Stripe's word on what to repeat
        )
        self._until = time.monotonic() + settings.HEARTBEAT_SOURCE_SECONDS

    def check(self) -> None:
        """One of each list we read: a key that lacks a right shows here and not tomorrow night."""
        with _translated():
            self._client.v1.subscriptions.list({"limit": 1})
            self._client.v1.events.list({"limit": 1})

    def fetch(self, window: Window) -> Fetched:
        """See the module."""
        tally = Tally(window, FLOWS)
        with _translated():
            stocks, mrr = self._standing(tally)
            self._happened(tally)
        return tally.fetched(stocks, mrr)

    # --- what stands -------------------------------------------------------------------------------------

    def _standing(self, tally: Tally) -> tuple[dict[str, int], dict[str, int]]:
        stocks: Counter[str] = Counter(active_members=0, trials=0, paused=0, unpriced=0)
        sums: dict[str, Decimal] = {}
        lookups = Lookups(_Remembered(self._coupon), _Remembered(self._price))
        for subscription in self._all(self._client.v1.subscriptions, {"expand": _EXPANDED}):
            self._began(subscription, tally)
            stocks["trials"] += subscription["status"] == "trialing"
            stocks["paused"] += recurring.is_paused(subscription)
            if not recurring.is_paying(subscription):
                continue
            stocks["active_members"] += 1
            currency = str(subscription["currency"]).upper()
            now = int(tally.window.now.timestamp())
            try:
                amount = recurring.monthly(subscription, self._items(subscription), now, lookups)
            except Unpriced:
                stocks["unpriced"] += 1
            else:
                sums[currency] = sums.get(currency, Decimal(0)) + amount
        return dict(stocks), {currency: recurring.whole(amount) for currency, amount in sums.items()}

    def _began(self, subscription: Data, tally: Tally) -> None:
        """A member is new on the day they began to pay: when the trial was over, if there was one."""
        trial = subscription.get("trial_end")
        paying = subscription["status"] in recurring.PAYING
        if trial is not None and subscription["status"] != "trialing":
            ended = tally.window.day_of(trial)
            tally.add("trials_ended", ended)
            if subscription["status"] == "active":
                tally.add("trials_converted", ended)
        if subscription["status"] == "active" or (paying and trial is None):
            start = subscription.get("start_date") or subscription.get("created")
            tally.add("new", tally.window.day_of(max(trial or 0, start or 0)))

    def _items(self, subscription: Data) -> Iterator[Data]:
        items = subscription["items"]
        if not items.get("has_more"):
            return iter(items["data"])
        asked = {"subscription": subscription["id"], "expand": ["data.discounts"]}
        return self._all(self._client.v1.subscription_items, asked)

    def _coupon(self, name: str) -> Data:
        found = self._client.v1.coupons.retrieve(name, {"expand": ["applies_to", "currency_options"]})
        return found.to_dict()

    def _price(self, name: str) -> Data:
        asked: Any = {"expand": ["tiers", "currency_options", "currency_options.tiers"]}
        try:
            return self._client.v1.prices.retrieve(name, asked).to_dict()
        except stripe.InvalidRequestError:  # deep expansions are not to be had for every price
            return self._client.v1.prices.retrieve(name, {"expand": ["tiers", "currency_options"]}).to_dict()

    # --- what happened -----------------------------------------------------------------------------------

    def _happened(self, tally: Tally) -> None:
        window = tally.window
        created = {"gte": int(window.began.timestamp()), "lt": int(window.ended.timestamp())}
        for event in self._all(
            self._client.v1.events, {"type": "customer.subscription.deleted", "created": created}
        ):
            self._left(event["data"]["object"], window.day_of(event["created"]), tally)
        invoices: dict[str, None] = {}  # a failed payment is tried again for days: once a day is enough
        for event in self._all(
            self._client.v1.events, {"type": "invoice.payment_failed", "created": created}
        ):
            day = window.day_of(event["created"])
            name = f"{event['data']['object'].get('id')} {day}"
            if name not in invoices:
                tally.add("failed_payments", day)
                _remember(invoices, name, None)

    def _left(self, subscription: Data, day: date | None, tally: Tally) -> None:
        """Somebody who left in or right after the trial without having paid has not churned."""
        trial = subscription.get("trial_end")
        if trial is None:
            tally.add("churned", day)
            return
        ended = subscription.get("ended_at") or subscription.get("canceled_at") or 0
        why = (subscription.get("cancellation_details") or {}).get("reason")
        paid = ended > trial and not (why == "payment_failed" and ended - trial < _DUNNING)
        # The list of what stands does not have it any more, so its trial is counted here.
        over = tally.window.day_of(min(trial, ended or trial))
        tally.add("trials_ended", over)
        if paid:
            tally.add("trials_converted", over)
            tally.add("churned", day)

    # --- pages -------------------------------------------------------------------------------------------

    def _all(self, service: Any, asked: dict[str, Any]) -> Iterator[Data]:
        """Every entry of a list, page by page, as plain data."""
        for entry in service.list({"limit": 100, **asked}).auto_paging_iter():
            if time.monotonic() > self._until:
                raise Failed("too_slow", "Stripe took too long to give all subscriptions.")
            yield entry.to_dict()


class _Remembered:
    """Looks a thing up once; forgets the oldest when there are too many."""

    def __init__(self, look: Any) -> None:
        self._look = look
        self._known: dict[str, Data] = {}

    def __call__(self, name: str) -> Data:
        if name not in self._known:
            _remember(self._known, name, self._look(name))
        return self._known[name]


def _remember(known: dict[str, Any], name: str, value: Any) -> None:
    if len(known) >= _KEPT:
        known.pop(next(iter(known)))
    known[name] = value


@contextmanager
def _translated() -> Iterator[None]:
    """What the SDK raises as a Failed that says what to do. Its own messages can quote the key; ours do not."""
    try:
        yield
    except stripe.AuthenticationError:
        raise Failed(
            "bad_key", "Stripe does not know this key. Make a new one and connect again.", again=False
        ) from None
    except stripe.PermissionError:
        raise Failed(
            "no_right",
            "The key may not read everything that is needed: give it read access to subscriptions, prices,"
            " coupons, invoices and events.",
            again=False,
        ) from None
    except stripe.RateLimitError:
        raise Failed("rate_limited", "Stripe is getting too many requests just now.") from None
    except stripe.APIConnectionError:
        raise Failed("unreachable", "Stripe could not be reached.") from None
    except stripe.InvalidRequestError:
        raise Failed("refused", "Stripe refused the request.", again=False) from None
    except stripe.StripeError:
        raise Failed("broken", "Stripe has a problem of its own.") from None
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError):
        raise Failed("unreadable", "Stripe's answer was not what its description says.") from None
