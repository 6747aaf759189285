"""Quarantining bad records: what is kept is what fits alone, what is quarantined is the rest, as it was sent."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kernel.codecs import (
    BadRecord,
    BadRecords,
    Format,
    Split,
    conform,
    decode_csv,
    decode_json_rows,
    decode_ndjson,
    iter_tables,
    plan_splits,
    record_errors,
    stream,
)
from app.kernel.codecs.json import json_rows
from app.kernel.codecs.json.objects import json_texts
from app.kernel.format.errors import MalformedBody, SchemaMismatch
from app.kernel.format.rows.row_limits import DEFAULT_LIMITS, RowLimits
from tests.kernel.codecs.samples import arrow_stream, parquet, schema_of, tables
from tests.support.examples import a_third_of
from tests.support.shares import share

SCHEMA = schema_of({"id": "int32!", "name": "string", "at": "timestamp", "tags": "list<int8>"})


def read(decode: Callable[[BadRecords], pa.Table]) -> tuple[pa.Table, list[BadRecord]]:
    """What a decoder gives and what it quarantines."""
    kept: list[BadRecord] = []
    bad_records = BadRecords(write=kept.extend)
    table = decode(bad_records)
    bad_records.close()
    assert bad_records.count == len(kept)
    return table, sorted(kept, key=lambda record: record.position)


def stepwise(
    form: Format,
    data: bytes,
    schema=SCHEMA,
    split: Split | None = None,
    limits: RowLimits = DEFAULT_LIMITS,
) -> tuple[pa.Table, list[BadRecord]]:
    return read(
        lambda bad_records: pa.concat_tables(
            [
                schema.to_arrow().empty_table(),
                *iter_tables(
                    form,
                    io.BytesIO(data),
                    schema,
                    split=split or Split(),
                    bad_records=bad_records,
                    limits=limits,
                ),
            ]
        )
    )


JSON_ROWS = [
    b'{"id":1}',
    b'{"id":2,"name":"x","tags":[1]}',
    b'{"id":3,"at":"2026-01-01T00:00:00Z"}',
    b'{"id":"4"}',
    b'{"id":5,"nane":"x"}',
    b'{"name":"x"}',
    b'{"id":null}',
    b'{"id":7,"at":"2026-13-01T00:00:00Z"}',
    b'{"id":8,"name":"a","name":"b"}',
    b'{"id":9,"tags":[1,300]}',
    b'{"id":10,"name":"\xff"}',
    b"[1]",
]
BROKEN_LINES = [b'{"id":11', b"x", b'{"id":12}{"id":13}', b"[" * 5000]


@share(2)
@given(
    st.lists(st.sampled_from(JSON_ROWS + BROKEN_LINES), min_size=1, max_size=30),
    st.integers(1, 3),
    st.integers(1, 60),
)
@settings(max_examples=a_third_of(300), deadline=None)
def test_ndjson_keeps_the_lines_that_are_valid_alone(lines, piece_rows, read_bytes):
    data = b"\n\n".join(lines)
    one_by_one = [alone(decode_ndjson, line) for line in lines]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_rows, "_PIECE_ROWS_MIN", piece_rows)
        patch.setattr(stream, "READ_BYTES", read_bytes)
        outcomes = [
            read(lambda bad_records: decode_ndjson(data, SCHEMA, bad_records=bad_records)),
            stepwise(Format.NDJSON, data),
        ]
    for outcome in outcomes:
        check(outcome, lines, one_by_one)


@given(st.lists(st.sampled_from([*JSON_ROWS, b'{"id":NaN}', b'{"id":1,\n"name":"x"}']), max_size=30))
@settings(max_examples=a_third_of(200), deadline=None)
def test_json_array_keeps_the_elements_that_are_valid_alone(rows):
    data = b" [" + b" ,\n".join(rows) + b"]"
    one_by_one = [alone(decode_json_rows, b"[" + row + b"]") for row in rows]
    check(read(lambda bad_records: decode_json_rows(data, SCHEMA, bad_records=bad_records)), rows, one_by_one)
    check(stepwise(Format.JSON_ROWS, data), rows, one_by_one)


HEADER = b"id,name,tags"
CSV_ROWS = [
    b"1,a,",
    b'2,"a\nb",[1]',
    b'3,"say ""x""",',
    b"4,b",
    b"5,b,[1],7",
    b"x,b,",
    b",b,",
    b"6,b,[1",
    b'7,"b\n",[300]',
    b"8,\xff,",
    b"99999999999,b,",
]
UNSOUND_LINES = [b'9,a"b,', b'10,"a"b,', b"11,a\rb,", b'12,"never closed,']


