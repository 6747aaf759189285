"""Arrow data of strangers: which types and values are taken, and the words for the others."""

from __future__ import annotations

import decimal
import json

import pyarrow as pa
import pytest
from hypothesis import given, settings

from app.kernel.codecs import conform
from app.kernel.codecs.arrow.arrow_casts import is_exact
from app.kernel.codecs.record_errors import BadRecords
from app.kernel.format.errors import BodyTooLarge, MalformedBody, SchemaMismatch
from app.kernel.format.schema.types import parse_type
from tests.kernel.codecs.samples import schema_of, tables
from tests.support.examples import a_third_of
from tests.support.shares import share


@pytest.mark.parametrize(
    ("source", "target", "taken"),
    [
        (pa.int8(), "int64", True),
        (pa.uint8(), "int16", True),
        (pa.uint32(), "int64", True),
        (pa.int64(), "int32", True),
        (pa.int8(), "uint32", True),
        (pa.uint64(), "int64", True),
        (pa.int32(), "double", True),
        (pa.bool_(), "int8", False),
        (pa.int8(), "boolean", False),
        (pa.float32(), "double", True),
        (pa.float16(), "float", True),
        (pa.float64(), "float", False),
        (pa.string(), "int32", False),
        (pa.large_string(), "string", True),
        (pa.string_view(), "string", True),
        (pa.dictionary(pa.int8(), pa.string()), "string", True),
        (pa.dictionary(pa.int32(), pa.int8()), "int16", True),
        (pa.dictionary(pa.int32(), pa.int64()), "int16", True),
        (pa.binary(), "string", False),
        (pa.string(), "binary", False),
        (pa.large_binary(), "binary", True),
        (pa.binary_view(), "binary", True),
        (pa.binary(16), "binary", True),
        (pa.date32(), "date", True),
        (pa.date64(), "date", True),
        (pa.timestamp("s"), "date", False),
        (pa.date32(), "timestamp_ntz", False),
        (pa.timestamp("s", "UTC"), "timestamp", True),
        (pa.timestamp("ms", "Europe/Paris"), "timestamp", True),
        (pa.timestamp("us", "UTC"), "timestamp(ms)", True),
        (pa.timestamp("ns", "UTC"), "timestamp", True),
        (pa.timestamp("us"), "timestamp", False),
        (pa.timestamp("us", "UTC"), "timestamp_ntz", False),
        (pa.timestamp("ms"), "timestamp_ntz", True),
        (pa.time64("us"), "timestamp", False),
        (pa.duration("us"), "int64", False),
        (pa.time64("us"), "string", True),
        (pa.duration("us"), "string", True),
        (pa.month_day_nano_interval(), "string", False),
        (pa.decimal128(5, 2), "decimal(7, 2)", True),
        (pa.decimal128(5, 2), "decimal(7, 4)", True),
        (pa.decimal128(5, 2), "decimal(6, 4)", True),
        (pa.decimal128(7, 2), "decimal(5, 2)", True),
        (pa.decimal128(5, 3), "decimal(9, 2)", True),
        (pa.decimal256(38, 2), "decimal(38, 2)", True),
        (pa.decimal32(5, 2), "decimal(5, 2)", True),
        (pa.int64(), "decimal(38, 0)", True),
        (pa.null(), "list<int8>", True),
        (pa.list_(pa.int8()), "list<int16>", True),
        (pa.large_list(pa.dictionary(pa.int8(), pa.string())), "list<string>", True),
        (pa.list_(pa.int8(), 3), "list<int8>", True),
        (pa.list_(pa.int64()), "list<int16>", True),
        (pa.map_(pa.string(), pa.int8()), "map<string, int16>", True),
        (pa.map_(pa.string(), pa.int64()), "map<string, int16>", True),
        (pa.list_(pa.struct({"key": pa.string(), "value": pa.int8()})), "map<string, int8>", False),
        (pa.struct({"b": pa.int8()}), "struct<a: string, b: int16>", True),
        (pa.struct({"b": pa.int64()}), "struct<a: string, b: int16>", True),
        (pa.struct({"c": pa.int8()}), "struct<a: string, b: int16>", False),
        (pa.struct([("b", pa.int8()), ("b", pa.int8())]), "struct<a: string, b: int16>", False),
        (pa.run_end_encoded(pa.int32(), pa.int8()), "int8", False),
        (pa.list_view(pa.int8()), "list<int8>", False),
        (pa.uuid(), "binary", False),
    ],
)
def test_only_exact_casts_are_accepted(source, target, taken):
    assert is_exact(source, parse_type(target)) == taken
    schema = schema_of({"c": target})
    empty = pa.table({"c": pa.array([], source)})
    if taken:
        assert conform(empty, schema).schema == schema.to_arrow()
        null = conform(pa.table({"c": pa.nulls(2, source)}), schema)
        assert null == pa.table(
            {"c": pa.nulls(2, schema.to_arrow().field("c").type)}, schema=schema.to_arrow()
        )
    else:
        with pytest.raises(SchemaMismatch) as caught:
            conform(empty, schema)
        assert f'column "c": expected {target}, got Arrow type {source}' in caught.value.detail


