"""Pages and record batches that are much larger than the body: refused by their headers, before they are decoded."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from app.kernel.codecs import BadRecord, BadRecords, iter_tables, parts
from app.kernel.codecs.arrow.arrow_messages import MessageSizes
from app.kernel.codecs.arrow.parquet_pages import large_pages
from app.kernel.format.errors import BodyTooLarge, RowTooLarge
from app.kernel.format.rows.formats import Format
from tests.kernel.codecs.samples import schema_of

SCHEMA = schema_of({"id": "int64!", "note": "string", "notes": "list<string>"})
MIB = 2**20
LARGE = 80 * MIB
SMALL = 700


@cache
def rows(before: int, after: int) -> pa.Table:
    """Small rows around a large one."""
    notes = pa.chunked_array(
        [
            pa.array(["x"] * before, pa.string()),
            pa.array(["\0" * LARGE]),
            pa.array(["x"] * after, pa.string()),
        ]
    )
    return pa.table({"id": range(before + 1 + after), "note": notes})


def parquet_of(table: pa.Table, **options: object) -> bytes:
    """A file with a page for each row."""
    out = io.BytesIO()
    by_row = {"write_batch_size": 1, "data_page_size": 1}
    pq.write_table(table, out, **{"compression": "zstd", "use_dictionary": False} | by_row | options)
    return out.getvalue()


def arrow_of(table: pa.Table, codec: str = "zstd", *, file: bool = False) -> bytes:
    out = io.BytesIO()
    writer = ipc.new_file if file else ipc.new_stream
    with writer(out, table.schema, options=ipc.IpcWriteOptions(compression=codec)) as sink:
        for batch in table.to_batches():
            sink.write_batch(batch)
    return out.getvalue()


def decoded(data: bytes, bad_records: BadRecords | None = None) -> pa.Table:
    form = Format.PARQUET if data.startswith(b"PAR1") else Format.ARROW
    return pa.concat_tables(iter_tables(form, pa.BufferReader(data), SCHEMA, bad_records=bad_records))


@contextmanager
def counted_memory() -> Iterator[pa.MemoryPool]:
    """The memory that Arrow allocates in the context."""
    before = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(before)
    pa.set_memory_pool(counted)
    try:
        yield counted
    finally:
        pa.set_memory_pool(before)


@pytest.mark.parametrize(
    ("make", "row"),
    [
        pytest.param(lambda: parquet_of(rows(0, 0)), 0, id="parquet"),
        pytest.param(lambda: parquet_of(rows(SMALL, SMALL)), SMALL, id="parquet, pages of version 1"),
        pytest.param(
            lambda: parquet_of(rows(SMALL, SMALL), data_page_version="2.0"),
            SMALL,
            id="parquet, pages of version 2",
        ),
        pytest.param(
            lambda: parquet_of(rows(SMALL, SMALL), row_group_size=200), SMALL, id="parquet, row groups"
        ),
        pytest.param(lambda: parquet_of(rows(SMALL, SMALL), compression="gzip"), SMALL, id="parquet, gzip"),
        pytest.param(lambda: parquet_of(rows(0, 0), use_dictionary=["note"]), 0, id="parquet, dictionary"),
        pytest.param(
            lambda: parquet_of(rows(9, 0), use_dictionary=["note"]), None, id="parquet, in a dictionary"
        ),
        pytest.param(
            lambda: parquet_of(pa.table({"id": [0], "notes": [["\0" * (LARGE // 4)] * 4]})),
            0,
            id="parquet, list",
        ),
        pytest.param(lambda: arrow_of(rows(0, 0)), 0, id="arrow"),
        pytest.param(lambda: arrow_of(rows(SMALL, SMALL)), SMALL, id="arrow, later batch"),
        pytest.param(lambda: arrow_of(rows(SMALL, SMALL), "lz4"), SMALL, id="arrow, lz4"),
        pytest.param(lambda: arrow_of(rows(SMALL, SMALL), file=True), SMALL, id="arrow, file"),
        pytest.param(
            lambda: arrow_of(rows(0, 0).set_column(1, "note", rows(0, 0)["note"].dictionary_encode())),
            0,
            id="arrow, dictionary",
        ),
    ],
)
def test_row_that_is_too_large_is_refused_before_it_is_decoded(make, row):
    data = make()
    assert len(data) < MIB
    with counted_memory() as memory, pytest.raises(RowTooLarge) as refusal:
        decoded(data)
    assert memory.max_memory() < LARGE // 4
    place = {"pointer": "/rows"} if row is None else {"row": row, "pointer": f"/rows/{row}"}
    assert refusal.value.facts == {"limit_bytes": 16 * MIB, **place}
    assert "store large values elsewhere" in refusal.value.detail
    if row is None:
        assert refusal.value.detail.startswith("one of the rows 0 to 9 has more than 16777216 bytes")


@pytest.mark.parametrize("make", [parquet_of, arrow_of])
def test_row_that_is_too_large_is_quarantined_as_long_as_it_can_be_decoded(make, monkeypatch):
    data = make(rows(SMALL, SMALL))
    kept: list[BadRecord] = []
    bad_records = BadRecords(write=kept.extend)
    assert decoded(data, bad_records).num_rows == 2 * SMALL
    bad_records.close()
    assert [record.position for record in kept] == [SMALL]
    monkeypatch.setattr(parts, "PART_MEMORY_MAX", LARGE - 1)
    with pytest.raises(RowTooLarge, match=f"row {SMALL} has more than"):
        decoded(data, BadRecords(write=kept.extend))


def test_page_of_many_rows_that_takes_too_much_memory_is_refused(monkeypatch):
    data = parquet_of(rows(SMALL, SMALL), write_batch_size=4 * SMALL, data_page_size=MIB)
    monkeypatch.setattr(parts, "PART_MEMORY_MAX", 2 * LARGE)
    with pytest.raises(BodyTooLarge, match="a page of column 'note' with rows from 0 on has 83") as refusal:
        decoded(data)
    assert refusal.value.facts["limit_bytes"] == 2 * LARGE // 3


class Held:
    """Memory whose requests are noted."""

    def __init__(self):
        self.sizes = []

    def holding(self, size_bytes):
        self.sizes.append(size_bytes)
        return parts.ANY_MEMORY.holding(size_bytes)


@pytest.mark.parametrize(("make", "copies"), [(parquet_of, 3), (arrow_of, 1)])
def test_memory_is_held_for_large_parts(make, copies):
    data, memory = make(rows(SMALL, 0)), Held()
    form = Format.PARQUET if make is parquet_of else Format.ARROW
    kept = BadRecords(write=lambda _: None)
    list(iter_tables(form, pa.BufferReader(data), SCHEMA, bad_records=kept, memory=memory))
    assert LARGE * copies < max(memory.sizes) < LARGE * copies + MIB


def test_damaged_headers_are_left_to_the_reader():
    data = parquet_of(rows(3, 3))
    sound = list(large_pages(pa.BufferReader(data), 0, 0, frozenset({"id", "note"})))
    assert [page.rows for page in sound] == [1] * 7
    for place in range(4, len(data) - 4):
        damaged = bytearray(data)
        damaged[place] ^= 0xFF
        list(large_pages(pa.BufferReader(bytes(damaged)), 0, 0, frozenset({"id", "note"})))
    table = rows(3, 3).combine_chunks()
    for start, data in ((0, arrow_of(table)), (8, arrow_of(table, file=True))):
        assert [part.rows for part in MessageSizes(pa.BufferReader(data), start).next_batch()] == [7]
        for place in range(len(data)):
            damaged = bytearray(data)
            damaged[place] ^= 0xFF
            MessageSizes(pa.BufferReader(bytes(damaged)), start).next_batch()
