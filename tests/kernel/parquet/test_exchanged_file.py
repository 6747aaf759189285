"""Any range of a served file is that of the whole, and reads only what is served."""

from __future__ import annotations

import random

import pytest

from app.kernel.parquet.exchange import exchange
from app.kernel.parquet.exchanged_file import ExchangedFile, read_footer
from tests.kernel.parquet.samples import ALL, COLUMNS, SEEN, opened, rows, served, stored

DATA = stored(rows(400), row_group_size=90, write_page_index=True)


@pytest.mark.parametrize("visible", [ALL, SEEN], ids=["all", "seen"])
def test_ranges_are_those_of_the_whole(visible):
    whole = served(DATA, visible)
    file = opened(DATA, exchange(COLUMNS, visible, None))
    draw = random.Random(7)
    places = [draw.randrange(len(whole) + 1) for _ in range(600)]
    for start in [0, 1, 4, len(whole) - 8, len(whole) - 1, len(whole), *places]:
        count = draw.choice([0, 1, 7, 100, 5_000, 10**9])
        assert file.read(start, count) == whole[start : start + count]


def test_bytes_of_hidden_columns_are_not_read():
    reads: list[tuple[int, int]] = []

    def read(start: int, count: int) -> bytes:
        reads.append((start, start + count))
        return DATA[start : start + count]

    what = exchange(COLUMNS, SEEN, None)
    footer = read_footer(read, len(DATA), what)
    assert len(reads) == 2
    reads.clear()
    file = ExchangedFile(footer, read)
    for start in range(0, file.size_bytes, 1_000):
        file.read(start, 1_000)
    assert all(any(first <= start and end <= last for first, last in footer.ranges) for start, end in reads)
    reads.clear()
    file.read(file.size_bytes - len(footer.tail), len(footer.tail))
    assert reads == []