def test_values_survive_every_cast():
    days = pa.array([0, 86_400_000], pa.date64())
    source_table = pa.table(
        {
            "st": pa.array([{"b": 1}, None, {"b": None}], pa.struct({"b": pa.int8()})).slice(1),
            "l": pa.array([["x"], ["a", None], None], pa.large_list(pa.large_string())).slice(1),
            "m": pa.array([[("z", 9)], [("k", 1.5)], None], pa.map_(pa.string(), pa.float32())).slice(1),
            "d": pa.array(["p", None, "q"]).dictionary_encode().slice(1),
            "day": days,
            "t": pa.array([1, None], pa.timestamp("s", "Asia/Tokyo")),
            "dec": pa.array([decimal.Decimal("1.5"), None], pa.decimal256(3, 1)),
            "v": pa.array(["short", "a text longer than a view holds"], pa.string_view()),
        }
    )
    schema = schema_of(
        {
            "missing": "map<string, string>",
            "v": "string",
            "dec": "decimal(10, 3)",
            "t": "timestamp",
            "day": "date",
            "d": "string",
            "m": "map<string, double>",
            "l": "list<string>",
            "st": "struct<a: string, b: int64>",
        }
    )
    table = conform(source_table, schema)
    assert table.schema == schema.to_arrow()
    table.validate(full=True)
    assert [str(value) for value in table["t"].to_pylist()] == ["1970-01-01 00:00:01+00:00", "None"]
    assert [str(value) for value in table["day"].to_pylist()] == ["1970-01-01", "1970-01-02"]
    assert [str(value) for value in table["dec"].to_pylist()] == ["1.500", "None"]
    assert table.drop_columns(["t", "day", "dec"]).to_pylist() == [
        {
            "missing": None,
            "v": "short",
            "d": None,
            "m": [("k", 1.5)],
            "l": ["a", None],
            "st": None,
        },
        {
            "missing": None,
            "v": "a text longer than a view holds",
            "d": "q",
            "m": None,
            "l": None,
            "st": {"a": None, "b": None},
        },
    ]


@share(2)
@given(tables())
@settings(max_examples=a_third_of(100), deadline=None)
def test_table_of_the_schema_is_unchanged_in_any_column_order(sample):
    schema, table = sample
    assert conform(table.select(table.column_names[::-1]), schema) == table
    assert conform(pa.concat_tables([table, table]).slice(1), schema) == pa.concat_tables(
        [table, table]
    ).slice(1)


FAR = 253_402_300_800


@pytest.mark.parametrize(
    ("target", "column", "rows", "reason"),
    [
        ("int8!", pa.array([1, None, 2, None], pa.int8()), [1, 3], "got null"),
        ("int8!", pa.nulls(2), [0, 1], "got null"),
        ("double", [1.0, float("nan"), None, float("-inf")], [1, 3], "NaN or an infinity"),
        ("float", pa.array([float("inf")], pa.float16()), [0], "NaN or an infinity"),
        (
            "list<double>",
            [[1.0], [1.0, float("nan")], None, [float("nan")] * 2],
            [1, 3],
            "NaN or an infinity",
        ),
        (
            "struct<x: map<string, double>>",
            pa.array(
                [None, {"x": [("a", float("nan"))]}], pa.struct({"x": pa.map_(pa.string(), pa.float64())})
            ),
            [1],
            "NaN or an infinity",
        ),
        (
            "date",
            pa.array([0, -719_163, 2_932_897], pa.int32()).cast(pa.date32()),
            [1, 2],
            "outside the years",
        ),
        ("timestamp", pa.array([FAR - 1, FAR], pa.timestamp("s", "UTC")), [1], "outside the years"),
        ("timestamp_ntz(ms)", pa.array([-62_135_596_801], pa.timestamp("s")), [0], "outside the years"),
        (
            "map<string, int8>",
            pa.array([[("a", 1)], [("a", 1), ("a", 1)]], pa.map_(pa.string(), pa.int8())),
            [1],
            "a key appears more than once",
        ),
        (
            "list<map<int8, int8>>",
            pa.array([[[(1, 1)], [(1, 2)]], [[(1, 1), (1, 1)]]], pa.list_(pa.map_(pa.int8(), pa.int8()))),
            [1],
            "a key appears more than once",
        ),
    ],
)
def test_values_without_a_json_form_are_named_by_row(target, column, rows, reason):
    with pytest.raises(SchemaMismatch) as caught:
        conform(pa.table({"c": column}), schema_of({"c": target}), first_row=10)
    errors = caught.value.facts["errors"]
    assert [error["pointer"] for error in errors] == [f"/rows/{10 + row}/c" for row in rows]
    assert all(reason in error["detail"] and target.rstrip("!") in error["detail"] for error in errors)


