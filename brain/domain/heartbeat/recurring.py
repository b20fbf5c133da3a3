"""What a Stripe subscription brings in a month (MRR), from the plain data of Stripe's API.

Counted: prices per unit and tiered (graduated, volume), quantities, packages, items of one subscription,
discounts in percent and amount that last (`forever`, `repeating` until their end, restricted to products or not),
prices with an amount in several currencies. A month is a twelfth of a year of 52 weeks or 365 days.

Not counted: metered usage (it is known only afterwards), one-time discounts (they change one invoice), discounts
that hang on the customer and not on the subscription, taxes, and trials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any, Final

Data = Mapping[str, Any]
Look = Callable[[str], Data]

PAYING: Final = frozenset({"active", "past_due"})
_PER_MONTH: Final[dict[str, Decimal]] = {
    "day": Decimal(365) / 12,
    "week": Decimal(52) / 12,
    "month": Decimal(1),
    "year": Decimal(1) / 12,
}
_ZERO: Final = Decimal(0)


class Unpriced(Exception):
    """The subscription has a price that says nothing about the month to come."""


@dataclass(frozen=True)
class Lookups:
    """Where the parts of a subscription come from that lists only name: a coupon, and a price with its tiers."""

    coupon: Look
    price: Look


@dataclass
class _Item:
    """An item's amount a month so far, in minor units; how often a month it is billed; of which product."""

    monthly: Decimal
    per_month: Decimal
    product: str
    discounts: tuple[Any, ...]


def is_paying(subscription: Data) -> bool:
    """Whether it counts as an active membership. Paused ones do not; those whose payment is late do."""
    return subscription["status"] in PAYING and not subscription.get("pause_collection")


def is_paused(subscription: Data) -> bool:
    """Whether nothing is collected for it for the time being."""
    paused = subscription["status"] in PAYING and bool(subscription.get("pause_collection"))
    return paused or subscription["status"] == "paused"


def monthly(subscription: Data, items: Iterable[Data], now: int, lookups: Lookups) -> Decimal:
    """Minor units a month of a paying subscription at the moment `now` (seconds since 1970), not rounded.

    Unpriced when an item is metered, or has no amount in the subscription's currency.
    """
    currency = str(subscription["currency"]).lower()
    priced = [_item(each, currency, lookups) for each in items]
    for item in priced:
        for discount in item.discounts:
            _reduce([item], discount, currency, now, lookups)
    for discount in subscription.get("discounts") or ():
        _reduce(priced, discount, currency, now, lookups)
    return sum((item.monthly for item in priced), _ZERO)


def whole(amount: Decimal) -> int:
    """A sum in whole minor units."""
    return int(amount.quantize(Decimal(1), ROUND_HALF_EVEN))


def _item(item: Data, currency: str, lookups: Lookups) -> _Item:
    price = item["price"]
    recurring = price.get("recurring") or {}
    if recurring.get("usage_type") == "metered" or recurring.get("interval") not in _PER_MONTH:
        raise Unpriced
    quantity = item.get("quantity")
    amount = _amount(price, Decimal(1 if quantity is None else quantity), currency, lookups)
    per_month = _PER_MONTH[recurring["interval"]] / int(recurring.get("interval_count") or 1)
    product = price.get("product")
    named = product.get("id", "") if isinstance(product, Mapping) else str(product or "")
    return _Item(amount * per_month, per_month, named, tuple(item.get("discounts") or ()))


def _amount(price: Data, quantity: Decimal, currency: str, lookups: Lookups) -> Decimal:
    """Minor units of one billing period."""
    other = str(price["currency"]).lower() != currency
    if other or price.get("billing_scheme") == "tiered":
        price = lookups.price(str(price["id"]))
    terms: Data = price
    if other:
        terms = (price.get("currency_options") or {}).get(currency) or {}
    if price.get("billing_scheme") == "tiered":
        return _tiered(terms.get("tiers") or (), quantity, str(price.get("tiers_mode")))
    unit = terms.get("unit_amount_decimal")
    if unit is None:
        unit = terms.get("unit_amount")
    if unit is None:
        raise Unpriced
    return Decimal(str(unit)) * _packages(quantity, price.get("transform_quantity"))


def _packages(quantity: Decimal, transform: Data | None) -> Decimal:
    if not transform:
        return quantity
    rounding = ROUND_CEILING if transform.get("round") == "up" else ROUND_FLOOR
    return (quantity / int(transform["divide_by"])).to_integral_value(rounding)


def _tiered(tiers: Iterable[Data], quantity: Decimal, mode: str) -> Decimal:
    """`volume`: all units at the price of the tier they reach; `graduated`: each tier's units at its price."""
    total, below, reached = _ZERO, _ZERO, False
    for tier in tiers:
        reached = True
        up_to = tier.get("up_to")
        top = None if up_to in (None, "inf") else Decimal(str(up_to))
        last = top is None or quantity <= top
        if mode == "volume" and last:
            return _tier(tier, quantity)
        if mode != "volume":
            total += _tier(tier, (quantity if top is None or last else top) - below)
            if last:
                return total
            below = top if top is not None else below
    if not reached or mode == "volume":
        raise Unpriced
    return total


def _tier(tier: Data, units: Decimal) -> Decimal:
    unit = (
        tier.get("unit_amount_decimal")
        if tier.get("unit_amount_decimal") is not None
        else tier.get("unit_amount")
    )
    flat = (
        tier.get("flat_amount_decimal")
        if tier.get("flat_amount_decimal") is not None
        else tier.get("flat_amount")
    )
    return Decimal(str(unit or 0)) * units + Decimal(str(flat or 0))


def _reduce(items: list[_Item], discount: Any, currency: str, now: int, lookups: Lookups) -> None:
    """Take a discount off the items it is for, in place."""
    if not isinstance(discount, Mapping):
        raise Unpriced  # its id alone: we did not get to see it
    coupon = _coupon(discount, lookups)
    end = discount.get("end")
    if coupon.get("duration") == "once" or (end is not None and int(end) <= now):
        return
    products = (coupon.get("applies_to") or {}).get("products")
    meant = [item for item in items if not products or item.product in products]
    if coupon.get("percent_off") is not None:
        left = 1 - Decimal(str(coupon["percent_off"])) / 100
        for item in meant:
            item.monthly = max(item.monthly * left, _ZERO)
        return
    _take(meant, _amount_off(coupon, currency))


def _coupon(discount: Data, lookups: Lookups) -> Data:
    found = (discount.get("source") or {}).get("coupon") or discount.get("coupon")
    if isinstance(found, Mapping):
        return found
    if not found:
        raise Unpriced
    return lookups.coupon(str(found))


def _amount_off(coupon: Data, currency: str) -> Decimal:
    """Minor units off each invoice; nothing when the coupon has no amount in that currency."""
    if str(coupon.get("currency") or "").lower() == currency:
        return Decimal(coupon.get("amount_off") or 0)
    option = (coupon.get("currency_options") or {}).get(currency) or {}
    return Decimal(option.get("amount_off") or 0)


def _take(items: list[_Item], off: Decimal) -> None:
    """An amount off every invoice, as often a month as the items are billed, shared by what each item brings."""
    total = sum((item.monthly for item in items), _ZERO)
    if not total:
        return
    monthly_off = min(off * max(item.per_month for item in items), total)
    for item in items:
        item.monthly -= monthly_off * item.monthly / total
