"""Decoding step by step: splits, row numbers, bounds, and inputs that are cut off or damaged."""

from __future__ import annotations

import io
import itertools
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.lake.errors import BodyTooLarge, MalformedBody, SchemaMismatch
from app.lake.rows import Format, Split, csv_rows, decode_csv, decode_ndjson, iter_tables, plan_splits, stream
from app.lake.rows.encode import encode_rows_json, encode_rows_ndjson
from app.lake.rows.parquet_rows import open_parquet
from tests.lake.rows.samples import arrow_stream, schema_of, tables

SCHEMA = schema_of(
    {
        "id": "int64!",
        "name": "string",
        "at": "timestamp",
        "places": "list<struct<x: string, y: double>>",
        "by": "map<string, int32>",
    }
)


def sample(rows: int) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "id": row,
                "name": None if row % 5 == 0 else f"name {row % 7}",
                "at": row * 1_000_000,
                "places": [{"x": "q", "y": row / 2}] * (row % 3),
                "by": [(f"k{key}", row) for key in range(row % 2)],
            }
            for row in range(rows)
        ],
        schema=SCHEMA.to_arrow(),
    )


def parquet(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def compressed_stream(table: pa.Table) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return out.getvalue()


def read(form: Format, data: bytes, schema=SCHEMA, split: Split | None = None) -> pa.Table:
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


PARQUET_WRITERS = [
    {},
    {"compression": "zstd", "row_group_size": 70},
    {"use_dictionary": False, "compression": "none", "write_page_checksum": True},
    {"data_page_version": "2.0", "compression": "gzip", "data_page_size": 512},
    {"use_dictionary": False, "column_encoding": {"name": "DELTA_BYTE_ARRAY", "id": "DELTA_BINARY_PACKED"}},
    {"use_dictionary": False, "column_encoding": {"name": "DELTA_LENGTH_BYTE_ARRAY"}},
    {"store_schema": False, "dictionary_pagesize_limit": 64},
]


@pytest.mark.parametrize("options", PARQUET_WRITERS, ids=str)
def test_parquet_is_read_however_it_is_written(options):
    table = sample(300)
    data = parquet(table, **options)
    assert read(Format.PARQUET, data) == table
    splits = plan_splits(Format.PARQUET, io.BytesIO(data), len(data), 1)
    assert list(itertools.chain.from_iterable(split.row_groups for split in splits)) == list(
        range(pq.ParquetFile(io.BytesIO(data)).num_row_groups)
    )
    assert pa.concat_tables(read(Format.PARQUET, data, split=split) for split in splits) == table


@given(tables())
@settings(max_examples=60, deadline=None)
def test_every_form_gives_the_same_rows(given_sample):
    schema, table = given_sample
    assert read(Format.ARROW, arrow_stream(table, max_chunksize=2), schema) == table
    assert read(Format.PARQUET, parquet(table, row_group_size=2), schema) == table
    assert read(Format.JSON_ROWS, encode_rows_json(table), schema) == table
    if table.num_rows:
        assert read(Format.NDJSON, encode_rows_ndjson(table), schema) == table


def test_large_inputs_come_in_steps_of_bounded_size():
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
@settings(max_examples=150, deadline=None)
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
def test_a_fault_in_any_split_is_named_by_its_row_in_the_whole(small_reads, row, error, target):
    good = b'{"id":7}\n\n{"id":8}\n'
    data = good * 20 + row + b"\n" + good
    raised = []
    for split in plan_splits(Format.NDJSON, io.BytesIO(data), len(data), target):
        try:
            list(iter_tables(Format.NDJSON, io.BytesIO(data), SCHEMA, split=split))
        except (SchemaMismatch, MalformedBody) as fault:
            raised.append(fault.facts)
    (facts,) = raised
    if "pointer" in error:
        assert facts["errors"] == [error]
    else:
        assert error.items() <= facts.items()
        assert facts["byte"] == len(good * 20) + len(row)


def test_faults_are_named_by_row_in_every_form():
    rows = 1000
    table = sample(rows).set_column(0, "id", pa.array([None if row == 777 else row for row in range(rows)]))
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
@settings(max_examples=150, deadline=None)
def test_csv_is_the_same_in_steps_as_at_once(records, end, read_bytes):
    data = b"id,name" + end + end.join(records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "READ_BYTES", max(read_bytes, len(b"id,name" + end)))
        assert read(Format.CSV, data) == decode_csv(data, SCHEMA)


def test_faults_in_csv_are_named_by_position_in_the_whole(small_reads, monkeypatch):
    monkeypatch.setattr(stream, "READ_BYTES", 9)
    good = b'1,"a\nb"\n\n2,c\n'
    data = b"id,name\n" + good * 10 + b'3,x"y\n'
    with pytest.raises(MalformedBody) as caught:
        list(iter_tables(Format.CSV, io.BytesIO(data), SCHEMA))
    assert caught.value.facts == {"line": 42, "byte": data.index(b'x"y') + 1}
    data = b"id,name\n" + good * 10 + b"3,x\nz,y\n"
    with pytest.raises(SchemaMismatch) as caught:
        list(iter_tables(Format.CSV, io.BytesIO(data), SCHEMA))
    assert caught.value.facts["errors"][0]["pointer"] == "/rows/21/id"


def test_a_quote_that_is_never_closed_does_not_fill_the_memory(small_reads, monkeypatch):
    monkeypatch.setattr(stream, "RECORD_BYTES_MAX", 1000)
    with pytest.raises(MalformedBody, match=r"line 3, byte 12: a record is longer than 1000 bytes") as caught:
        list(
            iter_tables(
                Format.CSV,
                io.BytesIO(b'id,name\n1,a\n2,"' + b"x\n" * 5000),
                schema_of({"id": "int8", "name": "string"}),
            )
        )
    assert caught.value.facts == {"line": 3, "byte": 12}
    with pytest.raises(MalformedBody, match="the line that starts at byte 9 is longer"):
        list(iter_tables(Format.NDJSON, io.BytesIO(b'{"id":1}\n{"name":"' + b"x" * 5000), SCHEMA))
    monkeypatch.setattr(csv_rows, "HEADER_BYTES_MAX", 3)
    with pytest.raises(MalformedBody, match="the header line is longer than 3 bytes"):
        decode_csv(b"id,name\n1,a\n", SCHEMA)


BODIES = {
    "stream": (Format.ARROW, arrow_stream(sample(40), max_chunksize=16)),
    "compressed stream": (Format.ARROW, compressed_stream(sample(40))),
    "stream of dictionaries": (
        Format.ARROW,
        arrow_stream(sample(40).set_column(1, "name", sample(40)["name"].dictionary_encode())),
    ),
    "stream of views": (
        Format.ARROW,
        arrow_stream(sample(40).set_column(1, "name", sample(40)["name"].cast(pa.string_view()))),
    ),
    **{
        f"parquet {number}": (Format.PARQUET, parquet(sample(40), **options))
        for number, options in enumerate(PARQUET_WRITERS)
    },
}


@pytest.mark.parametrize("name", BODIES)
def test_what_is_cut_off_anywhere_is_refused(name):
    form, data = BODIES[name]
    assert read(form, data).num_rows == 40
    step = max(1, len(data) // 150)
    for length in [*range(0, len(data), step), *range(max(0, len(data) - 12), len(data))]:
        with pytest.raises(MalformedBody):
            for _ in iter_tables(form, io.BytesIO(data[:length]), SCHEMA):
                pass


def is_read(form: Format, data: bytes) -> bool:
    """Whether the input is taken; it must either give sound tables or be refused as it is documented."""
    try:
        for table in iter_tables(form, io.BytesIO(data), SCHEMA):
            table.validate(full=True)
    except (MalformedBody, SchemaMismatch, BodyTooLarge):
        return False
    return True


@pytest.mark.parametrize("name", BODIES)
def test_damage_is_refused_or_harmless_and_never_ends_the_process(name):
    form, data = BODIES[name]
    randomness = random.Random(name)
    refused = 0
    for _ in range(250):
        damaged = bytearray(data)
        for _ in range(randomness.choice((1, 1, 3))):
            # Where lengths and offsets are: the metadata is at the end of Parquet and all over a stream.
            first = max(0, len(data) - 1500) if form is Format.PARQUET and randomness.random() < 0.5 else 0
            place = randomness.randrange(first, len(data))
            damaged[place] = randomness.choice((0, 1, 127, 128, 255, randomness.randrange(256)))
        refused += not is_read(form, bytes(damaged))
    assert refused > 25


@pytest.mark.parametrize(
    ("form", "data", "reason"),
    [
        (Format.ARROW, b"", "the body is empty"),
        (Format.ARROW, b"ARROW1\x00\x00rest", "an Arrow file; send the stream format"),
        (Format.ARROW, b"not arrow at all", "the Arrow stream cannot be read"),
        (Format.ARROW, BODIES["stream"][1] + b"\x00", "bytes follow the end of the Arrow stream"),
        (Format.ARROW, BODIES["stream"][1][:-8], "its end-of-stream mark is missing"),
        (Format.PARQUET, b"", "it does not start with PAR1"),
        (Format.PARQUET, b"PARE" + b"\x00" * 100 + b"PARE", "the Parquet file is encrypted"),
        (Format.PARQUET, b"PAR1" + b"\x00" * 100, "the Parquet file cannot be read"),
        (Format.PARQUET, b"PAR1PAR1", "the Parquet file cannot be read"),
        (Format.CSV, b"", "the body is empty"),
        (Format.NDJSON, b"", "the body is empty"),
        (Format.JSON_ROWS, b"", "the body is empty"),
    ],
)
def test_the_wrong_bytes_are_called_what_they_are(form, data, reason):
    with pytest.raises(MalformedBody) as caught:
        list(iter_tables(form, io.BytesIO(data), SCHEMA))
    assert reason in caught.value.detail
    if not data:
        with pytest.raises(MalformedBody, match="the body is empty"):
            plan_splits(form, io.BytesIO(data), 0, 1)


def test_columns_are_checked_before_any_row_is_read():
    wrong = pa.table({"id": pa.array([], pa.string()), "z": pa.array([], pa.int8())})
    for form, data in ((Format.ARROW, arrow_stream(wrong)), (Format.PARQUET, parquet(wrong))):
        with pytest.raises(SchemaMismatch) as caught:
            list(iter_tables(form, io.BytesIO(data), SCHEMA))
        details = [error["detail"] for error in caught.value.facts["errors"]]
        assert details == [
            'column "id": expected int64, got Arrow type string, which does not fit without loss',
            'column "z": the schema has no field "z"',
        ]


def test_an_input_without_rows_is_checked_and_gives_no_table():
    empty = SCHEMA.to_arrow().empty_table()
    for form, data in (
        (Format.ARROW, arrow_stream(empty)),
        (Format.PARQUET, parquet(empty)),
        (Format.JSON_ROWS, b"[]"),
        (Format.CSV, b"id\n"),
    ):
        assert list(iter_tables(form, io.BytesIO(data), SCHEMA)) == []
    (split,) = plan_splits(Format.PARQUET, io.BytesIO(parquet(empty)), 500, 100)
    assert read(Format.PARQUET, parquet(empty), split=split) == empty


LARGE = "x" * 400_000


@pytest.mark.parametrize(
    ("form", "data"),
    [
        (
            Format.ARROW,
            arrow_stream(pa.table({"name": pa.DictionaryArray.from_arrays(pa.array([0] * 5000), [LARGE])})),
        ),
        (Format.PARQUET, parquet(pa.table({"name": [LARGE] * 600}), store_schema=False, compression="zstd")),
        (
            Format.PARQUET,
            parquet(
                pa.table({"name": [LARGE] * 600}),
                use_dictionary=False,
                column_encoding={"name": "DELTA_BYTE_ARRAY"},
                compression="zstd",
            ),
        ),
    ],
    ids=["arrow dictionary", "parquet dictionary", "parquet prefixes"],
)
def test_small_inputs_that_expand_come_in_small_steps(form, data):
    assert len(data) < 1 << 20
    rows = 0
    before = pa.total_allocated_bytes()
    for table in iter_tables(form, io.BytesIO(data), schema_of({"name": "string"})):
        rows += table.num_rows
        assert table.nbytes <= 24 << 20
        assert pa.total_allocated_bytes() - before < 512 << 20
    assert rows >= 600


def test_one_row_that_expands_without_end_is_refused():
    lists = pa.array([["x" * 4_000] * 100_000])
    data = parquet(pa.table({"l": lists}), store_schema=False, compression="zstd")
    del lists
    assert len(data) < 100_000
    with pytest.raises(BodyTooLarge, match="one row takes more than"):
        list(iter_tables(Format.PARQUET, io.BytesIO(data), schema_of({"l": "list<string>"})))


def test_a_compressed_stream_that_asks_for_more_memory_than_there_is_is_refused():
    data = bytearray(compressed_stream(pa.table({"id": range(1000)})))
    # A compressed buffer starts with its uncompressed size, 8,000 bytes here.
    place = data.index((8000).to_bytes(8, "little"))
    data[place : place + 8] = (1 << 60).to_bytes(8, "little")
    with pytest.raises(MalformedBody, match="the Arrow stream cannot be read"):
        list(iter_tables(Format.ARROW, io.BytesIO(bytes(data)), SCHEMA))


class FailingFile(io.BytesIO):
    """A file whose storage fails after the first bytes."""

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell() > 0:
            raise OSError(5, "Input/output error")
        return super().read(size)


@pytest.mark.parametrize("form", [Format.NDJSON, Format.CSV, Format.ARROW, Format.PARQUET])
def test_trouble_with_the_storage_is_not_blamed_on_the_input(form, small_reads, monkeypatch):
    monkeypatch.setattr(stream, "READ_BYTES", 50)
    table = pa.table({"id": range(1000)})
    data = {
        Format.NDJSON: encode_rows_ndjson(table),
        Format.CSV: b"id\n" + b"1\n" * 1000,
        Format.ARROW: arrow_stream(table),
        Format.PARQUET: parquet(table),
    }[form]
    with pytest.raises(OSError, match="Input/output error"):
        list(iter_tables(form, FailingFile(data), SCHEMA))


def test_the_source_stays_open():
    for form, data in ((Format.PARQUET, BODIES["parquet 0"][1]), (Format.ARROW, BODIES["stream"][1])):
        source = io.BytesIO(data)
        list(iter_tables(form, source, SCHEMA))
        open_parquet(source) if form is Format.PARQUET else None
        assert not source.closed
        assert source.seek(0) == 0


def test_ndjson_by_steps_is_what_it_is_at_once():
    data = encode_rows_ndjson(sample(500))
    assert read(Format.NDJSON, data) == decode_ndjson(data, SCHEMA)
