"""Comparisons of two tables, against plain dictionaries."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kernel.commit.comparison import (
    FieldChange,
    RowDifferences,
    compare_files,
    compare_rows,
    compare_schemas,
)
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.format.definition.schema_change import (
    AddField,
    DropField,
    RelaxField,
    RenameField,
    ReorderFields,
    WidenField,
)
from tests.support.examples import a_third_of
from tests.support.lakehouse import data_file

Row = dict[str, Any]
FIELDS = [
    CreateField(name="id", type="int64"),
    CreateField(name="n", type="double"),
    CreateField(name="tags", type="list<string>"),
]


def dataset(*key: str) -> DatasetDefinition:
    return define_dataset(CreateDataset(name="t", schema=CreateSchema(fields=FIELDS), record_key=list(key)))


VALUES = st.fixed_dictionaries(
    {
        "n": st.sampled_from([None, 0.0, -0.0, float("inf"), 1.5]),
        "tags": st.sampled_from([None, [], ["a"], ["a", None]]),
    }
)
ROWS = st.lists(st.tuples(st.integers(0, 6), VALUES), max_size=12)


def shown(row: Row) -> str:
    """The row as a text in which every value differs from others, 0.0 from -0.0 too."""
    return repr(sorted(row.items()))


def table(rows: list[Row], definition: DatasetDefinition) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=definition.schema.to_arrow())


@settings(max_examples=a_third_of(60))
@given(before=ROWS, after=ROWS)
def test_keyed_rows_are_compared_like_dictionaries(before: list[Any], after: list[Any]) -> None:
    definition = dataset("id")
    was, now = ({key: {"id": key, **values} for key, values in rows} for rows in (before, after))
    both = was.keys() & now.keys()
    changed = [key for key in both if shown(was[key]) != shown(now[key])]
    values = Counter(
        field.id
        for key in changed
        for field in definition.schema.fields
        if repr(was[key][field.name]) != repr(now[key][field.name])
    )
    found = compare_rows(
        definition, table(list(was.values()), definition), table(list(now.values()), definition)
    )
    assert found == RowDifferences(
        added_rows=len(now.keys() - was.keys()),
        removed_rows=len(was.keys() - now.keys()),
        changed_rows=len(changed),
        unchanged_rows=len(both) - len(changed),
        values=dict(values),
    )


@settings(max_examples=a_third_of(60))
@given(before=ROWS, after=ROWS)
def test_keyless_rows_are_compared_like_multisets(before: list[Any], after: list[Any]) -> None:
    definition = dataset()
    was, now = ([{"id": key, **values} for key, values in rows] for rows in (before, after))
    bags = Counter(map(shown, was)), Counter(map(shown, now))
    assert compare_rows(definition, table(was, definition), table(now, definition)) == RowDifferences(
        added_rows=(bags[1] - bags[0]).total(),
        removed_rows=(bags[0] - bags[1]).total(),
        unchanged_rows=(bags[0] & bags[1]).total(),
    )


def test_comparisons_of_parts_add_up() -> None:
    one = RowDifferences(added_rows=1, removed_rows=2, changed_rows=3, unchanged_rows=4, values={2: 3})
    other = RowDifferences(added_rows=10, changed_rows=1, values={2: 1, 3: 1})
    assert one + other == RowDifferences(
        added_rows=11, removed_rows=2, changed_rows=4, unchanged_rows=4, values={2: 4, 3: 1}
    )


def test_fields_are_compared_by_their_ids() -> None:
    before = dataset("id")
    after = evolve(
        before,
        [
            DropField(name="tags"),
            RenameField(name="n", to="measure"),
            AddField(field=CreateField(name="tags", type="string")),
            ReorderFields(names=["tags", "measure", "id"]),
        ],
    )
    found = compare_schemas(before.schema, after.schema)
    assert [(each.change, each.name, each.before, each.after) for each in found] == [
        (FieldChange.DROPPED, "tags", "list<string>", None),
        (FieldChange.ADDED, "tags", None, "string"),
        (FieldChange.RENAMED, "measure", "n", "measure"),
        (FieldChange.REORDERED, "measure", 1, 0),
        (FieldChange.REORDERED, "id", 0, 1),
    ]
    assert compare_schemas(before.schema, before.schema) == []


def test_widened_and_relaxed_fields_are_narrowed_and_required_in_reverse() -> None:
    fields = [CreateField(name="id", type="int64"), CreateField(name="n", type="int32", nullable=False)]
    before = define_dataset(CreateDataset(name="t", schema=CreateSchema(fields=fields), record_key=["id"]))
    after = evolve(before, [WidenField(name="n", type_="int64"), RelaxField(name="n")])
    assert [each.change for each in compare_schemas(before.schema, after.schema)] == [
        FieldChange.WIDENED, FieldChange.RELAXED,
    ]  # fmt: skip
    assert [each.change for each in compare_schemas(after.schema, before.schema)] == [
        FieldChange.NARROWED, FieldChange.REQUIRED,
    ]  # fmt: skip


def test_files_are_compared_by_their_paths() -> None:
    kept, gone, new = data_file(rows=1), data_file(rows=2), data_file(rows=3)
    found = compare_files([kept, gone], [kept, new])
    assert (found.added, found.added_bytes, found.removed, found.removed_bytes, found.marked) == (
        1,
        300,
        1,
        200,
        0,
    )