@share(3)
@given(
    st.lists(st.sampled_from(CSV_ROWS), max_size=12), st.sampled_from([b"\n", b"\r\n"]), st.integers(20, 60)
)
@settings(max_examples=a_third_of(300), deadline=None)
def test_csv_keeps_the_records_that_are_valid_alone(records, end, read_bytes):
    data = HEADER + end + b"".join(record + end for record in records)
    one_by_one = [alone(decode_csv, HEADER + b"\n" + record) for record in records]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "READ_BYTES", read_bytes)
        outcomes = [
            read(lambda bad_records: decode_csv(data, SCHEMA, bad_records=bad_records)),
            stepwise(Format.CSV, data),
        ]
    for outcome in outcomes:
        check(outcome, records, one_by_one)
        assert all(record.header == HEADER for record in outcome[1])


@share(3)
@given(
    st.lists(st.sampled_from([b"1,a,", b"2,b,[1]", b"x,b,", b"4,b", *UNSOUND_LINES[:3]]), max_size=12),
    st.integers(20, 60),
)
@settings(max_examples=a_third_of(300), deadline=None)
def test_misplaced_quote_rejects_only_its_own_line(records, read_bytes):
    data = HEADER + b"\n" + b"\n\n".join(records)
    one_by_one = [alone(decode_csv, HEADER + b"\n" + record) for record in records]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "READ_BYTES", read_bytes)
        outcomes = [
            read(lambda bad_records: decode_csv(data, SCHEMA, bad_records=bad_records)),
            stepwise(Format.CSV, data),
        ]
    for outcome in outcomes:
        check(outcome, records, one_by_one)


@pytest.mark.parametrize("read_bytes", [20, 30, 1 << 20])
@pytest.mark.parametrize(
    "after", [[], [b"3,c,"], [b"3,c,", b'4,"d",', b'5,"e\nf",'], [b"3,c,", UNSOUND_LINES[0]]]
)
def test_unclosed_quote_rejects_only_its_own_line(after, read_bytes, monkeypatch):
    monkeypatch.setattr(stream, "READ_BYTES", read_bytes)
    data = b"\n".join([HEADER, b"1,a,", UNSOUND_LINES[3], *after, b""])
    table, bad = stepwise(Format.CSV, data)
    assert table["id"].to_pylist() == [1, *range(3, 3 + len([line for line in after if b'a"b' not in line]))]
    assert [record.payload for record in bad] == [
        UNSOUND_LINES[3],
        *(line for line in after if line in UNSOUND_LINES),
    ]
    assert "never closed" in bad[0].errors[0].detail


def test_quoted_cell_above_the_limit_rejects_only_its_own_line(monkeypatch):
    monkeypatch.setattr(stream, "READ_BYTES", 50)
    lines = [b'0,"open,'] + [b"%d,x," % number for number in range(1, 100)]
    limits = RowLimits(row_bytes_max=200)
    table, bad = stepwise(Format.CSV, HEADER + b"\n" + b"\n".join(lines), limits=limits)
    assert table["id"].to_pylist() == list(range(1, 100))
    assert [(record.position, record.payload) for record in bad] == [(0, b'0,"open,')]
    table, bad = stepwise(Format.CSV, HEADER + b"\n" + b"x" * 500 + b"\n1,a,", limits=limits)
    assert table["id"].to_pylist() == [1]
    assert [record.position for record in bad] == [0]


def alone(decode: Callable[..., pa.Table], data: bytes) -> pa.Table | None:
    """The one row, where failing on bad records takes it."""
    try:
        return decode(data, SCHEMA)
    except (SchemaMismatch, MalformedBody):
        return None


