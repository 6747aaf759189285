"""Frozen vectors: files on disk depend on which bucket a key hashes to, so these never change."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.format.dataset import BucketFunction
from app.kernel.format.rows.record_key import bucket_numbers, encode_keys

ROWS = pa.table(
    {
        "s": ["", "a", "ü", "c0ffee-key", "x" * 40],
        "i": pa.array([0, -1, 2**62, 7, 8], pa.int64()),
        "d": [
            dt.date(1970, 1, 1),
            dt.date(2013, 1, 1),
            dt.date(1, 1, 1),
            dt.date(9999, 12, 31),
            dt.date(2000, 2, 29),
        ],
        "b": [True, False, True, False, True],
        "m": pa.array(
            [Decimal(t) for t in ("0.00", "-1.50", "12345.67", "1.00", "99.99")], pa.decimal128(10, 2)
        ),
        "ts": pa.array([0, 1, -1, 1357016400000000, 5], pa.timestamp("us", tz="UTC")),
    }
)


@pytest.mark.parametrize(
    ("key", "buckets"),
    [
        ("s", [921, 955, 845, 743, 717]),
        ("i", [28, 128, 766, 455, 452]),
        ("d", [28, 256, 332, 484, 697]),
        ("b", [594, 818, 594, 818, 594]),
        ("m", [427, 234, 647, 229, 797]),
        ("ts", [28, 420, 128, 652, 157]),
        ("s i", [302, 942, 400, 202, 135]),
        ("i s d", [291, 638, 726, 648, 784]),
    ],
)
def test_bucket_numbers_equal_their_published_vectors(key: str, buckets: list[int]) -> None:
    assert bucket_numbers(ROWS, key.split(), 1000).tolist() == buckets


def test_keys_have_canonical_bytes() -> None:
    assert encode_keys(ROWS, ["s", "i"]).to_pylist()[:2] == [b"0:1:0", b"1:a2:-1"]
    assert encode_keys(ROWS, ["m"]).to_pylist()[1] == b"-1.50"


pairs = st.tuples(st.text(alphabet="a1:", max_size=4), st.text(alphabet="a1:", max_size=4))


@given(pairs, pairs)
def test_different_keys_have_different_bytes(one: tuple[str, str], other: tuple[str, str]) -> None:
    rows = pa.table({"x": [one[0], other[0]], "y": [one[1], other[1]]})
    first, second = encode_keys(rows, ["x", "y"]).to_pylist()
    assert (first == second) == (one == other)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint32()])
def test_mod_buckets_equal_their_published_vectors(kind: pa.DataType) -> None:
    numbers = [0, 1, 5, 127] + ([-1, -5, -128] if kind != pa.uint32() else [])
    rows = pa.table({"i": pa.array(numbers, kind)})
    found = bucket_numbers(rows, ["i"], 5, BucketFunction.MOD)
    assert found.tolist() == [0, 1, 0, 2, 4, 0, 2][: len(numbers)]
