"""Ids of the members of columns: given once, kept for ever, and in the Arrow fields of Parquet files."""

from __future__ import annotations

import io

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField
from app.kernel.format.definition.schema_change import (
    AddField,
    DropField,
    RenameField,
    SchemaChange,
    WidenField,
)
from app.kernel.format.schema.member_ids import member_ids_of, with_member_ids, without_member_ids
from app.kernel.format.schema.schema import Field, Schema
from app.kernel.format.schema.types import FIELD_ID_METADATA

NESTED = "struct<a: list<struct<`x.y`: int8>>, m: map<string, struct<z: uint8>>>"


def defined(**columns: str) -> DatasetDefinition:
    fields = [{"name": name, "type": kind} for name, kind in columns.items()]
    return define_dataset(msgspec.convert({"name": "d", "schema": {"fields": fields}}, CreateDataset))


def ids_after(dataset: DatasetDefinition, *changes: SchemaChange) -> dict[int, dict[str, int]] | None:
    return member_ids_of(evolve(dataset, changes).schema)


def ids_in(field: pa.Field, path: str) -> dict[str, int]:
    """The field ids of a column and of its members, by path."""
    number, kind = int(field.metadata[FIELD_ID_METADATA]), field.type
    members = []
    if pa.types.is_struct(kind):
        members = [(kind.field(at), kind.field(at).name) for at in range(kind.num_fields)]
    elif pa.types.is_map(kind):
        members = [(kind.key_field, "key"), (kind.item_field, "value")]
    elif pa.types.is_list(kind):
        members = [(kind.value_field, "element")]
    return {path: number} | {
        name: each for member, step in members for name, each in ids_in(member, f"{path}/{step}").items()
    }


def test_members_get_the_numbers_behind_those_of_the_columns() -> None:
    schema = defined(id="int64", s=NESTED, note="string").schema
    assert [field.id for field in schema.fields] == [1, 2, 3]
    assert member_ids_of(schema) == {
        2: {
            "a": 4, "a.element": 5, "a.element.`x.y`": 6,
            "m": 7, "m.key": 8, "m.value": 9, "m.value.z": 10,
        }
    }  # fmt: skip
    assert schema.last_field_id == schema.highest_field_id == 10


def test_schema_without_members_is_stored_as_before() -> None:
    schema = defined(id="int64", note="string").schema
    assert (schema.last_field_id, member_ids_of(schema)) == (0, None)
    assert b"member_ids" not in msgspec.json.encode(schema)


def test_ids_are_kept_extended_and_never_used_again() -> None:
    dataset = defined(id="int64", s="struct<a: int32>")
    wider = evolve(dataset, [WidenField(name="s", type_="struct<a: int64, b: list<string>>")])
    assert member_ids_of(wider.schema) == {2: {"a": 3, "b": 4, "b.element": 5}}
    renamed = evolve(wider, [RenameField(name="s", to="t")])
    assert member_ids_of(renamed.schema) == member_ids_of(wider.schema)
    dropped = evolve(renamed, [DropField(name="t")])
    assert member_ids_of(dropped.schema) is None
    added = CreateField(name="t", type="struct<a: int32>")
    assert ids_after(dropped, AddField(field=added)) == {6: {"a": 7}}


def test_members_that_an_earlier_release_added_get_ids_that_no_other_has() -> None:
    fields = (
        Field(id=1, name="s", type="struct<a: int8, b: int8>"),
        Field(id=2, name="l", type="list<int8>"),
    )
    schema = with_member_ids(Schema(id=4, fields=fields, last_field_id=7), {1: {"a": 3}, 9: {"element": 8}})
    assert member_ids_of(schema) == {1: {"a": 3, "b": 9}, 2: {"element": 10}}
    assert with_member_ids(without_member_ids(schema), member_ids_of(schema)) == schema


def test_parquet_has_the_ids_of_members() -> None:
    schema = defined(id="int64", s=NESTED, l="list<list<int8>>").schema
    sink = io.BytesIO()
    pq.write_table(schema.to_arrow().empty_table(), sink)
    known = {path: each for field in pq.read_schema(sink) for path, each in ids_in(field, field.name).items()}
    assert known == {
        "id": 1, "s": 2, "l": 3,
        "s/a": 4, "s/a/element": 5, "s/a/element/x.y": 6,
        "s/m": 7, "s/m/key": 8, "s/m/value": 9, "s/m/value/z": 10,
        "l/element": 11, "l/element/element": 12,
    }  # fmt: skip