def check(
    outcome: tuple[pa.Table, list[BadRecord]], sent: list[bytes], one_by_one: list[pa.Table | None]
) -> None:
    """Exactly the rows that fit alone are in the table, in order, and the others were quarantined."""
    table, bad = outcome
    good = [row for row in one_by_one if row is not None]
    assert table == pa.concat_tables([SCHEMA.to_arrow().empty_table(), *good])
    assert [(record.position, record.payload) for record in bad] == [
        (number, text) for number, (text, row) in enumerate(zip(sent, one_by_one, strict=True)) if row is None
    ]
    assert all(record.errors for record in bad)


def test_error_pointers_start_at_the_record():
    _, bad = read(
        lambda bad_records: decode_ndjson(
            b'{"id":1}\n{"id":"x","tags":[1,"y"]}\n{"id":1', SCHEMA, bad_records=bad_records
        )
    )
    assert [[error.pointer for error in record.errors] for record in bad] == [["/id", "/tags/1"], [""]]
    assert (
        bad[1].errors[0].detail == "not JSON: expecting ',' delimiter (at byte 7 of the record)"
        or "byte" in bad[1].errors[0].detail
    )


@share(2)
@given(tables(), st.data())
@settings(max_examples=a_third_of(150), deadline=None)
def test_arrow_and_parquet_keep_the_valid_rows(sample, data):
    schema, table = sample
    strict = schema_of({**{field.name: field.type + "!" for field in schema.fields}})
    fits = [all(value is not None for value in row) for row in zip(*table.to_pydict().values(), strict=True)]
    positions = [number for number, good in enumerate(fits) if not good]
    loose = pa.Table.from_arrays(table.columns, schema=schema.to_arrow())
    for outcome in (
        read(lambda bad_records: conform(loose, strict, bad_records=bad_records)),
        stepwise(Format.ARROW, arrow_stream(loose, max_chunksize=2), strict),
        stepwise(Format.PARQUET, parquet(loose, row_group_size=2), strict),
    ):
        kept, bad = outcome
        assert kept == pa.Table.from_arrays(
            loose.filter(pa.array(fits, pa.bool_())).columns, schema=strict.to_arrow()
        )
        assert [record.position for record in bad] == positions
        # The payload says the same row: as JSON it is read as what it was.
        payloads = b"\n".join(record.payload for record in bad)
        if positions:
            assert decode_ndjson(payloads, schema) == loose.take(pa.array(positions))
    del data


FAR = 253_402_300_800


