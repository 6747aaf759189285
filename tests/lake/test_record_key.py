"""Frozen vectors: files on disk depend on which bucket a key hashes to, so these never change."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.lake.partition import partition_codes, partition_path
from app.lake.record_key import bucket_numbers, encode_keys

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
def test_bucket_vectors(key: str, buckets: list[int]) -> None:
    assert bucket_numbers(ROWS, key.split(), 1000).tolist() == buckets


def test_canonical_bytes() -> None:
    assert encode_keys(ROWS, ["s", "i"]).to_pylist()[:2] == [b"0:1:0", b"1:a2:-1"]
    assert encode_keys(ROWS, ["m"]).to_pylist()[1] == b"-1.50"


pairs = st.tuples(st.text(alphabet="a1:", max_size=4), st.text(alphabet="a1:", max_size=4))


@given(pairs, pairs)
def test_different_keys_have_different_bytes(one: tuple[str, str], other: tuple[str, str]) -> None:
    rows = pa.table({"x": [one[0], other[0]], "y": [one[1], other[1]]})
    first, second = encode_keys(rows, ["x", "y"]).to_pylist()
    assert (first == second) == (one == other)


@pytest.mark.parametrize(
    ("values", "path"),
    [
        (["2013", "EWR"], "year=2013/origin=EWR"),
        (["..", "a/b"], "year=../origin=a%2Fb"),
        (["", "ü %"], "year=/origin=%C3%BC %25"),
    ],
)
def test_partition_paths_stay_below_their_folder(values: list[str], path: str) -> None:
    assert partition_path(["year", "origin"], values) == path


@given(st.lists(st.tuples(st.text(max_size=3), st.integers(0, 3)), min_size=1, max_size=20))
def test_rows_share_a_partition_exactly_if_their_values_are_equal(values: list[tuple[str, int]]) -> None:
    rows = pa.table({"x": [x for x, _ in values], "y": pa.array([y for _, y in values], pa.int64())})
    codes, paths = partition_codes(rows, ["x", "y"])
    assert [paths[code] for code in codes] == [partition_path(["x", "y"], [x, str(y)]) for x, y in values]
    assert len(set(paths)) == len(paths)


def test_long_values_make_short_and_distinct_segments() -> None:
    long, longer = partition_path(["p"], ["ü" * 300]), partition_path(["p"], ["ü" * 301])
    assert long != longer
    assert max(len(long), len(longer)) <= 200
