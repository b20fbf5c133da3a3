"""Keyed hashes of terms: the same for one customer, different for two, and nothing like the term."""

from __future__ import annotations

import base64
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memberintel.tenancy.context import NoScope, Scope, scope
from memberintel.vault import blind, keyring
from memberintel.vault.blind import HASH_BYTES, Blinder
from tests.vault.conftest import new_scope

ONE, OTHER = Blinder(bytes(32)), Blinder(bytes(31) + b"\x01")


@given(st.text())
def test_a_term_has_one_hash_of_fixed_length(term: str) -> None:
    found = ONE.hash(term)
    assert found == ONE.hash(term)
    assert len(base64.b64decode(found, validate=True)) == HASH_BYTES


@given(st.text(min_size=1))
def test_equal_terms_of_two_customers_have_different_hashes(term: str) -> None:
    assert ONE.hash(term) != OTHER.hash(term)


@given(st.lists(st.text(), unique=True, max_size=20))
def test_different_terms_have_different_hashes(terms: list[str]) -> None:
    assert len(set(ONE.hashes(terms))) == len(terms)


def test_the_data_key_itself_hashes_nothing() -> None:
    key = os.urandom(32)
    assert key not in Blinder(key)._key
    assert repr(Blinder(key)) == "<blinder>"


def test_it_is_of_the_customer_in_scope(anna: Scope) -> None:
    mine = blind.blinder().hash("zebra")
    assert mine == Blinder(keyring.customer_key()).hash("zebra")
    with scope(new_scope(anna.tenant_id)):
        assert blind.blinder().hash("zebra") != mine


def test_without_a_customer_there_is_none() -> None:
    with scope(Scope(new_scope().tenant_id)), pytest.raises(NoScope):
        blind.blinder()
