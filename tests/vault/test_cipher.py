"""What was sealed for one place opens there, unaltered, with its key, and nowhere else."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memberintel.vault.cipher import CannotOpen, Opener, Place, column_aad, new_key, open_, seal
from memberintel.vault.errors import Damaged, VaultError

KEY = bytes(range(32))
names = st.text(st.characters(codec="utf-8"), max_size=12)
places = st.builds(Place, st.uuids(), st.none() | st.uuids(), names, names, st.uuids())
HERE = Place(UUID(int=1), UUID(int=2), "sessions", "title", UUID(int=3))


@given(st.binary(max_size=300), places)
def test_what_was_sealed_opens_at_its_place(plain: bytes, place: Place) -> None:
    assert open_(KEY, seal(KEY, plain, place), place) == plain


@given(places, places)
def test_moved_to_any_other_place_it_does_not_open(place: Place, other: Place) -> None:
    sealed = seal(KEY, b"our plan", place)
    if place == other:
        assert open_(KEY, sealed, other) == b"our plan"
    else:
        assert place.aad() != other.aad()
        with pytest.raises(Damaged):
            open_(KEY, sealed, other)


@pytest.mark.parametrize(
    "other",
    [
        Place(UUID(int=9), HERE.customer, HERE.table, HERE.column, HERE.row),
        Place(HERE.tenant, UUID(int=9), HERE.table, HERE.column, HERE.row),
        Place(HERE.tenant, None, HERE.table, HERE.column, HERE.row),
        Place(HERE.tenant, HERE.customer, "wrap_ups", HERE.column, HERE.row),
        Place(HERE.tenant, HERE.customer, HERE.table, "summary", HERE.row),
        Place(HERE.tenant, HERE.customer, HERE.table, HERE.column, UUID(int=9)),
        # Names that read the same when run together.
        Place(HERE.tenant, HERE.customer, "session", "stitle", HERE.row),
        Place(HERE.tenant, HERE.customer, "sessionst", "itle", HERE.row),
    ],
)
def test_every_part_of_the_place_binds(other: Place) -> None:
    with pytest.raises(Damaged):
        open_(KEY, seal(KEY, b"x", HERE), other)


def test_no_customer_is_not_the_customer_with_id_zero() -> None:
    zero = Place(HERE.tenant, UUID(int=0), "t", "c", HERE.row)
    none = Place(HERE.tenant, None, "t", "c", HERE.row)
    assert zero.aad() != none.aad()


@given(st.data())
def test_any_flipped_bit_is_noticed(data: st.DataObject) -> None:
    sealed = bytearray(seal(KEY, data.draw(st.binary(max_size=60)), HERE))
    bit = data.draw(st.integers(0, len(sealed) * 8 - 1))
    sealed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(Damaged):
        open_(KEY, bytes(sealed), HERE)


@given(st.integers(0, 60))
def test_cut_anywhere_it_does_not_open(length: int) -> None:
    sealed = seal(KEY, bytes(40), HERE)
    with pytest.raises(Damaged):
        open_(KEY, sealed[:length], HERE)


def test_another_key_does_not_open_it() -> None:
    with pytest.raises(CannotOpen):
        open_(new_key(), seal(KEY, b"x", HERE), HERE)


def test_the_same_text_never_looks_the_same() -> None:
    assert len({seal(KEY, b"same", HERE) for _ in range(200)}) == 200


def test_one_opener_opens_a_column_of_rows() -> None:
    prefix = column_aad(HERE.tenant, HERE.customer, HERE.table, HERE.column)
    rows = [UUID(int=n) for n in range(50)]
    sealed = [
        seal(KEY, row.bytes, Place(HERE.tenant, HERE.customer, HERE.table, HERE.column, row)) for row in rows
    ]
    opener = Opener(KEY)
    opened = [opener.open(value, prefix + row.bytes) for row, value in zip(rows, sealed, strict=True)]
    assert opened == [row.bytes for row in rows]


def test_errors_are_of_one_family() -> None:
    assert issubclass(Damaged, CannotOpen)
    assert issubclass(CannotOpen, VaultError)
