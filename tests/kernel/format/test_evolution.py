"""Changes of a schema: what each makes of it, what is refused, and that rows written before are read right."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from app.kernel.format.dataset import Aggregate, DatasetDefinition, MergeMode
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.evolution import evolve, under_schema
from app.kernel.format.definition.new_dataset import (
    CreateBucket,
    CreateDataset,
    CreateField,
    CreateSchema,
    CreateSequenceGroup,
)
from app.kernel.format.definition.schema_change import (
    AddField,
    DropField,
    RelaxField,
    RenameField,
    ReorderFields,
    SchemaChange,
    UpdateDataset,
    WidenField,
)
from app.kernel.format.errors import SchemaChangeRefused
from app.kernel.format.file_group import ColumnStatistics
from app.kernel.format.schema.member_ids import with_member_ids
from app.kernel.format.schema.schema import Schema
from app.kernel.format.schema.schema_projection import project_rows
from app.kernel.format.schema.types import parse_type
from app.kernel.format.schema.widening import why_not_wider
from app.kernel.sql.conditions.parse import parse_filter
from app.kernel.sql.conditions.prune import may_match

DATASET = define_dataset(
    CreateDataset(
        name="t",
        schema=CreateSchema(
            fields=[
                CreateField(name="id", type="int32"),
                CreateField(name="region", type="string"),
                CreateField(name="ts", type="int32"),
                CreateField(name="at", type="timestamp(ms)"),
                CreateField(name="n", type="int32", nullable=False),
                CreateField(name="address", type="struct<street: string, zip: int32>"),
            ]
        ),
        record_key=["region", "id"],
        partition_by=["region"],
        ordering_field="ts",
        event_time_field="at",
        bucket=CreateBucket(key=["id"]),
    )
)


def add(name: str, kind: str = "int64", *, nullable: bool = True) -> AddField:
    return AddField(field=CreateField(name=name, type=kind, nullable=nullable))


def widen(name: str, kind: str, *, explicit_cast: bool = False) -> WidenField:
    return WidenField(name=name, type_=kind, explicit_cast=explicit_cast)


def naive(*parts: int) -> dt.datetime:
    """A wall-clock time: a value of type timestamp_ntz."""
    return dt.datetime(*parts, tzinfo=dt.UTC).replace(tzinfo=None)


def described(schema: Schema) -> list[tuple[int, str, str, bool]]:
    return [(field.id, field.name, field.type, field.nullable) for field in schema.fields]


def test_each_change_makes_the_next_schema() -> None:
    found = evolve(
        DATASET,
        [
            add("note", "string"),
            RenameField(name="at", to="happened_at"),
            widen("n", "int64"),
            RelaxField(name="n"),
            widen("address", "struct<zip: int64, street: string, city: string>"),
            ReorderFields(names=["id", "region", "n", "note", "ts", "happened_at", "address"]),
        ],
    )
    assert found.schema.id == 2
    assert described(found.schema) == [
        (1, "id", "int32", False),
        (2, "region", "string", False),
        (5, "n", "int64", True),
        (9, "note", "string", True),
        (3, "ts", "int32", True),
        (4, "happened_at", "timestamp(ms)", True),
        (6, "address", "struct<zip: int64, street: string, city: string>", True),
    ]
    assert found.event_time_field == "happened_at"
    assert msgspec.structs.replace(found, schema=DATASET.schema, event_time_field="at") == DATASET


def test_dataset_under_an_earlier_schema_uses_its_fields_by_id() -> None:
    later = evolve(
        DATASET, [RenameField(name="at", to="n2"), DropField(name="n"), RenameField(name="n2", to="n")]
    )
    assert later.event_time_field == "n"
    assert under_schema(later, DATASET.schema) == DATASET
    assert under_schema(later, later.schema) == later


def test_field_id_is_never_reused() -> None:
    dropped = evolve(DATASET, [DropField(name="address"), DropField(name="n")])
    again = evolve(dropped, [add("n"), add("address")])
    assert described(again.schema)[-2:] == [(9, "n", "int64", True), (10, "address", "int64", True)]
    once_more = evolve(evolve(again, [DropField(name="address")]), [add("address")])
    assert once_more.schema.field("address").id == 11


def test_definition_stored_without_schema_changes_is_readable() -> None:
    stored = msgspec.to_builtins(DATASET)
    del stored["schema"]["last_field_id"]
    for field in stored["schema"]["fields"]:
        field.pop("member_ids", None)
    found = msgspec.convert(stored, DatasetDefinition)
    assert with_member_ids(found.schema) == DATASET.schema
    assert found.schema.highest_field_id == 6


REFUSED = [
    (add("N"), "field/name", "there is a field 'n' already"),
    (add("_hw_x"), "field/name", "reserved"),
    (add(""), "field/name", "printable"),
    (add("x", "text"), None, ""),
    (add("x", "money"), "field/type", "unknown type 'money'"),
    (add("x", nullable=False), "field/nullable", "existing rows have no value"),
    (DropField(name="nope"), "name", "there is no field 'nope'"),
    (DropField(name="id"), "name", "'id' is part of the record key: it cannot be dropped"),
    (DropField(name="ts"), "name", "the ordering field"),
    (DropField(name="at"), "name", "the event time field"),
    (RenameField(name="id", to="key"), "name", "part of the record key: it keeps its name"),
    (RenameField(name="region", to="area"), "name", "keeps its name"),
    (RenameField(name="ts", to="order"), "name", "the ordering field: it keeps its name"),
    (RenameField(name="n", to="TS"), "to", "there is a field 'ts' already"),
    (RenameField(name="n", to="n"), "to", "already has this name"),
    (RenameField(name="n", to="N"), None, ""),
    (RenameField(name="m", to="x"), "name", "there is no field 'm'"),
    (widen("id", "int64"), "name", "part of the record key: it keeps its type"),
    (widen("ts", "int64"), "name", "the ordering field: it keeps its type"),
    (widen("n", "int32"), "type", "is already of type int32"),
    (widen("n", "int16"), "type", "int16 does not hold every value of int32; it may become int64, double"),
    (widen("n", "float"), "type", "does not hold every value"),
    (widen("n", "string"), "type", "does not hold every value"),
    (widen("n", "number"), "type", "unknown type"),
    (widen("at", "timestamp_ntz"), "type", "it may become timestamp"),
    (widen("at", "timestamp"), None, ""),
    (widen("address", "struct<street: string>"), "type", "member 'zip' is missing"),
    (widen("address", "struct<street: string, zip: int8>"), "type", "member 'zip': int8 does not hold"),
    (RelaxField(name="id"), "name", "part of the record key: it stays required"),
    (RelaxField(name="at"), "name", "already accepts nulls"),
    (ReorderFields(names=["id", "n"]), "names", "missing: ['region', 'ts', 'at', 'address']"),
    (ReorderFields(names=["id", "id", "region", "ts", "at", "n", "address"]), "names", "7 named"),
    (ReorderFields(names=["id", "region", "ts", "at", "n", "address"]), "names", "already have this order"),
]


@pytest.mark.parametrize(("change", "member", "reason"), REFUSED, ids=[str(case[0]) for case in REFUSED])
def test_invalid_change_is_named_with_its_reason(
    change: SchemaChange, member: str | None, reason: str
) -> None:
    if member is None:
        assert evolve(DATASET, [change]).schema.id == 2
        return
    with pytest.raises(SchemaChangeRefused) as caught:
        evolve(DATASET, [change, add("fine")])
    [error] = caught.value.facts["errors"]
    assert error["pointer"] == f"/changes/0/{member}"
    assert reason in error["detail"]


def test_every_invalid_change_is_reported() -> None:
    with pytest.raises(SchemaChangeRefused) as caught:
        evolve(DATASET, [DropField(name="id"), add("x"), DropField(name="x"), DropField(name="ts")])
    assert [error["pointer"] for error in caught.value.facts["errors"]] == [
        "/changes/0/name",
        "/changes/3/name",
    ]
    with pytest.raises(SchemaChangeRefused, match="expected 1–2000 changes, got 0"):
        evolve(DATASET, [])


def test_last_field_cannot_be_dropped() -> None:
    bare = define_dataset(
        CreateDataset(name="t", schema=CreateSchema(fields=[CreateField(name="a", type="string")]))
    )
    with pytest.raises(SchemaChangeRefused, match="a dataset needs at least one"):
        evolve(bare, [DropField(name="a")])


def test_partial_and_aggregate_fields_follow_renames_and_cannot_be_dropped() -> None:
    fields = [
        CreateField(name=name, type=kind) for name, kind in [("k", "string"), ("v", "int16"), ("s", "int16")]
    ]
    partial = define_dataset(
        CreateDataset(
            name="t",
            schema=CreateSchema(fields=fields),
            record_key=["k"],
            merge_mode=MergeMode.PARTIAL,
            sequence_groups=[CreateSequenceGroup(ordering_field="s", fields=["v"])],
        )
    )
    assert evolve(partial, [RenameField(name="v", to="w")]).sequence_groups[0].fields == ("w",)
    for change in (
        DropField(name="v"),
        DropField(name="s"),
        widen("s", "int32"),
        RenameField(name="s", to="q"),
    ):
        with pytest.raises(SchemaChangeRefused, match="sequence group"):
            evolve(partial, [change])
    counted = define_dataset(
        CreateDataset(
            name="t",
            schema=CreateSchema(fields=fields),
            record_key=["k"],
            merge_mode=MergeMode.AGGREGATE,
            aggregates={"v": Aggregate.COUNT, "s": Aggregate.SUM},
        )
    )
    renamed = evolve(counted, [RenameField(name="v", to="w"), widen("w", "int64"), widen("s", "double")])
    assert renamed.aggregates == {"w": Aggregate.COUNT, "s": Aggregate.SUM}
    with pytest.raises(SchemaChangeRefused, match="count, which does not support double"):
        evolve(counted, [widen("v", "double")])
    with pytest.raises(SchemaChangeRefused, match="'s' is aggregated"):
        evolve(counted, [DropField(name="s")])


def test_changes_are_read_from_json_by_kind() -> None:
    text = b"""{"changes": [{"kind": "add", "field": {"name": "x", "type": "date"}}, {"kind": "drop", "name": "n"},
        {"kind": "rename", "name": "at", "to": "b"}, {"kind": "widen", "name": "x", "type": "timestamp",
        "explicit_cast": true}, {"kind": "relax", "name": "n"}, {"kind": "reorder", "names": ["a"]}]}"""
    assert msgspec.json.decode(text, type=UpdateDataset).changes == [
        add("x", "date"),
        DropField(name="n"),
        RenameField(name="at", to="b"),
        widen("x", "timestamp", explicit_cast=True),
        RelaxField(name="n"),
        ReorderFields(names=["a"]),
    ]


LOSSLESS = [
    ("int8", "double", [-128, 127]),
    ("int16", "float", [-(2**15), 2**15 - 1]),
    ("int32", "int64", [-(2**31), 2**31 - 1]),
    ("int32", "double", [-(2**31), 2**31 - 1]),
    ("uint8", "int16", [0, 255]),
    ("uint16", "float", [0, 2**16 - 1]),
    ("uint32", "int64", [0, 2**32 - 1]),
    ("uint32", "double", [0, 2**32 - 1]),
    ("float", "double", [1.5, -0.25]),
    ("decimal(5, 2)", "decimal(38, 2)", [Decimal("999.99")]),
    ("timestamp_ntz(ms)", "timestamp_ntz", [naive(9999, 12, 31, 23, 59, 59, 999000)]),
    ("date", "timestamp_ntz", [dt.date(1, 1, 1)]),
    ("list<int8>", "list<int64>", [[1, None], []]),
    ("map<string, int8>", "map<string, int16>", [[("a", 1)]]),
    ("struct<a: int8>", "struct<b: string, a: int64>", [{"a": 1}]),
    (
        "list<struct<a: map<string, struct<x: float>>>>",
        "list<struct<a: map<string, struct<y: date, x: double>>>>",
        [],
    ),
]


@pytest.mark.parametrize(("old", "new", "values"), LOSSLESS)
def test_wider_type_represents_every_value(old: str, new: str, values: list[Any]) -> None:
    before = evolve(DATASET, [add("x", old)])
    after = evolve(before, [widen("x", new, explicit_cast=old == "date")])
    assert why_not_wider(parse_type(new), parse_type(old), explicit_cast=True) is not None
    stored = pa.table({"x": pa.array([*values, None], before.schema.to_arrow().field("x").type)})
    stored = stored.cast(pa.schema([before.schema.to_arrow().field("x")]))
    found = project_rows(stored, after.schema.select(["x"]).to_arrow())
    assert found.schema.field("x").type == after.schema.to_arrow().field("x").type
    assert project_rows(found, stored.schema).to_pylist() == stored.to_pylist()


@pytest.mark.parametrize(
    ("wide", "value", "narrow"),
    [
        ("int64", 2**40, "int32"),
        ("double", 1.5, "int32"),
        ("double", 1e300, "float"),
        ("decimal(10, 2)", Decimal("99999.99"), "decimal(5, 2)"),
        ("timestamp", dt.datetime(2026, 1, 1, 0, 0, 0, 1, dt.UTC), "timestamp(ms)"),
        ("timestamp_ntz", naive(2026, 1, 1, 5), "date"),
    ],
)
def test_value_outside_an_earlier_type_is_refused(wide: str, value: object, narrow: str) -> None:
    later, earlier = (
        evolve(DATASET, [add("x", kind)]).schema.select(["x"]).to_arrow() for kind in (wide, narrow)
    )
    with pytest.raises(pa.ArrowInvalid):
        project_rows(pa.Table.from_pylist([{"x": value}], schema=later), earlier)


def test_columns_are_matched_by_id_and_system_columns_by_name() -> None:
    renamed = evolve(
        evolve(DATASET, [DropField(name="n")]), [RenameField(name="at", to="n"), add("at", "string")]
    )
    stored = pa.Table.from_pylist(
        [{"n": 7, "at": dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "_hw_op": 1}],
        schema=pa.schema([*DATASET.schema.select(["n", "at"]).to_arrow(), pa.field("_hw_op", pa.uint8())]),
    )
    requested = pa.schema([pa.field("_hw_op", pa.uint8()), *renamed.schema.select(["n", "at"]).to_arrow()])
    assert project_rows(stored, requested).to_pylist() == [
        {"_hw_op": 1, "n": dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "at": None}
    ]


def test_bounds_of_a_file_hold_under_a_wider_type() -> None:
    """Files keep the bounds of their columns by field id, as the type had them when they were written."""
    kinds = {"a": ("date", "timestamp"), "b": ("int32", "double"), "c": ("decimal(5, 2)", "decimal(9, 2)")}
    before = evolve(DATASET, [add(name, old) for name, (old, _) in kinds.items()])
    wider = [widen(name, new, explicit_cast=True) for name, (_, new) in kinds.items()]
    after = evolve(before, [*wider, add("new", "int64"), RenameField(name="b", to="bb")])
    statistics = {
        str(before.schema.field(name).id): ColumnStatistics(minimum=low, maximum=high, null_count=0)
        for name, low, high in [("a", "2026-01-01", "2026-01-02"), ("b", 1, 5), ("c", "1.00", "2.50")]
    }

    def may(where: str) -> bool:
        return may_match(parse_filter(where, after.schema), statistics, after.schema, 10)

    assert may("a = TIMESTAMP '2026-01-02T00:00:00Z'")
    assert not may("a > TIMESTAMP '2026-01-02T00:00:00Z'")
    assert may("bb >= 5 AND c >= 2.5 AND new IS NULL")
    assert not may("bb > 5.5")
    assert not may("c > 2.5")
