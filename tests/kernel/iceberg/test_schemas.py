"""Schemas of Iceberg: types, ids, and what readers promote."""

from __future__ import annotations

import pytest

from app.kernel.format.schema.schema import Field, Schema
from app.kernel.format.schema.types import parse_type
from app.kernel.iceberg.schemas import (
    UncarriedColumn,
    iceberg_schema,
    promotes,
    unreadable_columns,
)


def schema_of(*fields: Field, number: int = 1) -> Schema:
    return Schema(id=number, fields=fields)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("boolean", "boolean"),
        ("int8", "int"),
        ("int16", "int"),
        ("int32", "int"),
        ("int64", "long"),
        ("uint8", "int"),
        ("uint16", "int"),
        ("uint32", "long"),
        ("float", "float"),
        ("double", "double"),
        ("string", "string"),
        ("binary", "binary"),
        ("date", "date"),
        ("uuid", "fixed[16]"),
        ("decimal(9, 2)", "decimal(9, 2)"),
        ("timestamp", "timestamptz"),
        ("timestamp(ms)", "timestamptz"),
        ("timestamp_ntz", "timestamp"),
        ("timestamp_ntz(ms)", "timestamp"),
    ],
)
def test_flat_types_have_types_of_iceberg(ours: str, theirs: str) -> None:
    [column] = iceberg_schema(schema_of(Field(id=7, name="x", type=ours)))["fields"]
    assert column == {"id": 7, "name": "x", "required": False, "type": theirs}


def test_fields_keep_their_ids_names_docs_and_whether_they_are_required() -> None:
    fields = (
        Field(id=4, name="odd name", type="int64", nullable=False, doc="The key."),
        Field(id=2, name="Ünï", type="string"),
    )
    assert iceberg_schema(schema_of(*fields, number=3)) == {
        "type": "struct",
        "schema-id": 3,
        "fields": [
            {"id": 4, "name": "odd name", "required": True, "type": "long", "doc": "The key."},
            {"id": 2, "name": "Ünï", "required": False, "type": "string"},
        ],
    }


def test_nested_fields_have_their_ids() -> None:
    kind = "struct<tags: list<string>, `a.b`: map<string, struct<x: int32>>>"
    ids = {"tags": 2, "tags.element": 3, "`a.b`": 4, "`a.b`.key": 5, "`a.b`.value": 6, "`a.b`.value.x": 7}
    schema = schema_of(Field(id=1, name="s", type=kind, member_ids=ids))
    [column] = iceberg_schema(schema)["fields"]
    tags, pairs = column["type"]["fields"]
    assert (tags["id"], tags["name"], tags["required"]) == (2, "tags", False)
    assert tags["type"] == {"type": "list", "element-id": 3, "element-required": False, "element": "string"}
    assert (pairs["id"], pairs["name"]) == (4, "a.b")
    assert (pairs["type"]["key-id"], pairs["type"]["value-id"]) == (5, 6)
    assert pairs["type"]["value"]["fields"] == [{"id": 7, "name": "x", "required": False, "type": "int"}]
    assert schema.highest_field_id == 7


def test_column_without_nested_ids_is_refused_unless_it_is_left_out() -> None:
    schema = schema_of(Field(id=1, name="id", type="int64"), Field(id=2, name="tags", type="list<string>"))
    with pytest.raises(UncarriedColumn, match="column 'tags' has no field id for 'element'") as refusal:
        iceberg_schema(schema)
    assert refusal.value.column == "tags"
    assert [column["name"] for column in iceberg_schema(schema, omit={2})["fields"]] == ["id"]


@pytest.mark.parametrize(
    ("old", "new", "is_read"),
    [
        ("int8", "int32", True),
        ("int32", "int64", True),
        ("uint16", "uint32", True),
        ("float", "double", True),
        ("decimal(9, 2)", "decimal(18, 2)", True),
        ("timestamp(ms)", "timestamp", True),
        ("int16", "double", False),
        ("int8", "float", False),
        ("date", "timestamp", False),
        ("list<int32>", "list<int64>", True),
        ("list<int32>", "list<double>", False),
        ("map<string, float>", "map<string, double>", True),
        ("struct<a: int32>", "struct<a: int64, b: string>", True),
        ("struct<a: int32>", "struct<a: double>", False),
    ],
)
def test_readers_promote_some_of_the_wider_types(old: str, new: str, is_read: bool) -> None:
    assert promotes(parse_type(old), parse_type(new)) is is_read


def test_columns_that_readers_do_not_promote_are_named() -> None:
    old = schema_of(Field(id=1, name="a", type="int16"), Field(id=2, name="b", type="int16"))
    new = schema_of(
        Field(id=1, name="amount", type="double"),
        Field(id=2, name="b", type="int64"),
        Field(id=3, name="c", type="double"),
        number=2,
    )
    assert list(unreadable_columns(old, new)) == ["amount"]
