"""Deletion vectors against plain sets, and the frozen form of their bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.format.index.deletion_vector import (
    POSITIONS_MAX,
    from_bytes,
    live_mask,
    positions_set,
    to_bytes,
    union,
)

positions = st.lists(st.integers(0, 300) | st.integers(65_400, 65_700) | st.integers(0, POSITIONS_MAX - 1))


def numbers(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@given(positions, positions)
def test_union_contains_the_positions_of_both(old: list[int], new: list[int]) -> None:
    existing = positions_set(numbers(old))
    both = union(existing, numbers(new))
    assert list(both) == sorted({*old, *new})
    assert list(existing) == sorted(set(old))
    assert union(None, numbers(new)) == positions_set(numbers(new))


@given(positions)
def test_bytes_round_trip_and_depend_only_on_the_set(values: list[int]) -> None:
    deleted = positions_set(numbers(values))
    grown = positions_set(numbers([]))
    for value in values:
        grown = union(grown, numbers([value]))
    assert from_bytes(to_bytes(deleted)) == deleted
    assert to_bytes(grown) == to_bytes(deleted)


@given(positions, st.integers(0, 66_000), st.integers(0, 500))
def test_mask_is_false_exactly_at_deleted_rows(values: list[int], first: int, rows: int) -> None:
    mask = live_mask(positions_set(numbers(values)), first, rows)
    assert (mask.dtype, mask.shape) == (np.bool_, (rows,))
    assert mask.tolist() == [row not in set(values) for row in range(first, first + rows)]


def test_mask_covers_the_last_rows_of_the_largest_file() -> None:
    first = POSITIONS_MAX - 3
    deleted = positions_set(numbers([POSITIONS_MAX - 1, 5]))
    assert live_mask(deleted, first, 3).tolist() == [True, True, False]


def test_bytes_have_the_portable_roaring_format() -> None:
    """As the Roaring specification lays them out, so that files can be read for ever, and elsewhere."""
    sparse = (
        "3a300000 02000000"  # cookie: no run containers; two containers
        "0000 0100 0100 0000"  # high halves 0 and 1, with 2 and 1 positions
        "18000000 1c000000"  # where the containers start
        "0100 0300"
        "0000"
    )
    assert to_bytes(positions_set(numbers([65_536, 3, 1]))) == bytes.fromhex(sparse)
    run = "3b300000 01 0000 6300 0100 0a00 6300"  # one run of 100 positions from 10
    assert to_bytes(positions_set(np.arange(10, 110))) == bytes.fromhex(run)


@pytest.mark.parametrize("wrong", [-1, POSITIONS_MAX])
def test_positions_out_of_range_are_refused(wrong: int) -> None:
    with pytest.raises(ValueError, match="expected 0 to 4294967295"):
        positions_set(numbers([1, wrong]))


@pytest.mark.parametrize("damage", [b"", b"x", to_bytes(positions_set(numbers([1, 2])))[:-1]])
def test_bytes_that_are_not_a_bitmap_are_refused(damage: bytes) -> None:
    with pytest.raises(ValueError, match=r"[Bb]itmap"):
        from_bytes(damage)


def test_bytes_after_a_bitmap_are_refused() -> None:
    with pytest.raises(ValueError, match="not a serialized Roaring bitmap"):
        from_bytes(to_bytes(positions_set(numbers([1, 2]))) + b"\0")
