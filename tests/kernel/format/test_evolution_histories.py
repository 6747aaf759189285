"""Random histories of a table whose schema moves on between its writes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.format.definition.schema_change import (
    DropField,
    RelaxField,
    RenameField,
    ReorderFields,
    SchemaChange,
)
from app.kernel.format.errors import SchemaChangeRefused
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import OP_COLUMN, fold
from app.kernel.format.schema.schema_projection import project_rows
from app.kernel.format.schema.types import parse_type
from tests.kernel.commit.reference import Table
from tests.kernel.commit.test_merge import run
from tests.kernel.format.test_evolution import add, naive, widen
from tests.support.examples import a_third_of

# Rows of random histories: the table's key, its ordering field, and whatever other fields there are.
START = define_dataset(
    CreateDataset(
        name="t",
        schema=CreateSchema(
            fields=[
                CreateField(name="k", type="int32"),
                CreateField(name="ts", type="int64"),
                CreateField(name="a", type="int8", nullable=False),
                CreateField(name="b", type="date"),
                CreateField(name="c", type="struct<x: int16>"),
            ]
        ),
        record_key=["k"],
        ordering_field="ts",
    )
)
CHAINS = (
    ["int8", "int16", "int32", "int64"],
    ["int8", "float", "double"],
    ["decimal(4, 1)", "decimal(9, 1)"],
    ["date", "timestamp(ms)", "timestamp"],
    ["struct<x: int16>", "struct<x: int32, y: list<int8>>", "struct<z: string, y: list<int16>, x: double>"],
)
VALUES = {
    "int": st.integers(-128, 127),
    "float": st.integers(-128, 127).map(lambda number: number / 4),
    "double": st.integers(-128, 127).map(lambda number: number / 4),
    "decimal": st.integers(-9999, 9999).map(lambda number: Decimal(number).scaleb(-1)),
    "date": st.dates(dt.date(1, 1, 1)),
    "timestamp": st.datetimes(naive(1, 1, 1)).map(lambda time: time.replace(microsecond=0, tzinfo=dt.UTC)),
    "string": st.text(max_size=3),
}


def values_of(kind: str) -> st.SearchStrategy[Any]:
    match kind.split("<")[0]:
        case "struct":
            members = parse_type(kind).members  # type: ignore[union-attr]
            return st.fixed_dictionaries(
                {name: st.none() | values_of(str(member)) for name, member in members}
            )
        case "list":
            return st.lists(values_of(str(parse_type(kind).element)), max_size=2)  # type: ignore[union-attr]
    return VALUES["int" if "int" in kind else kind.split("(")[0]]


def plain(value: Any) -> Any:
    """A value such that those of a type and of any wider one compare equal: a date is the start of its day."""
    match value:
        case dict():
            return {name: plain(member) for name, member in value.items() if member is not None}
        case list():
            return [plain(element) for element in value]
        case dt.date() if not isinstance(value, dt.datetime):
            return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    return value


def possible(dataset: DatasetDefinition) -> Iterator[SchemaChange]:
    names = dataset.schema.names()
    for number in range(3):
        yield from (add(f"f{number}", chain[0]) for chain in CHAINS)
    for name in names:
        yield DropField(name=name)
        yield RelaxField(name=name)
        yield from (RenameField(name=name, to=to) for to in ("f0", "f1", "a", "b"))
        yield from (widen(name, kind, explicit_cast=True) for chain in CHAINS for kind in chain)
    yield ReorderFields(names=names[::-1])
    yield ReorderFields(names=names[1:] + names[:1])


def allowed(dataset: DatasetDefinition) -> list[DatasetDefinition]:
    found = []
    for change in possible(dataset):
        try:
            found.append(evolve(dataset, [change]))
        except SchemaChangeRefused:
            continue
    return found


@settings(max_examples=a_third_of(60), deadline=None)
@given(st.data())
def test_rows_written_before_a_change_are_read_correctly_after_it(data: st.DataObject) -> None:
    """The fold law holds under the latest schema, and every value is still that of the field it was written to."""
    dataset, feed, by_id, schemas = START, [], {}, [START.schema]
    live = dataset.schema.to_arrow().empty_table()
    for _ in range(data.draw(st.integers(1, 6))):
        for _ in range(data.draw(st.integers(0, 2))):
            dataset = data.draw(st.sampled_from(allowed(dataset)))
            schemas.append(dataset.schema)
        live = project_rows(live, dataset.schema.to_arrow())
        row = {
            field.name: values_of(field.type) | (st.none() if field.nullable else st.nothing())
            for field in dataset.schema.fields
        }
        row |= {"k": st.integers(0, 3), "ts": st.integers(0, 5)}
        written = data.draw(
            st.lists(st.fixed_dictionaries(row), max_size=4, unique_by=lambda each: each["k"])
        )
        table = Table(dataset=dataset, live={(each["k"],): each for each in live.to_pylist()})
        result = run(table, [(Operation.UPSERT, written)])
        feed.append(result.changes)
        touched = pa.array(
            [each["k"] in {one["k"] for one in written} for each in live.to_pylist()], pa.bool_()
        )
        untouched = live.filter(pa.compute.invert(touched))
        new = project_rows(result.rows, live.schema)
        live = pa.concat_tables([untouched, live.filter(touched).filter(pa.array(result.stays)), new])
        for each in new.to_pylist():
            by_id[each["k"]] = {field.id: each[field.name] for field in dataset.schema.fields}
    latest = dataset.schema
    found = {row["k"]: row for row in project_rows(live, latest.to_arrow()).to_pylist()}
    assert {key: {name: plain(value) for name, value in row.items()} for key, row in found.items()} == {
        key: {field.name: plain(values.get(field.id)) for field in latest.fields}
        for key, values in by_id.items()
    }
    requested = pa.schema(
        [pa.field(OP_COLUMN, pa.uint8()), *(each.with_nullable(True) for each in latest.to_arrow())]
    )
    changes = [change for part in feed for change in project_rows(part, requested).to_pylist()]
    folded = fold([(change.pop(OP_COLUMN), change) for change in changes], ["k"])
    assert {row["k"]: row for row in folded} == found
    ids = [field.id for schema in schemas for field in schema.fields]
    assert max(ids) <= latest.highest_field_id
