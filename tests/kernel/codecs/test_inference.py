"""Inference: what is inferred decodes, what decodes is exact, and the types do not depend on where parts end."""

from __future__ import annotations

import datetime as dt
import io
import json
import uuid
from decimal import Decimal
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.codecs import shape_inference, stream
from app.kernel.codecs.record_errors import BadRecord, BadRecords
from app.kernel.codecs.shape_inference import KIND_CELLS, infer_shapes
from app.kernel.codecs.splits import Split, plan_splits
from app.kernel.codecs.stream import iter_tables
from app.kernel.format.definition.schema_merge import inferred_types
from app.kernel.format.errors import SchemaMismatch
from app.kernel.format.rows.formats import Format
from app.kernel.format.schema.shapes import NULLS, Shape, common_members
from tests.kernel.codecs.samples import arrow_stream, schema_of

DOUBLE_DIGITS = 17

DIGITS = st.text("0123456789", min_size=1, max_size=24)
NUMBER_TEXTS = st.one_of(
    DIGITS,
    st.integers(-(10**40), 10**40).map(str),
    st.builds("{}{}.{}".format, st.sampled_from(["", "-", "+"]), DIGITS, DIGITS),
    st.builds("{}e{}".format, st.integers(-(10**20), 10**20), st.integers(-400, 400)),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(
        ["0", "-0", "+5", "007", "-01", ".5", "5.", "1e400", "1e-400", "9007199254740993", "0.0"]
    ),
)
TIME_TEXTS = st.one_of(
    st.dates().map(str),
    st.datetimes().map(dt.datetime.isoformat),
    st.datetimes(timezones=st.just(dt.UTC)).map(lambda time: time.isoformat().replace("+00:00", "Z")),
    st.sampled_from(
        [
            "2024-02-30",
            "0000-01-01",
            "2024-01-01T00:00:00z",
            "2024-01-01t00:00:00",
            "2024-01-01 10:00:00+05:30",
            "2024-01-01T10:00:00.1234567",
            "2024-01-01T10:00:00.123000000Z",
            "0001-01-01T00:00:00+01:00",
        ]
    ),
)
OTHER_TEXTS = st.one_of(
    st.uuids().map(str),
    st.uuids().map(lambda each: str(each).upper()),
    st.sampled_from(["true", "false", "True", "NaN", "inf", "0x1F", "1_000", " 1", "1 ", "", "٣"]),
    st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=4),
)
COLUMN = st.one_of(
    *(st.lists(each, min_size=1, max_size=8) for each in (NUMBER_TEXTS, TIME_TEXTS, OTHER_TEXTS)),
    *(
        st.lists(each | st.none(), min_size=1, max_size=8)
        for each in (
            st.integers(-(10**20), 10**20).map(str),
            st.dates().map(str),
            st.sampled_from(["true", "false"]),
        )
    ),
    st.lists(NUMBER_TEXTS | TIME_TEXTS | OTHER_TEXTS | st.none(), min_size=1, max_size=8),
)


def csv_of(*columns: list[str | None]) -> bytes:
    """A CSV with the columns c0, c1 …: None is an empty cell, and other cells are in quotes."""
    lines = [[f"c{number}" for number in range(len(columns))]]
    lines += [
        ["" if cell is None else f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in row]
        for row in zip(*columns, strict=True)
    ]
    return "".join(",".join(line) + "\n" for line in lines).encode()


def types_of(
    form: Format, content: bytes, *, split_bytes: int = 1 << 20, outliers: bool = False
) -> dict[str, str]:
    source = io.BytesIO(content)
    shapes: dict[str, Shape] = {}
    for split in plan_splits(form, source, len(content), split_bytes):
        shapes = common_members(shapes, infer_shapes(form, source, split, outliers=outliers))
    return inferred_types({name: shape for name, shape in shapes.items() if shape != NULLS})


def decoded(form: Format, content: bytes, types: dict[str, str]) -> list[dict[str, Any]]:
    tables = iter_tables(form, io.BytesIO(content), schema_of(types))
    return list(chain.from_iterable(table.to_pylist() for table in tables))


def is_exact(text: str, value: Any) -> bool:
    """Whether the value is what the text says."""
    match value:
        case bool():
            return text == str(value).lower()
        case str():
            return text == value
        case int():
            return text == str(value)
        case Decimal():
            return Decimal(text) == value
        case float():
            digits = Decimal(text).normalize().as_tuple().digits
            whole = "." not in text and "e" not in text.lower()
            return float(text) == value and (
                Decimal(text) == Decimal(value) if whole else len(digits) <= DOUBLE_DIGITS
            )
        case dt.datetime():
            return dt.datetime.fromisoformat(text) == value
        case dt.date():
            return text == value.isoformat()
        case bytes():
            return uuid.UUID(text).bytes == value
    return False


@given(COLUMN)
def test_every_csv_decodes_exactly_under_its_inferred_types(cells: list[str | None]) -> None:
    content = csv_of(["x"] * len(cells), cells)
    types = {"c0": "string", "c1": "string"} | types_of(Format.CSV, content)
    rows = decoded(Format.CSV, content, types)
    assert len(rows) == len(cells)
    for row, cell in zip(rows, cells, strict=True):
        value = row["c1"]
        if cell is None:
            assert value is None
        else:
            assert is_exact(cell, value), (cell, types, value)


