"""No address without a rule."""

from __future__ import annotations

from tests.access.routes import OPEN, SIGNED_IN, routes


def test_every_address_declares_who_may_come() -> None:
    """A page by its decorators, the API by its scopes; what is open is listed in tests/access/routes.py."""
    assert [str(route) for route in routes() if not route.rules] == []


def test_nothing_is_listed_that_is_not_there() -> None:
    assert {*OPEN, *SIGNED_IN} <= {route.name for route in routes()}


def test_a_rule_about_a_customer_comes_after_who_it_is() -> None:
    for route in routes():
        if {"tier", "owner"} & set(route.rules):
            assert route.rules[0] == "customer", route.path
