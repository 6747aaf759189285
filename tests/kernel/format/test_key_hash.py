"""The hash of keys is XXH64 as the library computes it, whichever way the keys are grouped."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.format.index import key_hash
from app.kernel.format.index.key_hash import hash_keys

LENGTHS_MAX = 200


def column(*chunks: list[bytes]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(chunk, pa.large_binary()) for chunk in chunks], pa.large_binary())


def expected(values: list[bytes]) -> list[int]:
    return [xxhash.xxh64_intdigest(value) for value in values]


@pytest.mark.parametrize("length", range(LENGTHS_MAX + 1))
def test_keys_of_one_length_have_the_hashes_of_the_library(length: int) -> None:
    """More keys than a vector needs, and a number that does not fill their last block."""
    source = random.Random(length)
    count = key_hash._VECTOR_KEYS_MIN + 7
    values = [source.randbytes(length) for _ in range(count)]
    found = hash_keys(column(values))
    assert (found.dtype, found.shape) == (np.uint64, (count,))
    assert found.tolist() == expected(values)


def test_keys_of_several_blocks_have_the_hashes_of_the_library() -> None:
    source = random.Random(0)
    values = [source.randbytes(36) for _ in range(2 * key_hash._BLOCK_KEYS + 1)]
    assert hash_keys(column(values)).tolist() == expected(values)


def test_hashes_equal_the_specified_vectors() -> None:
    values = [
        b"",
        b"a",
        b"abc",
        b"xxhash",
        b"Call me Ishmael. Some years ago--never mind how long precisely-",
    ]
    assert [f"{value:016x}" for value in hash_keys(column(values))] == [
        "ef46db3751d8e999",
        "d24ec4f1a98c6e5b",
        "44bc2cf5ad770999",
        "32dd38952c4bc720",
        "02a2e85470d6fd96",
    ]


keys = st.lists(st.binary(max_size=LENGTHS_MAX), max_size=60)


@given(keys, keys, st.integers(0, 30))
def test_keys_of_mixed_lengths_in_sliced_chunks_keep_their_order(
    first: list[bytes], second: list[bytes], cut: int
) -> None:
    """Each key is there often enough for some lengths to be hashed as vectors and others one by one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_hash, "_VECTOR_KEYS_MIN", 3)
        patch.setattr(key_hash, "_BLOCK_KEYS", 4)
        values = (first + second * 3)[cut:]
        assert hash_keys(column(first, second * 3).slice(cut)).tolist() == expected(values)


def test_empty_column_has_no_hashes() -> None:
    assert hash_keys(column()).tolist() == []
    assert hash_keys(column([])).dtype == np.uint64
