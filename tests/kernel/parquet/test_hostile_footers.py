"""Damaged footers: an error, or the footer of a file without the hidden column; in time and memory of their size."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from app.kernel.parquet import column_chunks
from app.kernel.parquet.compact import LIST, FooterTooLarge, InvalidFooter, ThriftField, struct_bytes
from app.kernel.parquet.exchange import exchange
from app.kernel.parquet.exchanged_footer import (
    FOOTER_BYTES_MAX,
    ExchangedFooter,
    exchanged_footer,
    footer_bytes,
)
from tests.kernel.parquet.samples import ALL, COLUMNS, SECRET, SEEN, rows, stored

DATA = stored(rows(100), row_group_size=40, write_page_index=True)
COUNT = footer_bytes(DATA[-8:], len(DATA))
FOOTER = DATA[-8 - COUNT : -8]


def result(footer: bytes, visible: frozenset[int]) -> ExchangedFooter | None:
    """The exchanged footer; None if it is refused. Any other exception is a fault of the code."""
    try:
        return exchanged_footer(footer, len(DATA) - COUNT + len(footer), exchange(COLUMNS, visible, None))
    except InvalidFooter:
        return None


def test_sample_is_accepted():
    assert result(FOOTER, ALL)
    assert result(FOOTER, SEEN)


def test_footer_that_ends_early_is_refused():
    for length in range(0, COUNT, 3):
        assert result(FOOTER[:length], SEEN) is None, length


@pytest.mark.parametrize("visible", [ALL, SEEN], ids=["all", "seen"])
def test_random_damage_gives_an_error_or_a_footer(visible):
    draw = random.Random(35)
    refusals = 0
    for _ in range(1_500):
        damage = bytearray(FOOTER)
        for _ in range(draw.choice([1, 1, 1, 5, 50])):
            damage[draw.randrange(COUNT)] = draw.randrange(256)
        answer = result(bytes(damage), visible)
        refusals += answer is None
        if answer is not None:
            check_ranges(answer, len(DATA))
    assert 0 < refusals < 1_500


def check_ranges(footer: ExchangedFooter, stored_size: int) -> None:
    ends = [0, *(place for each in footer.ranges for place in each)]
    assert ends == sorted(ends)
    assert ends[-1] <= stored_size - 8 - COUNT
    assert ends[-1] + len(footer.tail) <= footer.size_bytes


NESTED = 100_000
HOSTILE = {
    "nested structs": b"\x1c" * NESTED,
    "nested lists": b"\x19" + b"\x19" * NESTED,
    "nested maps": b"\x1b" + b"\x01\xbb" * NESTED,
    "long list": b"\x19\xfc\xff\xff\xff\xff\x0f",
    "long binary": b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    "long number": b"\x15" + b"\xff" * NESTED,
    "long map": b"\x1b\xff\xff\xff\xff\x0f\x88",
    "nothing": b"",
    "zeros": bytes(1_000),
    "unknown type": b"\x1f",
    "schema of no elements": struct_bytes([ThriftField(1, 5, b"\x02"), ThriftField(2, LIST, b"\x0c")]),
    "schema of texts": struct_bytes([ThriftField(1, 5, b"\x02"), ThriftField(2, LIST, b"\x18\x01a")]),
    "schema of many children": struct_bytes([
        ThriftField(1, 5, b"\x02"),
        ThriftField(2, LIST, b"\x1c" + b"\x48\x01a\x15\xfe\xff\x03\x00"),
    ]),
    "schema of deep groups": struct_bytes([
        ThriftField(1, 5, b"\x02"),
        ThriftField(2, LIST, b"\xfc\xa0\x8d\x06" + (b"\x48\x01a\x15\x02\x00" * NESTED)),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_footer_is_refused_in_memory_of_its_size(name):
    tracemalloc.start()
    try:
        assert result(HOSTILE[name], SEEN) is None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200_000 + 3 * len(HOSTILE[name])


@pytest.mark.parametrize("trailer", [b"", b"\0\0\0\0PARE", b"\xff\xff\xff\x7fPAR1", b"\0\0\0\0PAR"], ids=repr)
def test_trailer_of_another_file_is_refused(trailer):
    with pytest.raises(InvalidFooter):
        footer_bytes(trailer, 1_000)


def test_footer_that_is_too_large_is_refused_before_it_is_read():
    size = 10**9
    trailer = (FOOTER_BYTES_MAX + 1).to_bytes(4, "little") + b"PAR1"
    with pytest.raises(FooterTooLarge, match=f"expected at most {FOOTER_BYTES_MAX}"):
        footer_bytes(trailer, size)


def test_more_column_chunks_than_are_parsed_are_refused(monkeypatch):
    assert result(FOOTER, SEEN) is not None
    monkeypatch.setattr(column_chunks, "CHUNKS_MAX", len(COLUMNS) - 1)
    with pytest.raises(FooterTooLarge, match="column chunks"):
        exchanged_footer(FOOTER, len(DATA), exchange(COLUMNS, SEEN, None))
    # Where all columns stay, none is parsed.
    assert result(FOOTER, ALL) is not None


def test_footer_without_the_hidden_column_does_not_have_its_name():
    answer = result(FOOTER, SEEN)
    assert answer is not None
    assert SECRET.encode() not in answer.tail