def test_values_behind_nulls_are_ignored():
    nan = pa.array([float("nan"), 1.0])
    hidden = pa.StructArray.from_arrays([nan], ["x"], mask=pa.array([True, False]))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), nan, mask=pa.array([True, False]))
    table = conform(
        pa.table({"s": hidden, "l": lists}), schema_of({"s": "struct<x: double>", "l": "list<double>"})
    )
    assert table.to_pylist() == [{"s": None, "l": None}, {"s": {"x": 1.0}, "l": [1.0]}]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"id": [1], "z": [1]}, 'column "z": the schema has no field "z"'),
        ({"id": [1], "ID": [1]}, 'column "ID": the schema has no field "ID"; it has "id"'),
        ({"a": ["x"]}, 'a column is missing: a value is required: "id" is int64'),
    ],
)
def test_columns_that_do_not_match_the_schema_are_refused(columns, reason):
    with pytest.raises(SchemaMismatch) as caught:
        conform(pa.table(columns), schema_of({"id": "int64!", "a": "string"}))
    assert reason in caught.value.detail


def test_duplicate_column_is_refused():
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    with pytest.raises(SchemaMismatch, match="appears more than once"):
        conform(twice, schema_of({"id": "int64"}))


def forged(
    kind: pa.DataType, buffers: list[bytes | None], length: int, children: list[pa.Array] = ()
) -> pa.Array:
    """An array of whatever bytes."""
    arrays = [None if data is None else pa.py_buffer(data) for data in buffers]
    return pa.Array.from_buffers(kind, length, arrays, children=list(children))


def int32s(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(4, "little", signed=True) for number in numbers)


def test_invalid_utf8_is_named_by_row():
    for kind in (pa.string(), pa.large_string()):
        width = 4 if kind == pa.string() else 8
        offsets = b"".join(number.to_bytes(width, "little") for number in (0, 1, 2, 3))
        array = forged(kind, [None, offsets, b"a\xffb"], 3)
        with pytest.raises(SchemaMismatch) as caught:
            conform(pa.table({"s": array}), schema_of({"s": "string"}), first_row=5)
        assert caught.value.facts["errors"] == [
            {"pointer": "/rows/6/s", "detail": "expected string, got invalid UTF-8"}
        ]


BAD_TEXT = forged(pa.string(), [None, int32s(0, 1, 2, 3), b"a\xffb"], 3)


@pytest.mark.parametrize(
    ("array", "target", "row"),
    [
        (pa.StructArray.from_arrays([BAD_TEXT], ["x"]), "struct<x: string>", 1),
        (pa.ListArray.from_arrays(pa.array([0, 1, 1, 3], pa.int32()), BAD_TEXT), "list<string>", 2),
        (
            pa.MapArray.from_arrays(
                pa.array([0, 2, 3], pa.int32()), pa.array([1, 2, 3], pa.int8()), BAD_TEXT
            ),
            "map<int8, string>",
            0,
        ),
    ],
    ids=["struct", "list", "map"],
)
def test_nested_invalid_utf8_is_named_by_row(array, target, row):
    with pytest.raises(SchemaMismatch) as caught:
        conform(pa.table({"s": array}), schema_of({"s": target}))
    assert [error["pointer"] for error in caught.value.facts["errors"]] == [f"/rows/{row}/s"]


@pytest.mark.parametrize(
    ("array", "target"),
    [
        (pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), BAD_TEXT), "string"),
        (forged(pa.list_(pa.string()), [None, int32s(0, 2, 1)], 2, [BAD_TEXT]), "list<string>"),
    ],
    ids=["dictionary", "offsets"],
)
def test_invalid_utf8_outside_all_rows_refuses_the_body(array, target):
    with pytest.raises(MalformedBody, match="are inconsistent"):
        conform(pa.table({"s": array}), schema_of({"s": target}))


@pytest.mark.parametrize(
    ("array", "target"),
    [
        (
            pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int32()), pa.array(["a"]), safe=False),
            "string",
        ),
        (forged(pa.string_view(), [None, int32s(20, 0, 0, 900), b"y" * 20], 1), "string"),
        (forged(pa.string_view(), [None, int32s(20, 0, 7, 0), b"y" * 20], 1), "string"),
    ],
    ids=["dictionary index", "view beyond its bytes", "view of no buffer"],
)
def test_inconsistent_buffers_are_refused(array, target):
    with pytest.raises(MalformedBody, match="are inconsistent"):
        conform(pa.table({"s": array}), schema_of({"s": target}))


