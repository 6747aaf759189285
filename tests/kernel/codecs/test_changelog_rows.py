"""Changes as input: every form has the same operations, in order, as strictly as rows are read."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kernel.changelog.delivery_forms import ChangeForm, in_form
from app.kernel.codecs import (
    BadRecord,
    BadRecords,
    Format,
    Split,
    decode_json_rows,
    decode_ndjson,
    iter_tables,
    plan_splits,
    stream,
)
from app.kernel.codecs.faults import Faults
from app.kernel.codecs.json.changelog_rows import reader_of
from app.kernel.codecs.json.encode import encode_changes_json
from app.kernel.codecs.records import RECORD_FIELDS, iter_record_tables
from app.kernel.codecs.value_parser import parse_json
from app.kernel.format.errors import MalformedBody, SchemaMismatch
from app.kernel.format.rows.change_schema import ChangeSchema, change_schema
from app.kernel.format.rows.changelog import OP_COLUMN, Op
from tests.kernel.codecs.changes import CHANGES, OOLONG, TEA, OpRows, ndjson, op_rows, stepwise
from tests.kernel.codecs.samples import arrow_stream, data_types, nullable, parquet, schema_of
from tests.support.examples import a_third_of
from tests.support.shares import share


@pytest.mark.parametrize(
    ("record", "changes"),
    [
        ({"op": "+A", "row": TEA}, [("+A", TEA)]),
        ({"op": "-R", "row": {"id": 1}}, [("-R", {"id": 1})]),
        ({"op": "-C", "row": {"id": 1, "name": None}}, [("-C", {"id": 1})]),
        ({"op": "+C", "row": OOLONG}, [("+C", OOLONG)]),
        (
            {"offset": 7, "op": "+A", "version": 1, "system_time": "x", "event_time": None, "row": TEA},
            [("+A", TEA)],
        ),
        ({"op": "c", "before": None, "after": TEA}, [("+A", TEA)]),
        ({"op": "r", "after": TEA, "source": {"db": "x", "n": [1, '"']}, "ts_ms": 5}, [("+A", TEA)]),
        ({"op": "d", "before": TEA, "after": None, "transaction": None}, [("-R", TEA)]),
        ({"op": "d", "before": {"id": 1}}, [("-R", {"id": 1})]),
        ({"op": "u", "before": TEA, "after": OOLONG, "ts_us": 1, "ts_ns": 2}, [("-C", TEA), ("+C", OOLONG)]),
        ({"op": "u", "before": None, "after": OOLONG}, [("+C", OOLONG)]),
        ({"op": "c", "after": TEA, "else": {"what": "ever"}}, [("+A", TEA)]),
        ({"schema": {"type": "struct"}, "payload": {"op": "c", "after": TEA}}, [("+A", TEA)]),
        ({"payload": {"op": "d", "before": TEA, "new": 1}}, [("-R", TEA)]),
        ({"schema": None, "payload": None}, []),
        (None, []),
    ],
)
def test_record_is_read_as_its_changes(record: Any, changes: OpRows) -> None:
    assert op_rows(decode_ndjson(ndjson(record), CHANGES)) == changes
    assert op_rows(decode_json_rows(json.dumps([record]).encode(), CHANGES)) == changes
    mixed = ndjson({"op": "+A", "row": TEA}, record, {"op": "c", "after": TEA})
    assert op_rows(decode_ndjson(mixed, CHANGES)) == [("+A", TEA), *changes, ("+A", TEA)]
    assert op_rows(stepwise(Format.NDJSON, mixed)) == [("+A", TEA), *changes, ("+A", TEA)]


@pytest.mark.parametrize(
    ("record", "pointer", "words"),
    [
        (
            {"op": "+X", "row": TEA},
            "/op",
            'expected +A, -R, -C or +C, or Debezium\'s c, r, u or d, got string "+X"',
        ),
        ({"op": 4, "row": TEA}, "/op", "got the number 4"),
        ({"op": True, "row": TEA}, "/op", "got true"),
        ({"row": TEA}, "/op", "got none"),
        ({"op": "+A", "before": TEA, "row": TEA}, "/before", 'expected null unless the op is "U"'),
        ({"_change_type": "+A", "row": TEA}, "/_change_type", "expected insert, delete"),
        ({"_change_type": "insert", "row": TEA, "x": 1}, "/x", "a change has no member"),
        ([], "", "expected a change, an object with its op, got an array"),
        ("x", "", 'got string "x"'),
        ({"op": "+A"}, "/row", "got null"),
        ({"op": "+A", "row": None}, "/row", "got null"),
        ({"op": "+A", "row": [1]}, "/row", "got an array"),
        ({"op": "+A", "row": {"id": 1}}, "/row/name", 'a value is required: "name" is string'),
        ({"op": "+C", "row": {"id": 1, "name": None}}, "/row/name", "got null"),
        ({"op": "-R", "row": {"name": "tea"}}, "/row/id", 'a value is required: "id" is int64'),
        ({"op": "-R", "row": {"id": None}}, "/row/id", "got null"),
        ({"op": "-R", "row": {"id": 1, "colour": 2}}, "/row/colour", "the schema has no field"),
        ({"op": "+A", "row": {**TEA, "price": "x"}}, "/row/price", "not a decimal number"),
        (
            {"op": "+A", "row": TEA, "price": 2},
            "/price",
            'a change has no member "price": fields belong in "row"',
        ),
        ({"op": "+A", "row": TEA, "after": TEA}, "/after", "a change has no member"),
        ({"op": "c", "row": TEA}, "/after", "got null"),
        ({"op": "u", "before": TEA}, "/after", "got null"),
        ({"op": "d", "before": None, "after": None}, "/before", "got null"),
        ({"op": "c", "before": TEA, "after": TEA}, "/before", 'expected null in an envelope of op "c"'),
        ({"op": "t", "before": None, "after": None}, "/op", "all rows of the source were deleted"),
        ({"op": "d", "before": TEA, "after": TEA}, "/after", 'expected null in an envelope of op "d"'),
        ({"op": "u", "before": {"id": "1"}, "after": TEA}, "/before/id", "expected int64"),
        ({"payload": {"op": "c", "after": {"id": 1}}}, "/payload/after/name", "a value is required"),
        ({"payload": {"op": "c", "after": TEA}, "x": 1}, "/x", 'only "schema" is allowed beside "payload"'),
        ({"payload": [1]}, "/payload", "got an array"),
    ],
)
def test_record_error_names_its_position(record: Any, pointer: str, words: str) -> None:
    data = ndjson(None, {"op": "u", "before": TEA, "after": TEA}, record)
    for read in (
        lambda: decode_ndjson(data, CHANGES),
        lambda: stepwise(Format.NDJSON, data),
        lambda: decode_json_rows(json.dumps([None, TEA, record]).encode(), CHANGES, pointer="/rows"),
    ):
        with pytest.raises(SchemaMismatch) as caught:
            read()
        error = caught.value.facts["errors"][-1]
        assert error["pointer"] == f"/rows/2{pointer}"
        assert words in error["detail"]


@pytest.mark.parametrize(
    "text",
    [
        b'{"op":"+A","op":"-R","row":{"id":1,"name":"x"}}',
        b'{"op":"+A","row":{"id":1,"name":"x"},"row":{"id":2,"name":"x"}}',
        b'{"op":"+A","row":{"id":1,"name":"x","name":"y"}}',
        b'{"op":"c","after":{"id":1,"name":"x"},"after":{"id":1,"name":"x"}}',
        b'{"op":"c","after":{"id":1,"name":"x"},"source":{},"source":{}}',
        b'{"payload":{"op":"c","after":{"id":1,"name":"x"}},"payload":null}',
        b'{"offset":1,"op":"+A","offset":2,"row":{"id":1,"name":"x"}}',
    ],
)
def test_duplicate_member_is_refused(text: bytes) -> None:
    with pytest.raises(SchemaMismatch, match="more than once"):
        decode_ndjson(text, CHANGES)


def test_record_that_is_not_json_is_refused() -> None:
    with pytest.raises(MalformedBody, match="row 1"):
        decode_ndjson(ndjson(None) + b'{"op":"+A","row":', CHANGES)


@st.composite
def feeds(draw: st.DrawFn) -> tuple[ChangeSchema, pa.Table]:
    """Changes of a dataset with a key and up to three other columns of any type, as the feed has them."""
    kinds = draw(st.lists(data_types(), max_size=3))
    names = ["row", "op", "é\u2028"]
    columns = {"id": "int64!"} | {name: str(kind) for name, kind in zip(names, kinds, strict=False)}
    schema = schema_of(columns)
    ops = draw(st.lists(st.sampled_from([[0], [1], [2, 3]]), max_size=6))
    codes = [code for pair in ops for code in pair]
    arrays = [
        pa.array(draw(st.lists(st.integers(0, 9), min_size=len(codes), max_size=len(codes))), pa.int64())
    ]
    for field, kind in zip(list(schema.to_arrow())[1:], kinds, strict=True):
        values = draw(st.lists(nullable(kind), min_size=len(codes), max_size=len(codes)))
        arrays.append(pa.array(values, field.type))
    rows = pa.Table.from_arrays(arrays, schema=schema.to_arrow())
    return change_schema(schema, ["id"]), feed(codes, rows)


def feed(codes: list[int], rows: pa.Table) -> pa.Table:
    count = len(codes)
    struct = rows.to_struct_array()
    return pa.table(
        {
            "offset": pa.array(range(count), pa.int64()),
            "op": pa.array(codes, pa.uint8()),
            "version": pa.array([3] * count, pa.int64()),
            "system_time": pa.array([1_700_000_000_000] * count, pa.timestamp("ms", tz="UTC")),
            "event_time": pa.nulls(count),
            "row": struct if struct.num_chunks else pa.array([], struct.type),
        }
    )


@share(2)
@given(feeds(), st.integers(1, 200), st.integers(1, 60))
@settings(deadline=None, max_examples=a_third_of(150))
def test_feed_of_another_dataset_is_read_unchanged(
    sample: tuple[ChangeSchema, pa.Table], target: int, read_bytes: int
) -> None:
    schema, changes = sample
    ops = changes["op"].combine_chunks()
    rows = pa.Table.from_struct_array(changes["row"])
    expected = pa.Table.from_arrays([ops, *rows.columns], schema=schema.to_arrow())
    if not changes.num_rows:
        return
    by_form = {
        form: encode_changes_json(in_form(changes, form, "d").table, as_ndjson=True)
        for form in (ChangeForm.TWO_EVENT, ChangeForm.DEBEZIUM)
    }
    wrapped = b"".join(
        b'{"schema":{"a":"\\""},"payload":%s}\nnull\n' % line
        for line in by_form[ChangeForm.DEBEZIUM].splitlines()
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "READ_BYTES", read_bytes)
        for data in (*by_form.values(), wrapped):
            assert decode_ndjson(data, schema) == expected
            splits = plan_splits(Format.NDJSON, io.BytesIO(data), len(data), target)
            assert (
                pa.concat_tables(stepwise(Format.NDJSON, data, schema, each) for each in splits) == expected
            )
            assert decode_json_rows(b"[" + b",".join(data.splitlines()) + b"]", schema) == expected


RECORDS = [
    b'{"op":"+A","row":{"id":1,"name":"x"}}',
    b'{"op":"-R","row":{"id":1}}',
    b'{"op":"+A","row":{"id":1}}',
    b'{"op":"\\u002bA","row":{"id":1,"name":"x"}}',
    b'{"op":"+A","row":{"id":1,"name":"x"},"version":1,"version":1}',
    b'{"op":"+A","row":{"id":1,"name":"\\""}}',
    b'{"op":"+B","row":{"id":1,"name":"x"}}',
    b'{"op":"+A","row":null}',
    b'{"op":"+A"}',
    b'{"op":0,"row":{"id":1,"name":"x"}}',
    b'{"op":"c","before":null,"after":{"id":1,"name":"x"}}',
    b'{"op":"c","after":{"id":1,"name":"x"},"extra":1}',
    b'{"op":"c","before":{"id":1},"after":{"id":1,"name":"x"}}',
    b'{"op":"u","before":{"id":1},"after":{"id":1,"name":"x"}}',
    b'{"op":"u","before":{"id":"1"},"after":{"id":1,"name":"x"}}',
    b'{"op":"u","after":null}',
    b'{"op":"d","before":{"id":1,"price":"1.00"},"after":null}',
    b'{"op":"d","before":{"price":"1.00"}}',
    b'{"payload":null}',
    b'{"payload":{"op":"c","after":{"id":1,"name":"x"}},"schema":{"x":1}}',
    b'{"payload":{"op":"c","after":{"id":1}}}',
    b'{"payload":{"payload":null}}',
    b"null",
    b"[]",
    b"{}",
    b"1",
    b'{"op":0.0,"row":{"id":1,"name":"x"}}',
    b'{"op":true,"row":{"id":1,"name":"x"}}',
    b'{"op":"U","row":{"id":1,"name":"x"},"before":{"id":1}}',
    b'{"op":"U","row":{"id":1,"name":"x"},"before":null,"before":null}',
    b'{"op":"-R","row":{"id":1},"before":{"id":1}}',
    b'{"_change_type":"insert","row":{"id":1,"name":"x"},"_commit_version":1}',
    b'{"_change_type":"insert","row":{"id":1,"name":"x"},"_commit_version":1,"_commit_version":1}',
    b'{"_change_type":"+A","row":{"id":1,"name":"x"}}',
]


@pytest.mark.parametrize("text", RECORDS, ids=bytes.decode)
def test_batch_decoder_accepts_only_what_the_exact_reader_accepts(text: bytes) -> None:
    reader = reader_of(CHANGES)
    faults = Faults()
    found = reader.read(parse_json(text.decode()), faults)
    decode_batch = reader.decode_batch([text], set())
    if decode_batch is not None:
        assert not faults.count
        assert decode_batch == reader.table(found)


def test_usual_records_are_decoded_in_batches() -> None:
    reader = reader_of(CHANGES)
    batches = [
        RECORDS[:2],
        RECORDS[9:10],
        RECORDS[10:11] + RECORDS[13:14] + RECORDS[16:17],
        RECORDS[18:20],
        [b'{"op":"U","row":{"id":1,"name":"x"},"before":{"id":1}}'],
        [b'{"_change_type":"insert","row":{"id":1,"name":"x"},"_commit_version":1}'],
    ]
    for texts in batches:
        table = reader.decode_batch([*texts, b"null"], set())
        assert table is not None
        assert table.num_rows >= 1


@given(st.lists(st.sampled_from(RECORDS), min_size=1, max_size=12))
@settings(deadline=None, max_examples=a_third_of(150))
def test_bad_record_rejects_only_its_own_changes(records: list[bytes]) -> None:
    expected: OpRows = []
    bad = []
    for number, record in enumerate(records):
        try:
            expected += op_rows(decode_ndjson(record, CHANGES))
        except SchemaMismatch:
            bad.append((number, record))
    kept: list[BadRecord] = []
    bad_records = BadRecords(write=kept.extend)
    tables = list(
        iter_tables(Format.NDJSON, io.BytesIO(b"\n".join(records)), CHANGES, bad_records=bad_records)
    )
    bad_records.close()
    assert [change for table in tables for change in op_rows(table)] == expected
    assert [(record.position, record.payload) for record in kept] == bad
    assert bad_records.records == len(records)


def test_bad_changes_of_every_format_can_be_redriven() -> None:
    table = pa.table({"op": ["+A", "+X", "-R"], "id": [1, 2, None], "name": ["a", "b", "c"]})
    coded = table.set_column(0, "op", pa.array([0, 9, 1], pa.int8()))
    csv = b"op,id,name\n+A,1,a\n+X,2,b\n-R,,c\n"
    for form, data in (
        (Format.ARROW, arrow_stream(table)),
        (Format.PARQUET, parquet(coded)),
        (Format.CSV, csv),
        (
            Format.NDJSON,
            ndjson({"op": "+A", "row": TEA}, {"op": "+X", "row": OOLONG}, {"op": "d", "before": {}}),
        ),
    ):
        kept: list[BadRecord] = []
        bad_records = BadRecords(write=kept.extend)
        list(iter_tables(form, io.BytesIO(data), CHANGES, bad_records=bad_records))
        bad_records.close()
        assert [record.position for record in kept] == [1, 2]
        # As a person would repair them.
        payloads = [
            record.payload.replace(b"+X", b"+A").replace(b'"9"', b'"+A"').replace(b"{}", b'{"id":3}')
            .replace(b'"id":null', b'"id":3').replace(b"-R,,", b"-R,3,")
            for record in kept
        ]  # fmt: skip
        headers = [record.header for record in kept]
        again = pa.table([payloads, headers], schema=pa.schema(RECORD_FIELDS))
        tables = list(iter_record_tables(io.BytesIO(parquet(again)), CHANGES, split=Split()))
        found = [change for each in tables for change in op_rows(each)]
        assert [(op, row["id"]) for op, row in found] == [
            ("+A", 1 if form is Format.NDJSON else 2),
            ("-R", 3),
        ]


def test_large_feed_is_read_in_order_and_in_steps() -> None:
    count = 80_000
    lines = b"".join(
        b'{"op":"u","before":{"id":%d},"after":{"id":%d,"name":"x"}}\n' % (n, n) for n in range(count)
    )
    tables = list(iter_tables(Format.NDJSON, io.BytesIO(lines), CHANGES))
    assert len(tables) > 1
    table = pa.concat_tables(tables)
    assert table["id"].to_numpy().tolist() == np.repeat(np.arange(count), 2).tolist()
    assert table[OP_COLUMN].to_numpy().tolist() == [Op.CORRECT_FROM, Op.CORRECT_TO] * count


@pytest.mark.parametrize("beside", [{}, {"unknown": 1}], ids=["at once", "one by one"])
def test_message_for_other_readers_is_no_change(beside: dict[str, Any]) -> None:
    message = {
        "op": "m",
        "ts_ms": 7,
        "source": {"lsn": 1},
        "message": {"prefix": "p", "content": "YQ=="},
        **beside,
    }
    put = {"op": "c", "before": None, "after": TEA}
    assert op_rows(stepwise(Format.NDJSON, ndjson(message, put, message))) == [("+A", TEA)]
    assert op_rows(stepwise(Format.NDJSON, ndjson({"payload": message}))) == []
