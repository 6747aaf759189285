"""Decoding step by step: splits, row numbers, bounds, and inputs that are cut off or damaged."""

from __future__ import annotations

import io
import itertools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kernel.codecs import Format, Split, decode_csv, decode_ndjson, iter_tables, plan_splits, stream
from app.kernel.codecs.arrow.parquet_rows import open_parquet
from app.kernel.codecs.csv import csv_header
from app.kernel.codecs.json.encode import encode_rows_json, encode_rows_ndjson
from app.kernel.format.errors import MalformedBody, RowTooLarge, SchemaMismatch
from app.kernel.format.rows.row_limits import RowLimits
from tests.kernel.codecs.samples import (
    PARQUET_WRITERS,
    PLACES,
    arrow_stream,
    parquet,
    places,
    schema_of,
    tables,
)
from tests.support.examples import a_third_of
from tests.support.shares import share


def read(form: Format, data: bytes, schema=PLACES, split: Split | None = None) -> pa.Table:
    """All steps of a split as one table, through a file of Python's and one of Arrow's, which must agree."""
    split = split or Split()
    whole = []
    for source in (io.BytesIO(data), pa.BufferReader(data)):
        steps = list(iter_tables(form, source, schema, split=split))
        assert all(step.schema.equals(schema.to_arrow(), check_metadata=True) for step in steps)
        assert all(step.num_rows for step in steps)
        whole.append(pa.concat_tables([schema.to_arrow().empty_table(), *steps]))
    assert whole[0] == whole[1]
    return whole[0]


@pytest.mark.parametrize("options", PARQUET_WRITERS, ids=str)
def test_parquet_with_any_writer_options_is_read(options):
    table = places(300)
    data = parquet(table, **options)
    assert read(Format.PARQUET, data) == table
    splits = plan_splits(Format.PARQUET, io.BytesIO(data), len(data), 1)
    assert list(itertools.chain.from_iterable(split.row_groups for split in splits)) == list(
        range(pq.ParquetFile(io.BytesIO(data)).num_row_groups)
    )
    assert pa.concat_tables(read(Format.PARQUET, data, split=split) for split in splits) == table


@given(tables())
@settings(max_examples=a_third_of(60), deadline=None)
def test_every_format_yields_the_same_rows(sample_case):
    schema, table = sample_case
    assert read(Format.ARROW, arrow_stream(table, max_chunksize=2), schema) == table
    assert read(Format.PARQUET, parquet(table, row_group_size=2), schema) == table
    assert read(Format.JSON_ROWS, encode_rows_json(table), schema) == table
    if table.num_rows:
        assert read(Format.NDJSON, encode_rows_ndjson(table), schema) == table


@share(2)
def test_large_bodies_are_read_in_bounded_steps():
    rows = 150_000
    table = pa.table({"id": range(rows), "name": ["x" * 100] * rows})
    schema = schema_of(
        {"id": "int64!", "name": "string", **{f"absent{number}": "string" for number in range(98)}}
    )
    lines = encode_rows_ndjson(table)
    inputs = {
        Format.NDJSON: lines,
        Format.CSV: b"id,name\n" + b"\n".join(b"%d,%s" % (row, b"x" * 100) for row in range(rows)),
        Format.ARROW: arrow_stream(table),
        Format.PARQUET: parquet(table),
    }
    for form, data in inputs.items():
        steps = list(iter_tables(form, io.BytesIO(data), schema))
        assert [row for step in steps for row in step["id"].to_pylist()] == list(range(rows)), form
        assert max(step.num_rows for step in steps) <= 65_536, form
        assert max(step.nbytes for step in steps) <= 64 << 20, form
        assert len(steps) > 2, form


@pytest.fixture
def small_reads(monkeypatch):
    """Has inputs read a few bytes at a time, so that every boundary falls somewhere awkward."""
    monkeypatch.setattr(stream, "READ_BYTES", 7)


@given(
    st.lists(
        st.sampled_from(['{"id":%d}', '{"id":%d,"name":"é\\n"}', " ", "", "\r"]), min_size=1, max_size=12
    ),
    st.booleans(),
    st.integers(1, 60),
    st.integers(1, 40),
)
@settings(max_examples=a_third_of(150), deadline=None)
def test_ndjson_splits_cover_every_row_once(lines, ended, target, read_bytes):
    numbered = [line % number if "%d" in line else line for number, line in enumerate(lines)]
    data = ("\n".join(numbered) + ("\n" if ended else "")).encode()
    expected = [number for number, line in enumerate(lines) if "%d" in line]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "READ_BYTES", read_bytes)
        if not data:
            with pytest.raises(MalformedBody):
                plan_splits(Format.NDJSON, io.BytesIO(data), 0, target)
            return
        splits = plan_splits(Format.NDJSON, io.BytesIO(data), len(data), target)
        found = [read(Format.NDJSON, data, split=split)["id"].to_pylist() for split in splits]
    assert [number for part in found for number in part] == expected
    for split, part in zip(splits, found, strict=True):
        starts = [data.index(b'{"id":%d' % number) for number in part]
        assert all(split.byte_range[0] <= start < split.byte_range[1] for start in starts)


