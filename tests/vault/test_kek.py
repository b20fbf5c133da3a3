"""Key-encryption keys: bound to the owner, named without being told, and read with plain errors."""

from __future__ import annotations

import base64
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from memberintel.vault import kek
from memberintel.vault.cipher import new_key
from memberintel.vault.errors import CannotOpen, KekRefused, WrongKey
from memberintel.vault.kek import Keks, LocalKek
from memberintel.vault.owner import Owner

SECRET = bytes(range(32))
TENANT, CUSTOMER = UUID(int=1), UUID(int=2)
owners = st.one_of(
    st.builds(Owner, st.just("customer"), st.uuids(), st.uuids()),
    st.builds(Owner, st.sampled_from(["tenant", "system"]), st.uuids()),
)


@given(owners, owners)
def test_a_wrapped_key_unwraps_for_its_owner_only(owner: Owner, other: Owner) -> None:
    wrapper, key = LocalKek(SECRET), new_key()
    wrapped = wrapper.wrap(key, owner)
    assert wrapper.unwrap(wrapped, owner) == key
    if other != owner:
        with pytest.raises(WrongKey):
            wrapper.unwrap(wrapped, other)


def test_tenant_and_system_keys_of_one_tenant_are_apart() -> None:
    assert Owner("tenant", TENANT).aad() != Owner("system", TENANT).aad()
    assert Owner("tenant", TENANT).aad() != Owner("customer", TENANT, UUID(int=0)).aad()


def test_another_kek_does_not_unwrap() -> None:
    owner = Owner("customer", TENANT, CUSTOMER)
    wrapped = LocalKek(SECRET).wrap(new_key(), owner)
    with pytest.raises(WrongKey) as refused:
        LocalKek(new_key()).unwrap(wrapped, owner)
    assert isinstance(refused.value, CannotOpen)


def test_the_fingerprint_names_the_key_and_does_not_show_it() -> None:
    one = LocalKek(SECRET)
    assert one.fingerprint == LocalKek(SECRET).fingerprint
    assert one.fingerprint != LocalKek(new_key()).fingerprint
    assert len(one.fingerprint) == 32
    assert one.fingerprint not in SECRET.hex()
    assert SECRET.hex() not in repr(one)


def test_an_old_kek_is_found_by_its_fingerprint() -> None:
    current, old = LocalKek(new_key()), LocalKek(new_key())
    keks = Keks(current, (old,))
    assert keks.named(old.fingerprint) is old
    assert keks.named(current.fingerprint) is current
    with pytest.raises(WrongKey, match="not set"):
        keks.named("0" * 32)


def test_a_key_names_its_customer_or_none() -> None:
    with pytest.raises(ValueError, match="customer"):
        Owner("customer", TENANT)
    with pytest.raises(ValueError, match="customer"):
        Owner("tenant", TENANT, CUSTOMER)


@pytest.fixture
def unset(settings: Settings) -> Settings:
    settings.KEK = settings.KEK_FILE = settings.KEK_OLD = settings.KEK_OLD_FILE = ""
    return settings


def test_variables_and_files_name_the_same_key(unset: Settings, tmp_path: Path) -> None:
    text = base64.b64encode(SECRET).decode()
    unset.KEK = text
    by_variable = kek.configured().current.fingerprint
    file = tmp_path / "kek"
    file.write_text(text + "\n")
    unset.KEK, unset.KEK_FILE = "", str(file)
    assert kek.configured().current.fingerprint == by_variable == LocalKek(SECRET).fingerprint
    unset.KEK_OLD = base64.b64encode(new_key()).decode()
    assert len(kek.configured().fingerprints()) == 2


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({}, "No key-encryption key is set. Set MEMBERINTEL_KEK_FILE"),
        ({"KEK": "not base64!"}, "MEMBERINTEL_KEK is not base64"),
        ({"KEK": "c2hvcnQ="}, "MEMBERINTEL_KEK: a key-encryption key has 32 bytes, not 5"),
        ({"KEK_FILE": "/nowhere/kek"}, "MEMBERINTEL_KEK_FILE names /nowhere/kek, which cannot be read"),
        ({"KEK": "x", "KEK_FILE": "/nowhere/kek"}, "not both"),
        ({"KEK": "A" * 43 + "=", "KEK_OLD": "?"}, "MEMBERINTEL_KEK_OLD is not base64"),
    ],
)
def test_a_missing_or_malformed_kek_says_what_to_set(
    unset: Settings, values: dict[str, str], sentence: str
) -> None:
    for name, value in values.items():
        setattr(unset, name, value)
    with pytest.raises(KekRefused) as refused:
        kek.configured()
    assert sentence in str(refused.value)


def test_an_empty_file_is_named(unset: Settings, tmp_path: Path) -> None:
    (tmp_path / "kek").touch()
    unset.KEK_FILE = str(tmp_path / "kek")
    with pytest.raises(KekRefused, match="which is empty"):
        kek.configured()
