"""Numbers for keys: the same for equal keys, and for no others, also where hashes collide."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.commit.merge import numbered_rows
from app.kernel.commit.merge.numbered_rows import key_numbers


def rows(keys: list[str]) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.string())})


def check_key_numbers(keys: list[str]) -> None:
    numbers = key_numbers(["k"], rows(keys)).tolist()
    assert len({(key, number) for key, number in zip(keys, numbers, strict=True)}) == len(set(keys))
    assert sorted(set(numbers)) == list(range(len(set(keys))))


@given(st.lists(st.text(max_size=3), max_size=30))
def test_equal_keys_have_one_number(keys: list[str]) -> None:
    check_key_numbers(keys)


@given(st.lists(st.sampled_from("abcdef"), max_size=30), st.integers(1, 3))
def test_keys_with_equal_hashes_are_distinguished(keys: list[str], hashes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            numbered_rows,
            "hash_keys",
            lambda values: np.array([sum(value.as_py()) % hashes for value in values], dtype=np.uint64),
        )
        check_key_numbers(keys)