@pytest.mark.parametrize(
    ("row", "error"),
    [
        (b'{"id":"x"}', {"pointer": "/rows/40/id", "detail": 'expected int64, got string "x"'}),
        (b'{"id":1', {"row": 40, "line": 61}),
    ],
)
@pytest.mark.parametrize("target", [10, 100, 10_000])
def test_error_in_a_split_is_named_by_its_row_in_the_body(small_reads, row, error, target):
    good = b'{"id":7}\n\n{"id":8}\n'
    data = good * 20 + row + b"\n" + good
    raised = []
    for split in plan_splits(Format.NDJSON, io.BytesIO(data), len(data), target):
        try:
            list(iter_tables(Format.NDJSON, io.BytesIO(data), PLACES, split=split))
        except (SchemaMismatch, MalformedBody) as fault:
            raised.append(fault.facts)
    (facts,) = raised
    if "pointer" in error:
        assert facts["errors"] == [error]
    else:
        assert error.items() <= facts.items()
        assert facts["byte"] == len(good * 20) + len(row)


def test_errors_are_named_by_row_in_every_format():
    rows = 1000
    table = places(rows).set_column(0, "id", pa.array([None if row == 777 else row for row in range(rows)]))
    at = {"pointer": "/rows/777/id", "detail": 'expected int64, got null: "id" is not nullable'}
    data = parquet(table, row_group_size=100)
    inputs = [
        (Format.ARROW, arrow_stream(table, max_chunksize=100), Split()),
        (Format.PARQUET, data, Split()),
        (Format.PARQUET, data, Split(row_groups=(7,))),
    ]
    for form, body, split in inputs:
        with pytest.raises(SchemaMismatch) as caught:
            read(form, body, split=split)
        assert caught.value.facts["errors"] == [at]
    body = b"name,id\n" + b"".join(b",%s\n" % (b"" if row == 777 else b"%d" % row) for row in range(rows))
    with pytest.raises(SchemaMismatch) as caught:
        read(Format.CSV, body)
    assert caught.value.facts["errors"][0]["pointer"] == "/rows/777/id"


@given(
    st.lists(st.sampled_from([b"1,a", b'2,"a\r\nb"', b'3,""', b'4,"""\n"', b"", b'5,","']), max_size=12),
    st.sampled_from([b"\n", b"\r\n"]),
    st.integers(1, 30),
)
@settings(max_examples=a_third_of(150), deadline=None)
def test_csv_in_steps_equals_csv_at_once(records, end, read_bytes):
    data = b"id,name" + end + end.join(records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "READ_BYTES", max(read_bytes, len(b"id,name" + end)))
        assert read(Format.CSV, data) == decode_csv(data, PLACES)


def test_errors_in_csv_are_named_by_position_in_the_body(small_reads, monkeypatch):
    monkeypatch.setattr(stream, "READ_BYTES", 9)
    good = b'1,"a\nb"\n\n2,c\n'
    data = b"id,name\n" + good * 10 + b'3,x"y\n'
    with pytest.raises(MalformedBody) as caught:
        list(iter_tables(Format.CSV, io.BytesIO(data), PLACES))
    assert caught.value.facts == {"line": 42, "byte": data.index(b'x"y') + 1}
    data = b"id,name\n" + good * 10 + b"3,x\nz,y\n"
    with pytest.raises(SchemaMismatch) as caught:
        list(iter_tables(Format.CSV, io.BytesIO(data), PLACES))
    assert caught.value.facts["errors"][0]["pointer"] == "/rows/21/id"


def test_unclosed_quote_is_bounded_in_memory(small_reads, monkeypatch):
    limits = RowLimits(row_bytes_max=1000)
    with pytest.raises(
        RowTooLarge, match=r"row 1 \(line 3\) has more than 1000 bytes.*never closed"
    ) as caught:
        list(
            iter_tables(
                Format.CSV,
                io.BytesIO(b'id,name\n1,a\n2,"' + b"x\n" * 5000),
                schema_of({"id": "int8", "name": "string"}),
                limits=limits,
            )
        )
    assert caught.value.facts == {"limit_bytes": 1000, "row": 1, "line": 3, "pointer": "/rows/1"}
    monkeypatch.setattr(csv_header, "HEADER_BYTES_MAX", 3)
    with pytest.raises(MalformedBody, match="the header line is longer than 3 bytes"):
        decode_csv(b"id,name\n1,a\n", PLACES)


class FailingFile(io.BytesIO):
    """A file whose storage fails after the first bytes."""

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell() > 0:
            raise OSError(5, "Input/output error")
        return super().read(size)


@pytest.mark.parametrize("form", [Format.NDJSON, Format.CSV, Format.ARROW, Format.PARQUET])
def test_storage_error_is_not_reported_as_a_bad_body(form, small_reads, monkeypatch):
    monkeypatch.setattr(stream, "READ_BYTES", 50)
    table = pa.table({"id": range(1000)})
    data = {
        Format.NDJSON: encode_rows_ndjson(table),
        Format.CSV: b"id\n" + b"1\n" * 1000,
        Format.ARROW: arrow_stream(table),
        Format.PARQUET: parquet(table),
    }[form]
    with pytest.raises(OSError, match="Input/output error"):
        list(iter_tables(form, FailingFile(data), PLACES))


def test_source_file_stays_open():
    for form, data in ((Format.PARQUET, parquet(places(40))), (Format.ARROW, arrow_stream(places(40)))):
        source = io.BytesIO(data)
        list(iter_tables(form, source, PLACES))
        open_parquet(source) if form is Format.PARQUET else None
        assert not source.closed
        assert source.seek(0) == 0


def test_ndjson_in_steps_equals_ndjson_at_once():
    data = encode_rows_ndjson(places(500))
    assert read(Format.NDJSON, data) == decode_ndjson(data, PLACES)