@given(COLUMN, COLUMN, st.integers(1, 40))
def test_types_of_csv_do_not_depend_on_where_blocks_end(
    one: list[str | None], other: list[str | None], block_bytes: int
) -> None:
    rows = max(len(one), len(other))
    content = csv_of(*(column + [None] * (rows - len(column)) for column in (one, other)))
    expected = types_of(Format.CSV, content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "READ_BYTES", len(b"c0,c1\n") + block_bytes)
        assert types_of(Format.CSV, content) == expected


@given(st.lists(NUMBER_TEXTS | TIME_TEXTS, min_size=1, max_size=12), st.integers(1, 4), st.integers(1, 40))
def test_kind_of_the_first_cells_does_not_depend_on_where_blocks_end(
    cells: list[str], first: int, block_bytes: int
) -> None:
    content = csv_of(cells)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shape_inference._KindOfFirst.__init__, "__defaults__", (NULLS, NULLS, first))
        expected = types_of(Format.CSV, content, outliers=True)
        patch.setattr(stream, "READ_BYTES", len(b"c0\n") + block_bytes)
        assert types_of(Format.CSV, content, outliers=True) == expected
    kept: list[BadRecord] = []
    bad_records = BadRecords(write=kept.extend)
    tables = iter_tables(Format.CSV, io.BytesIO(content), schema_of(expected), bad_records=bad_records)
    good = sum(table.num_rows for table in tables)
    bad_records.close()
    assert good + len(kept) == len(cells)
    # The first cells determined the type, so all of them fit it.
    assert all(record.position >= first for record in kept)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**42), 10**42).map(str).map(Decimal),
    st.integers(-5, 5).map(str).map(Decimal),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**6), max_value=10**6),
    st.decimals(allow_nan=False, allow_infinity=False, places=20, min_value=-(10**16), max_value=10**16),
    st.floats(allow_nan=False, allow_infinity=False).map(repr).map(Decimal),
    st.text(st.characters(codec="utf-8"), max_size=3),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


def json_of(value: Any) -> str:
    """The JSON of a value in which numbers are decimals."""
    match value:
        case Decimal():
            return str(value)
        case list():
            return "[" + ",".join(map(json_of, value)) + "]"
        case dict():
            return "{" + ",".join(f"{json.dumps(name)}:{json_of(each)}" for name, each in value.items()) + "}"
    return json.dumps(value)


def holds(value: Any, stored: Any) -> bool:
    """Whether a stored value is exactly the value that was sent: members that were absent are null."""
    match value, stored:
        case dict(), dict():
            return all(holds(value.get(name), stored.get(name)) for name in value.keys() | stored.keys())
        case list(), list():
            return len(value) == len(stored) and all(map(holds, value, stored))
        case Decimal(), bool():
            return False
        case Decimal(), float():
            is_whole = value.as_tuple().exponent == 0
            digits = value.normalize().as_tuple().digits
            exact = value == Decimal(stored) if is_whole else len(digits) <= DOUBLE_DIGITS
            return exact and float(value) == stored
        case Decimal(), (int() | Decimal()):
            return value == stored
    return bool(value == stored) and type(value) is type(stored)


@given(st.lists(st.dictionaries(st.sampled_from("xyz"), VALUES, max_size=3), min_size=1, max_size=6))
def test_json_rows_decode_exactly_or_are_named(rows: list[dict[str, Any]]) -> None:
    content = "\n".join(map(json_of, rows)).encode()
    try:
        types = types_of(Format.NDJSON, content)
    except SchemaMismatch:
        # A column has lists or objects without values only.
        return
    if not types:
        return
    kept: list[BadRecord] = []
    bad_records = BadRecords(write=kept.extend)
    tables = iter_tables(Format.NDJSON, io.BytesIO(content), schema_of(types), bad_records=bad_records)
    good = list(chain.from_iterable(table.to_pylist() for table in tables))
    bad_records.close()
    refused = {record.position for record in kept}
    sent = [row for number, row in enumerate(rows) if number not in refused]
    assert len(good) == len(sent)
    for row, stored in zip(sent, good, strict=True):
        assert holds({name: value for name, value in row.items() if name in types}, stored), (
            row,
            stored,
            types,
        )


@given(
    st.lists(st.dictionaries(st.sampled_from("xyz"), VALUES, max_size=3), min_size=1, max_size=6),
    st.integers(1, 60),
)
def test_types_of_json_do_not_depend_on_where_splits_end(
    rows: list[dict[str, Any]], split_bytes: int
) -> None:
    content = "\n".join(map(json_of, rows)).encode()

    def found(split_bytes: int) -> dict[str, str] | str:
        try:
            return types_of(Format.NDJSON, content, split_bytes=split_bytes)
        except SchemaMismatch as error:
            return str(error.facts["errors"])

    assert found(split_bytes) == found(1 << 20)


