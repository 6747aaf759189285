"""A member of a struct as the ordering field: its registration, its merge, and changes of the schema."""

from __future__ import annotations

from typing import Any

import pytest

from app.kernel.format.dataset import DatasetDefinition, MergeMode
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.format.definition.schema_change import (
    AddField,
    DropField,
    RenameField,
    SchemaChange,
    WidenField,
)
from app.kernel.format.errors import InvalidDataset, SchemaChangeRefused
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import Op
from tests.kernel.commit.merging import feed, run
from tests.kernel.commit.reference import Table, Write

META = "struct<at: int64, by: struct<rank: int32, tags: list<string>>>"


def define(ordering_field: str, **parts: Any) -> DatasetDefinition:
    fields = [
        CreateField(name="id", type="int64"),
        CreateField(name="meta", type=META),
        CreateField(name="a.b", type="int64"),
        CreateField(name="v", type="string"),
    ]
    schema = CreateSchema(fields=fields)
    return define_dataset(
        CreateDataset(name="t", schema=schema, record_key=["id"], ordering_field=ordering_field, **parts)
    )


def row(at: int | None, rank: int | None, v: str) -> dict[str, Any]:
    return {"id": 1, "meta": {"at": at, "by": {"rank": rank, "tags": None}}, "a.b": None, "v": v}


NO_META = {**row(None, None, "none"), "meta": None}


@pytest.mark.parametrize("mode", [MergeMode.EVENT_TIME, MergeMode.PARTIAL, MergeMode.AGGREGATE])
@pytest.mark.parametrize("field", ["meta.at", "meta.by.rank"])
def test_row_with_the_greater_member_wins_before_and_after_the_write(mode: MergeMode, field: str) -> None:
    definition = define(field, merge_mode=mode)

    def merged(live: list[dict[str, Any]], *rows: dict[str, Any]) -> Any:
        table = Table(dataset=definition, live={(each["id"],): each for each in live})
        changes = [(Op.APPEND, each) for each in rows]
        result = run(table, [Write(operation=Operation.UPSERT, rows=changes)])
        return [(Op(op), each["v"], each["meta"]) for op, each in feed(result)]

    old, new = row(5, 5, "old"), row(6, 6, "new")
    assert merged([], new, old) == [(Op.APPEND, "new", new["meta"])]
    assert merged([new], old) == []
    assert merged([old], new) == [(Op.CORRECT_FROM, "old", old["meta"]), (Op.CORRECT_TO, "new", new["meta"])]
    # A null member, or a null struct, is older than any value.
    assert merged([old], NO_META) == []
    assert merged([NO_META], old)[-1] == (Op.CORRECT_TO, "old", old["meta"])


def test_delete_is_compared_by_the_member() -> None:
    definition = define("meta.at")
    table = Table(dataset=definition, live={(1,): row(5, 5, "old")})
    for at, gone in ((4, 0), (5, 1), (None, 1)):
        delete = Write(operation=Operation.DELETE, rows=[(Op.RETRACT, row(at, None, ""))])
        assert run(table, [delete]).changes.num_rows == gone


def test_field_whose_name_has_a_dot_is_that_field() -> None:
    definition = define("a.b")
    rows = [{**row(1, 1, "greater"), "a.b": 2}, {**row(2, 2, "last"), "a.b": 1}]
    write = Write(operation=Operation.UPSERT, rows=[(Op.APPEND, each) for each in rows])
    assert [each["v"] for _, each in feed(run(Table(dataset=definition), [write]))] == ["greater"]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("meta", "has no order"),
        ("meta.by.tags", "has no order"),
        ("meta.nothing", "no member 'nothing'"),
        ("nothing.at", "no field 'nothing'"),
        ("v.x", "has no members"),
        ("year(meta.at)", "expected a field or a member"),
        ("meta.", "expected a field"),
        ("", "expected a field"),
    ],
)
def test_ordering_field_that_has_no_order_is_refused(field: str, expected: str) -> None:
    with pytest.raises(InvalidDataset) as caught:
        define(field)
    [error] = [each for each in caught.value.facts["errors"] if each["pointer"] == "/ordering_field"]
    assert expected in error["detail"]


@pytest.mark.parametrize(
    "change",
    [
        DropField(name="meta"),
        RenameField(name="meta", to="other"),
        WidenField(name="meta", type_="struct<by: struct<rank: int32, tags: list<string>>>"),
        WidenField(name="meta", type_="struct<at: double, by: struct<rank: int32, tags: list<string>>>"),
        AddField(field=CreateField(name="meta.at", type="int64")),
        RenameField(name="v", to="meta.at"),
    ],
    ids=lambda change: type(change).__name__,
)
def test_change_that_touches_the_ordering_member_is_refused(change: SchemaChange) -> None:
    with pytest.raises(SchemaChangeRefused, match="ordering field"):
        evolve(define("meta.at"), [change])
