"""Key indexes against the plain search through all rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.format.index import key_index
from app.kernel.format.index.key_index import BLOOM_BITS_PER_KEY, BloomFilter, KeyIndex

# Few different values, so that hashes repeat in the file and in what is requested; some at both ends of the range.
hash_lists = st.lists(st.integers(0, 4) | st.integers(2**64 - 3, 2**64 - 1) | st.integers(0, 2**64 - 1))


def hashes(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


@given(hash_lists, hash_lists)
def test_probe_finds_every_row_of_every_hash(stored: list[int], requested: list[int]) -> None:
    incoming, positions = KeyIndex.of_hashes(hashes(stored)).probe(hashes(requested))
    found = list(zip(incoming.tolist(), positions.tolist(), strict=True))
    assert sorted(found) == [
        (number, position)
        for number, wanted in enumerate(requested)
        for position, there in enumerate(stored)
        if wanted == there
    ]
    assert (incoming.dtype, positions.dtype) == (np.int64, np.int64)


def test_index_is_built_from_the_hashes_of_keys() -> None:
    keys = [f"key-{number}".encode() for number in range(3_000)]
    index = KeyIndex.build(pa.chunked_array([pa.array(keys, pa.large_binary())]))
    assert np.all(index.hashes[1:] >= index.hashes[:-1])
    assert (index.hashes.dtype, index.positions.dtype) == (np.uint64, np.uint32)
    assert index.hashes.tolist() == [xxhash.xxh64_intdigest(keys[position]) for position in index.positions]
    requested = hashes([xxhash.xxh64_intdigest(key) for key in (b"key-7", b"not there", b"key-2999")])
    incoming, positions = index.probe(requested)
    assert sorted(zip(incoming.tolist(), positions.tolist(), strict=True)) == [(0, 7), (2, 2999)]


def test_more_rows_than_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_index, "ROWS_MAX", 2)
    with pytest.raises(ValueError, match="at most 2 rows, not 3"):
        KeyIndex.of_hashes(hashes([1, 2, 3]))


@given(hash_lists, hash_lists)
def test_bloom_filter_has_no_false_negatives(stored: list[int], requested: list[int]) -> None:
    answers = BloomFilter.of_hashes(hashes(stored)).may_contain(hashes(requested))
    assert (answers.dtype, answers.shape) == (np.bool_, (len(requested),))
    assert all(answer for answer, wanted in zip(answers, requested, strict=True) if wanted in set(stored))


def test_empty_bloom_filter_contains_nothing() -> None:
    assert not BloomFilter.of_hashes(hashes([])).may_contain(hashes([0, 1, 2**64 - 1])).any()


@pytest.mark.parametrize("buckets", [1, 16, 1_000])
def test_bloom_filter_has_one_percent_false_positives(buckets: int) -> None:
    """Also among the keys of one bucket, whose hashes agree modulo the number of buckets."""
    random = np.random.default_rng(buckets)
    several = random.integers(0, 2**64 // buckets, 200_000, dtype=np.uint64) * np.uint64(buckets)
    stored, others = several[:100_000], several[100_000:]
    bloom = BloomFilter.of_hashes(stored)
    assert bloom.may_contain(stored).all()
    assert 0.008 < bloom.may_contain(others).mean() < 0.012
    assert bloom.words.nbytes * 8 == pytest.approx(len(stored) * BLOOM_BITS_PER_KEY, rel=0.01)


def test_bloom_filter_equals_its_specified_bytes() -> None:
    """Files hold filters, so which bits a hash sets never changes."""
    bloom = BloomFilter.of_hashes(hashes([0x0123456789ABCDEF, 0xFEDCBA9876543210]))
    assert bloom.words.tobytes().hex() == "1000040010000800000001400000900010200000000401000010008000000009"