@pytest.mark.parametrize(
    ("target", "column", "payload"),
    [
        ("double", [1.0, float("nan"), float("-inf")], [b'{"c":"NaN"}', b'{"c":"-Infinity"}']),
        ("list<double>", [[1.0], [float("nan"), 0.5]], [b'{"c":["NaN",0.5]}']),
        ("date", pa.array([0, 2_932_897], pa.int32()).cast(pa.date32()), [b'{"c":"2932897 days since 1970-01-01"}']),
        (
            "timestamp",
            pa.array([FAR - 1, FAR], pa.timestamp("s", "UTC")),
            [b'{"c":"253402300800000000 us since 1970-01-01"}'],
        ),
        (
            "map<string, int8>",
            pa.array([[("a", 1)], [("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int8())),
            [b'{"c":[{"key":"a","value":1},{"key":"a","value":2}]}'],
        ),
        (
            "string",
            pa.array([b"a", b"\xff", b"\xfeb"]).view(pa.string()),
            [b'{"c":{"base64":"/w=="}}', b'{"c":{"base64":"/mI="}}'],
        ),
        (
            "list<string>",
            pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), pa.array([b"a", b"\xff"]).view(pa.string())),
            [b'{"c":[{"base64":"/w=="}]}'],
        ),
    ],
)  # fmt: skip
def test_values_without_a_json_form_are_shown_and_refused_again(target, column, payload):
    schema = schema_of({"c": target})
    table = pa.table({"c": column})
    kept, bad = read(lambda bad_records: conform(table, schema, bad_records=bad_records))
    assert [record.payload for record in bad] == payload
    assert kept.num_rows == table.num_rows - len(payload)
    again, bad_again = read(
        lambda bad_records: decode_ndjson(b"\n".join(payload), schema, bad_records=bad_records)
    )
    assert again.num_rows == 0
    assert [record.payload for record in bad_again] == payload


def test_positions_continue_over_batches_with_invalid_utf8():
    column = pa.array([b"\xff" if row % 3 == 0 else b"%d" % row for row in range(20)]).view(pa.string())
    table = pa.table({"id": pa.array([None if row % 5 == 4 else row for row in range(20)]), "s": column})
    schema = schema_of({"id": "int64!", "s": "string"})
    kept, bad = read(
        lambda bad_records: conform(
            pa.Table.from_batches(table.to_batches(max_chunksize=7)),
            schema,
            first_row=100,
            bad_records=bad_records,
        )
    )
    expected = [row for row in range(20) if row % 3 == 0 or row % 5 == 4]
    assert [record.position - 100 for record in bad] == sorted(expected)
    assert kept["id"].to_pylist() == [row for row in range(20) if row not in expected]


@pytest.mark.parametrize(
    ("form", "body"),
    [
        (Format.JSON_ROWS, b'{"id":1}'),
        (Format.JSON_ROWS, b'[{"id":1},'),
        (Format.NDJSON, b""),
        (Format.CSV, b"name\nx\n"),
        (Format.ARROW, arrow_stream(pa.table({"id": ["x"]}))),
        (Format.PARQUET, parquet(pa.table({"name": ["x"]}))),
        (Format.PARQUET, b"PAR1 and no more"),
    ],
)
def test_body_without_records_is_refused_as_a_whole(form, body):
    with pytest.raises((SchemaMismatch, MalformedBody)):
        stepwise(form, body)


def test_bad_records_are_quarantined_in_bounded_batches(monkeypatch):
    monkeypatch.setattr(record_errors, "_BUFFERED_RECORDS_MAX", 100)
    rows = 20_000
    bodies = {
        Format.NDJSON: b'{"id":"x"}\n' * rows,
        Format.JSON_ROWS: b"[" + b",".join([b'{"id":"x"}'] * rows) + b"]",
        Format.CSV: b"id\n" + b"x\n" * rows,
        Format.ARROW: arrow_stream(pa.table({"id": pa.nulls(rows, pa.int8())})),
    }
    for form, body in bodies.items():
        sizes: list[int] = []
        bad_records = BadRecords(write=lambda records, sizes=sizes: sizes.append(len(records)))
        assert list(iter_tables(form, io.BytesIO(body), SCHEMA, bad_records=bad_records)) == []
        bad_records.close()
        assert bad_records.count == sum(sizes) == rows, form
        assert max(sizes) == 100, form


def test_positions_in_an_ndjson_split_count_from_its_start():
    lines = [b'{"id":%d}' % number if number % 3 else b"bad %d" % number for number in range(50)]
    data = b"\n".join(lines)
    rows = 0
    positions = []
    for split in plan_splits(Format.NDJSON, io.BytesIO(data), len(data), 60):
        table, bad = stepwise(Format.NDJSON, data, split=split)
        positions += [rows + record.position for record in bad]
        rows += table.num_rows + len(bad)
    assert positions == list(range(0, 50, 3))


def test_rows_as_json_have_the_values_that_reads_return():
    columns = {"a": pa.array([1, 2]), "b": pa.array([[0.5], None], pa.list_(pa.float32()))}
    assert [json.loads(text) for text in json_texts(columns, 2)] == [
        {"a": 1, "b": [0.5]},
        {"a": 2, "b": None},
    ]
    assert json_texts({}, 2) == [b"{}", b"{}"]
    assert np.float32(0.1) == json.loads(json_texts({"x": pa.array([0.1], pa.float32())}, 1)[0])["x"]


def test_pointer_of_a_name_that_is_no_text_has_its_escape():
    texts = [b'{"id": 1}', b'{"id": 2, "\\ud800/\\u00e4": 1}']
    _, bad = read(lambda bad_records: decode_ndjson(b"\n".join(texts), SCHEMA, bad_records=bad_records))
    assert [(record.position, record.errors[0].pointer) for record in bad] == [(1, "/\\ud800~1ä")]