@pytest.mark.parametrize(
    ("cells", "type_"),
    [
        (["1234567890123456789"], "int64"),
        (["-9223372036854775808", "9223372036854775807"], "int64"),
        (["9223372036854775808"], "decimal(38, 0)"),
        (["9" * 38], "decimal(38, 0)"),
        (["9" * 39], "string"),
        (["9007199254740993", "0.5"], "decimal(38, 1)"),
        (["9007199254740992", "0.5"], "double"),
        (["0.12345678901234567", "1"], "double"),
        (["0.123456789012345678"], "decimal(38, 18)"),
        (["1.230000000000000000e+00"], "double"),
        (["0." + "1" * 39], "string"),
        (["1e400"], "string"),
        (["1e-400"], "string"),
        (["+5"], "string"),
        (["+5", "1"], "string"),
        (["007", "1"], "string"),
        (["-01"], "string"),
        (["-0"], "string"),
        (["-0.0"], "double"),
        (["0x1F"], "string"),
        (["2024-01-01", None], "date"),
        (["2024-01-01", "2024-01-01T00:00:00"], "string"),
        (["2024-01-01T00:00:00", "2024-01-01 00:00:00.5"], "timestamp_ntz"),
        (["2024-01-01T00:00:00Z", "2024-01-01 00:00:00.123456+01:00"], "timestamp"),
        (["2024-01-01T00:00:00.1234567Z"], "string"),
        (["2024-13-01"], "string"),
        (["0190163d-8694-739b-aea5-966c26f8ad91"], "uuid"),
        (["0190163d8694739baea5966c26f8ad91"], "string"),
        (["true", "false", None], "boolean"),
        (["true", "1"], "string"),
        (["TRUE"], "string"),
        (["1", ""], "string"),
    ],
)
def test_type_of_csv_cells(cells: list[str | None], type_: str) -> None:
    assert types_of(Format.CSV, csv_of(cells)) == {"c0": type_}


def test_outliers_of_a_column_leave_its_type() -> None:
    numbers: list[str | None] = [str(number) for number in range(KIND_CELLS)]
    outliers = csv_of([*numbers, "n/a", "1234567890123456789", "2.5"])
    assert types_of(Format.CSV, outliers) == {"c0": "string"}
    assert types_of(Format.CSV, outliers, outliers=True) == {"c0": "decimal(38, 1)"}
    assert types_of(Format.CSV, csv_of([*numbers[1:], "n/a"]), outliers=True) == {"c0": "string"}


@pytest.mark.parametrize("form", [Format.NDJSON, Format.JSON_ROWS])
def test_number_that_no_type_holds_leaves_the_type_of_the_others(form: Format) -> None:
    rows = [
        f'{{"id": {value}, "x": {other}}}' for value, other in ((1, "0.5"), ("9" * 50, "9" * 50), (2, 1.5))
    ]
    content = "\n".join(rows) if form is Format.NDJSON else f"[{', '.join(rows)}]"
    shapes = infer_shapes(form, io.BytesIO(content.encode()), Split())
    assert inferred_types(shapes) == {"id": "int64", "x": "double"}


@pytest.mark.parametrize("bad", ["NaN", r'"\ud800"', "1e400"])
def test_record_that_is_no_json_leaves_the_columns_of_an_array(bad: str) -> None:
    content = f'[{{"id": 1}}, {{"id": {bad}}}, {{"id": 3, "note": "x"}}]'.encode()
    shapes = infer_shapes(Format.JSON_ROWS, io.BytesIO(content), Split())
    types = inferred_types(shapes)
    assert types["note"] == "string"
    kept: list[BadRecord] = []
    bad_records = BadRecords(write=kept.extend)
    schema = schema_of({"id": "int64", "note": "string"})
    tables = iter_tables(Format.JSON_ROWS, io.BytesIO(content), schema, bad_records=bad_records)
    assert [row["id"] for table in tables for row in table.to_pylist()] == [1, 3]
    bad_records.close()
    assert [record.position for record in kept] == [1]


@pytest.mark.parametrize("form", [Format.ARROW, Format.PARQUET])
def test_unnamed_index_of_a_frame_is_no_column(form: Format) -> None:
    index = pa.array([3, 5])
    described = {b"pandas": b'{"index_columns": ["__index_level_0__"], "columns": []}'}
    table = pa.table({"x": [1, 2], "__index_level_0__": index})
    for metadata, names in ((described, ["x"]), (None, ["x", "__index_level_0__"])):
        body = columnar(form, table.replace_schema_metadata(metadata))
        types = inferred_types(infer_shapes(form, io.BytesIO(body), Split()))
        assert list(types) == names
        rows = pa.concat_tables(iter_tables(form, io.BytesIO(body), schema_of(types)))
        assert rows.column_names == names


def columnar(form: Format, table: pa.Table) -> bytes:
    if form is Format.ARROW:
        return arrow_stream(table)
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def test_unnamed_first_column_is_explained() -> None:
    with pytest.raises(SchemaMismatch, match=r"column 1 of the header line has no name; .* index=False"):
        infer_shapes(Format.CSV, io.BytesIO(b",id\n0,1\n"), Split())
