"""A destroyed key is gone for its owner, for good, and for nobody else."""

from __future__ import annotations

import threading

import pytest
from django.db import connections, transaction

from memberintel.tenancy.context import NoScope, Scope, scope
from memberintel.vault import keyring
from memberintel.vault.destroy import destroy_customer_key, destroy_tenant_keys
from memberintel.vault.errors import CannotOpen, KeyDestroyed
from memberintel.vault.models import DataKey
from tests.vault.conftest import new_scope, undone
from tests.vault.notes import Note
from tests.waiting import PATIENCE


def test_a_destroyed_key_is_never_made_anew(anna: Scope) -> None:
    keyring.customer_key()
    assert destroy_customer_key() is True
    for _ in range(2):
        with pytest.raises(KeyDestroyed):
            keyring.customer_key()
    row = DataKey.objects.get(kind="customer")
    assert row.wrapped is None
    assert row.kek_id is None
    assert row.destroyed_at is not None
    assert destroy_customer_key() is False


def test_a_customer_who_never_had_a_key_gets_none_afterwards(anna: Scope) -> None:
    assert destroy_customer_key() is False
    with pytest.raises(KeyDestroyed):
        keyring.customer_key()


def test_colleagues_and_the_tenant_keep_theirs(anna: Scope) -> None:
    colleague = new_scope(anna.tenant_id)
    with scope(colleague):
        theirs = keyring.customer_key()
    tenants = keyring.tenant_key()
    keyring.customer_key()
    destroy_customer_key()
    keyring.cache.clear()
    assert keyring.tenant_key() == tenants
    with scope(colleague):
        assert keyring.customer_key() == theirs


def test_destroying_a_tenants_keys_takes_every_customers(anna: Scope) -> None:
    colleague, stranger = new_scope(anna.tenant_id), new_scope()
    keyring.customer_key()
    keyring.tenant_key()
    with scope(colleague):
        keyring.customer_key()
    with scope(stranger):
        theirs = keyring.customer_key()
    with scope(Scope(anna.tenant_id)):
        assert destroy_tenant_keys() == 3
        with pytest.raises(KeyDestroyed):
            keyring.tenant_key()
    with scope(colleague), pytest.raises(KeyDestroyed):
        keyring.customer_key()
    with scope(new_scope(anna.tenant_id)), pytest.raises(KeyDestroyed):
        keyring.customer_key()
    keyring.cache.clear()
    with scope(stranger):
        assert keyring.customer_key() == theirs


def test_it_needs_the_scope_of_the_owner() -> None:
    with pytest.raises(NoScope):
        destroy_customer_key()
    with scope(Scope(new_scope().tenant_id)), pytest.raises(NoScope):
        destroy_customer_key()


def test_an_undone_destruction_leaves_the_key(anna: Scope) -> None:
    key = keyring.customer_key()
    with undone():
        destroy_customer_key()
    assert keyring.customer_key() == key


def test_a_key_being_made_at_the_same_moment_falls_too(anna: Scope) -> None:
    made, destroyed, done = threading.Event(), threading.Event(), list[bool]()

    def destroy() -> None:
        try:
            with scope(anna):
                made.wait(PATIENCE)
                destroyed.set()
                done.append(destroy_customer_key())
        finally:
            connections.close_all()

    other = threading.Thread(target=destroy)
    other.start()
    with transaction.atomic():
        keyring.customer_key()
        made.set()
        destroyed.wait(PATIENCE)
    other.join(PATIENCE)
    keyring.cache.clear()
    assert done == [True]
    with pytest.raises(KeyDestroyed):
        keyring.customer_key()


@pytest.mark.usefixtures("notes")
def test_what_it_sealed_cannot_be_opened_and_nothing_new_is_written(anna: Scope) -> None:
    note = Note.objects.create(body="the discount campaign")
    destroy_customer_key()
    with pytest.raises(CannotOpen):
        _ = Note.objects.get(id=note.id).body
    with pytest.raises(CannotOpen):
        Note.objects.create(body="another")
    assert Note.objects.count() == 1
