"""Casts of values to the types of columns."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from io import BytesIO
from typing import Any

import pyarrow as pa
import pytest

from app.kernel.codecs.arrow.explicit_casts import cast_explicit, castable
from app.kernel.codecs.record_errors import BadRecord, BadRecords
from app.kernel.codecs.stream import iter_tables
from app.kernel.format.errors import SchemaMismatch
from app.kernel.format.rows.formats import Format
from app.kernel.format.schema.types import parse_type, to_arrow
from tests.kernel.codecs.samples import schema_of


def _cast(value: Any, source: pa.DataType, target: str) -> Any:
    """The value that is cast; an exception class if it is not castable."""
    array, bad = cast_explicit(pa.array([value], source), parse_type(target))
    assert array.type == to_arrow(parse_type(target))
    return ValueError if bad else array[0].as_py()


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (300, pa.int32(), "int8", ValueError),
        (-1, pa.int64(), "uint32", ValueError),
        (2**64 - 1, pa.uint64(), "int64", ValueError),
        (2**53 + 1, pa.int64(), "double", 2.0**53),
        (12, pa.int32(), "decimal(4, 2)", Decimal("12.00")),
        (123, pa.int32(), "decimal(4, 2)", ValueError),
        (-1.9, pa.float64(), "int32", -1),
        (3e9, pa.float64(), "int32", ValueError),
        (float("nan"), pa.float64(), "int32", ValueError),
        (float("nan"), pa.float64(), "string", ValueError),
        (float("-inf"), pa.float32(), "string", ValueError),
        (float("nan"), pa.float64(), "boolean", ValueError),
        (1e39, pa.float64(), "float", ValueError),
        (1.005, pa.float64(), "decimal(5, 2)", Decimal("1.01")),
        (Decimal("9.995"), pa.decimal128(5, 3), "decimal(3, 2)", ValueError),
        (Decimal("-2.5"), pa.decimal128(5, 1), "decimal(5, 0)", Decimal(-3)),
        (Decimal("-2.9"), pa.decimal128(5, 1), "int8", -2),
        (" +42\t", pa.string(), "int16", 42),
        ("1.5", pa.string(), "int16", ValueError),
        ("1.5e1", pa.large_string(), "double", 15.0),
        ("NaN", pa.string(), "double", ValueError),
        ("2.345", pa.string(), "decimal(3, 2)", Decimal("2.35")),
        ("", pa.string(), "int32", ValueError),
        (" Yes", pa.string(), "boolean", True),
        ("2", pa.string(), "boolean", ValueError),
        ("2026-1-2", pa.string(), "date", dt.date(2026, 1, 2)),
        ("2026-02-30", pa.string(), "date", ValueError),
        ("2026-11-21 10:00:00.5+01:00", pa.string(), "timestamp", "2026-11-21T09:00:00.500000+00:00"),
        ("2026-11-21T10:00", pa.string(), "timestamp_ntz", "2026-11-21T10:00:00"),
        ("2026-11-21 25:00:00", pa.string(), "timestamp", ValueError),
        (True, pa.bool_(), "decimal(2, 1)", Decimal("1.0")),
        (0, pa.int8(), "boolean", False),
        (dt.date(2026, 11, 21), pa.date32(), "string", "2026-11-21"),
        (dt.date(2026, 11, 21), pa.date64(), "timestamp_ntz", "2026-11-21T00:00:00"),
        (-1, pa.timestamp("us", "UTC"), "date", dt.date(1969, 12, 31)),
        (1_500, pa.timestamp("ns"), "timestamp_ntz", "1970-01-01T00:00:00.000001"),
        (1_999, pa.timestamp("us"), "timestamp_ntz(ms)", "1970-01-01T00:00:00.001000"),
        (1e10, pa.float64(), "string", "1.0E10"),
        (0.1, pa.float32(), "string", "0.1"),
        (Decimal("0.0000001"), pa.decimal128(10, 7), "string", "0.0000001"),
        (b"\xff", pa.binary(), "string", ValueError),
        ("ż", pa.string(), "binary", "ż".encode()),
    ],
)
def test_a_value_is_cast_or_not_castable(value: Any, source: pa.DataType, target: str, expected: Any) -> None:
    found = _cast(value, source, target)
    shown = found.isoformat() if isinstance(found, dt.datetime) else found
    assert shown == expected
    assert type(shown) is type(expected)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (pa.date32(), "int32"),
        (pa.int32(), "date"),
        (pa.int32(), "binary"),
        (pa.bool_(), "timestamp"),
        (pa.binary(), "int32"),
        (pa.list_(pa.int32()), "string"),
        (pa.struct([("a", pa.string())]), "struct<a: int32>"),
        (pa.month_day_nano_interval(), "string"),
    ],
)
def test_types_without_a_cast(source: pa.DataType, target: str) -> None:
    assert not castable(source, parse_type(target))


_SCHEMA = schema_of({"id": "int64", "size": "int8"})


def _arrow(table: pa.Table) -> bytes:
    sink = BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _rows(
    texts: list[str | None], bad_records: BadRecords | None, *, explicit_cast: bool = True
) -> list[Any]:
    body = BytesIO(_arrow(pa.table({"id": range(len(texts)), "size": pa.array(texts, pa.string())})))
    tables = iter_tables(Format.ARROW, body, _SCHEMA, bad_records=bad_records, explicit_cast=explicit_cast)
    return [row for table in tables for row in table.to_pylist()]


def test_values_that_cannot_be_cast_fail_the_input() -> None:
    assert _rows(["1", None], None) == [{"id": 0, "size": 1}, {"id": 1, "size": None}]
    with pytest.raises(SchemaMismatch, match="'128' of type string cannot be cast to int8"):
        _rows(["1", "128"], None)


def test_columns_are_cast_on_request_only() -> None:
    with pytest.raises(SchemaMismatch, match="cannot be converted without loss"):
        _rows(["1"], None, explicit_cast=False)


def test_rows_that_cannot_be_cast_are_quarantined_as_they_were() -> None:
    written: list[BadRecord] = []
    bad = BadRecords(write=written.extend)
    assert _rows(["1", "x", "3"], bad) == [{"id": 0, "size": 1}, {"id": 2, "size": 3}]
    bad.close()
    assert [(each.position, each.payload) for each in written] == [(1, b'{"id":1,"size":"x"}')]
    assert [error.pointer for error in written[0].errors] == ["/size"]


def test_a_row_that_is_no_valid_text_is_quarantined_as_it_was() -> None:
    texts = pa.array([b"1", b"\xff"], pa.binary()).view(pa.string())
    body = BytesIO(_arrow(pa.table({"id": [0, 1], "size": texts})))
    written: list[BadRecord] = []
    bad = BadRecords(write=written.extend)
    tables = iter_tables(Format.ARROW, body, _SCHEMA, bad_records=bad, explicit_cast=True)
    assert [row for table in tables for row in table.to_pylist()] == [{"id": 0, "size": 1}]
    bad.close()
    assert [each.position for each in written] == [1]
    assert b'"id":1' in written[0].payload


def test_values_of_a_dictionary_are_cast_once_and_refused_in_each_of_their_rows() -> None:
    array = pa.array(["1.5", "x", None, "x", "1.5"]).dictionary_encode()
    found, bad = cast_explicit(array, parse_type("float"))
    assert found.to_pylist() == [1.5, None, None, None, 1.5]
    assert sorted(bad) == [1, 3]
    assert "cannot be cast to float" in bad[1]


@pytest.mark.parametrize("text", ["16777217", "0.1", "1e-42", "3.4028235677973366e38", "16777217.000000001"])
def test_text_is_rounded_once_to_a_float(text: str) -> None:
    found, bad = cast_explicit(pa.array([text]), parse_type("float"))
    expected = pa.array([text]).cast(pa.float32())[0].as_py()
    assert (found[0].as_py(), bool(bad)) == ((None, True) if math.isinf(expected) else (expected, False))


@pytest.mark.parametrize(
    ("array", "target"),
    [
        (pa.array([1e305]), "timestamp"),
        (pa.array([2**62], pa.int64()).cast(pa.timestamp("s")), "date"),
        (pa.array(["9" * 100_000]), "decimal(38, 0)"),
    ],
    ids=["number", "seconds", "text"],
)
def test_value_out_of_range_is_refused_with_its_row(array: pa.Array, target: str) -> None:
    found, bad = cast_explicit(array, parse_type(target))
    assert found.to_pylist() == [None]
    assert list(bad) == [0]
    assert len(bad[0]) < 250


@pytest.mark.parametrize("scale", [10_000, -(10**8)])
def test_decimal_whose_scale_no_number_has_is_not_castable(scale: int) -> None:
    assert not castable(pa.decimal128(5, scale), parse_type("int64"))


def test_uuids_become_strings_and_are_quarantined_as_texts() -> None:
    text = "0190163d-8694-739b-aea5-966c26f8ad91"
    schema = schema_of({"x": "string", "n": "int32"})
    rows = pa.table({"x": pa.array([uuid.UUID(text).bytes] * 2, pa.uuid()), "n": ["1", "one"]})
    written: list[BadRecord] = []
    bad = BadRecords(write=written.extend)
    tables = iter_tables(Format.ARROW, BytesIO(_arrow(rows)), schema, bad_records=bad, explicit_cast=True)
    assert [row for table in tables for row in table.to_pylist()] == [{"x": text, "n": 1}]
    bad.close()
    assert [each.payload for each in written] == [f'{{"x":"{text}","n":"one"}}'.encode()]


@pytest.mark.parametrize(("tick", "unit"), [(10**15, "ms"), (10**13, "s"), (10**18, "us")])
def test_a_time_out_of_range_is_named_in_its_own_unit(tick: int, unit: str) -> None:
    _, bad = cast_explicit(pa.array([tick], pa.timestamp(unit)), parse_type("date"))
    assert bad == {
        0: f"{tick} {unit} since 1970-01-01 of type timestamp[{unit}] cannot be cast to date: "
        "it is outside the years 0001–9999"
    }