def test_decimals_beyond_their_precision_are_refused():
    # 1000 as a decimal(3, 0): what the type says is not so.
    array = forged(pa.decimal128(3, 0), [None, (1000).to_bytes(16, "little")], 1)
    with pytest.raises(MalformedBody, match="precision"):
        conform(pa.table({"d": array}), schema_of({"d": "decimal(3, 0)"}))


@share(2)
@pytest.mark.parametrize(
    "bomb",
    [
        pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), pa.array(["x" * 1_000_000])),
        pa.Array.from_buffers(pa.null(), 1 << 40, [None]),
        pa.array([[None] * 1000], pa.list_(pa.null())).take(pa.array([0] * 200_000)),
    ],
    ids=["dictionary", "nulls", "lists of nulls"],
)
def test_body_that_expands_beyond_its_bound_is_refused_first(bomb):
    before = pa.default_memory_pool().max_memory()
    target = "list<string>" if pa.types.is_list(bomb.type) else "string"
    with pytest.raises(BodyTooLarge):
        conform(pa.table({"s": bomb}), schema_of({"s": target}))
    assert pa.default_memory_pool().max_memory() - before < 1_500_000_000


def test_string_views_are_counted_by_their_expanded_size():
    _, view, shown = pa.array(["y" * 2_000_000], pa.string_view()).buffers()
    many = forged(pa.string_view(), [None, view.to_pybytes() * 100_000, shown.to_pybytes()], 100_000)
    for array, target in (
        (many, "string"),
        (pa.ListArray.from_arrays(pa.array([0, 100_000], pa.int32()), many), "list<string>"),
        (pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), many), "string"),
    ):
        with pytest.raises(BodyTooLarge):
            conform(pa.table({"s": array}), schema_of({"s": target}))
    few = forged(pa.string_view(), [None, view.to_pybytes() * 3, shown.to_pybytes()], 3)
    assert conform(pa.table({"s": few}), schema_of({"s": "string"}))["s"].to_pylist() == ["y" * 2_000_000] * 3


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_strings_are_read_as_uuids(kind: pa.DataType) -> None:
    text = "0190163d-8694-739b-aea5-966c26f8ad91"
    schema = schema_of({"x": "uuid"})
    table = conform(pa.table({"x": pa.array([text.upper(), None, text], pa.string()).cast(kind)}), schema)
    value = bytes.fromhex(text.replace("-", ""))
    assert table.column("x").to_pylist() == [value, None, value]
    with pytest.raises(SchemaMismatch, match="it is not written as 8-4-4-4-12") as caught:
        conform(pa.table({"x": pa.array([text, "7"], pa.string()).cast(kind)}), schema)
    assert [error["pointer"] for error in caught.value.facts["errors"]] == ["/rows/1/x"]
    with pytest.raises(SchemaMismatch, match="without loss"):
        conform(pa.table({"x": [text]}), schema_of({"x": "binary"}))


TIMES_AND_DAYS = [
    (pa.time32("s"), 90_000, "string", "90000 s since midnight"),
    (pa.time64("us"), -5, "string", "-5 us since midnight"),
    (pa.date64(), 1, "date", "1 ms since 1970-01-01"),
    (pa.date64(), 2**60, "date", f"{2**60} ms since 1970-01-01"),
    (pa.date32(), 4_000_000, "date", "4000000 days since 1970-01-01"),
    (pa.timestamp("us"), 2**62, "timestamp_ntz", f"{2**62} us since 1970-01-01"),
    (pa.timestamp("s", "UTC"), 2**50, "timestamp", f"{2**50} s since 1970-01-01"),
    (pa.timestamp("ms"), -(2**60), "timestamp_ntz(ms)", f"{-(2**60)} ms since 1970-01-01"),
]


@pytest.mark.parametrize(("kind", "number", "target", "text"), TIMES_AND_DAYS)
def test_times_and_days_out_of_range_are_errors_of_their_rows(kind, number, target, text):
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    table = pa.table({"c": pa.array([0, number], width).view(kind), "d": [1, 2]})
    with pytest.raises(SchemaMismatch) as caught:
        conform(table, schema_of({"c": target, "d": "int64"}))
    [error] = caught.value.facts["errors"]
    assert error["pointer"] == "/rows/1/c"
    assert f"expected {target}, got {text}, which" in error["detail"]
    bad = []
    records = BadRecords(write=bad.extend)
    assert conform(table, schema_of({"c": target, "d": "int64"}), bad_records=records).num_rows == 1
    records.close()
    sent = "1970-01-01 00:00:00.001" if number == 1 else text
    assert json.loads(bad[0].payload) == {"c": sent, "d": 2}
