"""The limits of one row and of the rows of a write: the same in every format, in memory and step by step."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.kernel.codecs import (
    BadRecord,
    BadRecords,
    Format,
    Split,
    decode_csv,
    decode_json_rows,
    decode_ndjson,
    iter_tables,
    plan_splits,
    stream,
)
from app.kernel.codecs.records import iter_record_tables
from app.kernel.format.errors import MalformedBody, RowTooLarge, SchemaMismatch, TooManyRows
from app.kernel.format.rows.row_limits import EXCERPT_BYTES, RowLimits
from tests.kernel.codecs.samples import arrow_stream, parquet, schema_of

SCHEMA = schema_of({"id": "int64!", "name": "string", "tags": "list<string>"})
LIMITS = RowLimits(row_bytes_max=4_000)
LARGE = {7: "x" * 90_000, 20: "y" * 4_100, 39: "z," * 2_100}
ROWS = [{"id": number, "name": LARGE.get(number, f"n{number}"), "tags": ["a", "b"]} for number in range(40)]


def csv_cell(value: object) -> str:
    return '"' + str(value).replace('"', '""') + '"'


def csv_body(rows: list[dict], *, quoted: bool = True) -> bytes:
    def line(row: dict) -> str:
        name = csv_cell(row["name"]) if quoted or "," in row["name"] else row["name"]
        return f"{row['id']},{name},{csv_cell(json.dumps(row['tags']))}\n"

    return ("id,name,tags\n" + "".join(map(line, rows))).encode()


def table(rows: list[dict]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA.to_arrow())


BODIES = {
    "json": (Format.JSON_ROWS, json.dumps(ROWS).encode()),
    "ndjson": (Format.NDJSON, "\n".join(map(json.dumps, ROWS)).encode()),
    "csv": (Format.CSV, csv_body(ROWS)),
    "csv without quotes": (Format.CSV, csv_body(ROWS, quoted=False)),
    "arrow": (Format.ARROW, arrow_stream(table(ROWS), max_chunksize=16)),
    "arrow dictionary": (
        Format.ARROW,
        arrow_stream(table(ROWS).set_column(1, "name", table(ROWS)["name"].dictionary_encode())),
    ),
    "parquet": (Format.PARQUET, parquet(table(ROWS), row_group_size=9)),
}


def decoded(form: Format, data: bytes, limits: RowLimits, bad_records: BadRecords | None = None) -> pa.Table:
    return pa.concat_tables(
        [
            SCHEMA.to_arrow().empty_table(),
            *iter_tables(form, io.BytesIO(data), SCHEMA, bad_records=bad_records, limits=limits),
        ]
    )


def in_memory(
    form: Format, data: bytes, limits: RowLimits, bad_records: BadRecords | None = None
) -> pa.Table:
    decode = {Format.JSON_ROWS: decode_json_rows, Format.NDJSON: decode_ndjson, Format.CSV: decode_csv}[form]
    return decode(data, SCHEMA, pointer="/rows", limits=limits, bad_records=bad_records)


def ways(name: str):
    form, _ = BODIES[name]
    return [decoded] if form in (Format.ARROW, Format.PARQUET) else [decoded, in_memory]


@pytest.fixture(params=[1_000, 1 << 20], autouse=True)
def read_bytes(request, monkeypatch):
    monkeypatch.setattr(stream, "READ_BYTES", request.param)


@pytest.mark.parametrize("name", BODIES)
def test_row_above_the_limit_is_refused_with_its_place(name):
    form, data = BODIES[name]
    for decode in ways(name):
        with pytest.raises(
            RowTooLarge, match=r"row 7 .*has more than 4000 bytes: store large values"
        ) as refusal:
            decode(form, data, LIMITS)
        facts = refusal.value.facts
        line = {Format.NDJSON: {"line": 8}, Format.CSV: {"line": 9}, Format.JSON_ROWS: {"line": 1}}
        assert facts == {"limit_bytes": 4_000, "row": 7, "pointer": "/rows/7", **line.get(form, {})}
        assert decode(form, data, RowLimits(row_bytes_max=200_000)).num_rows == 40


@pytest.mark.parametrize("name", BODIES)
def test_row_above_the_limit_is_quarantined_with_an_excerpt_that_is_no_other_record(name):
    form, data = BODIES[name]
    for decode in ways(name):
        kept: list[BadRecord] = []
        bad_records = BadRecords(write=kept.extend)
        good = decode(form, data, LIMITS, bad_records)
        bad_records.close()
        assert good["id"].to_pylist() == [number for number in range(40) if number not in LARGE]
        kept.sort(key=lambda record: record.position)
        assert [record.position for record in kept] == list(LARGE)
        for record in kept:
            assert "more than 4000 bytes" in record.errors[0].detail
            assert 0 < len(record.payload) <= EXCERPT_BYTES + 1
            assert str(record.position).encode() in record.payload[:20]
        # A redrive takes whole rows only: a part of a row is not the row.
        file = io.BytesIO()
        columns = {
            "payload": pa.array([each.payload for each in kept], pa.binary()),
            "header": pa.array([each.header for each in kept], pa.binary()),
        }
        pq.write_table(pa.table(columns), file)
        again = BadRecords(write=lambda _: None)
        redriven = 0
        for rows in iter_record_tables(file, SCHEMA, split=Split(), bad_records=again):
            assert rows.to_pylist() == [ROWS[number] for number in rows["id"].to_pylist()]
            redriven += rows.num_rows
        assert again.count + redriven == 3
        assert again.count


def test_row_above_the_limit_in_a_later_split_is_numbered_in_the_whole_body(read_bytes):
    form, data = BODIES["ndjson"]
    split = Split(byte_range=(data.index(b'{"id": 9,'), len(data)))
    with pytest.raises(RowTooLarge) as refusal:
        list(iter_tables(form, io.BytesIO(data), SCHEMA, split=split, limits=LIMITS))
    assert refusal.value.facts == {"limit_bytes": 4_000, "row": 20, "pointer": "/rows/20", "line": 21}


def test_faults_of_earlier_rows_are_reported_first():
    data = b'{"id":"x"}\n{"id":1,"name":"' + b"x" * 5_000 + b'"}'
    with pytest.raises(SchemaMismatch, match="/rows/0/id"):
        decode_ndjson(data, SCHEMA, limits=LIMITS)


def test_line_without_an_end_is_quarantined_and_the_rest_is_read():
    body = b'{"id":1,"name":"' + b"x" * 300_000 + b"\n" + b'{"id":2}\n' + b"y" * 100_000
    kept: list[BadRecord] = []
    bad_records = BadRecords(write=kept.extend)
    assert decoded(Format.NDJSON, body, LIMITS, bad_records)["id"].to_pylist() == [2]
    bad_records.close()
    assert [(record.position, bad_records.records) for record in kept] == [(0, 3), (2, 3)]


@pytest.mark.parametrize("name", BODIES)
def test_write_has_a_limited_number_of_rows(name):
    form, data = BODIES[name]
    for decode in ways(name):
        assert decode(form, data, RowLimits(rows_max=40)).num_rows == 40
        with pytest.raises(TooManyRows, match="more than 39 rows: send them as several writes") as refusal:
            decode(form, data, RowLimits(rows_max=39))
        assert refusal.value.facts == {"limit_rows": 39}
        with pytest.raises(TooManyRows):
            decode(form, data, RowLimits(rows_max=39, row_bytes_max=4_000), BadRecords(write=lambda _: None))
    if form is Format.PARQUET:
        with pytest.raises(TooManyRows):
            plan_splits(form, io.BytesIO(data), len(data), 1, limits=RowLimits(rows_max=39))


def test_text_above_the_limit_that_is_not_utf8_is_kept_as_an_excerpt():
    texts = pa.array([b"ok", b"\xff" * 100_000, b"\xff"], pa.binary()).view(pa.string())
    rows = pa.table({"id": [1, 2, 3], "name": texts})
    kept: list[BadRecord] = []
    bad_records = BadRecords(write=kept.extend)
    assert decoded(Format.ARROW, arrow_stream(rows), LIMITS, bad_records)["id"].to_pylist() == [1]
    bad_records.close()
    assert [(record.position, len(record.payload) < 100) for record in kept] == [(1, True), (2, True)]
    with pytest.raises(MalformedBody):
        decode_ndjson(kept[0].payload, SCHEMA)
