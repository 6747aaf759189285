"""Schemas of Delta: types, ids, and what readers find columns by."""

from __future__ import annotations

import json

import pytest

from app.kernel.delta.schemas import delta_schema, has_zoneless_times, schema_string
from app.kernel.format.schema.schema import Field, Schema


def schema_of(*fields: Field) -> Schema:
    return Schema(id=1, fields=fields)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("boolean", "boolean"),
        ("int8", "byte"),
        ("int16", "short"),
        ("int32", "integer"),
        ("int64", "long"),
        ("uint8", "integer"),
        ("uint16", "integer"),
        ("uint32", "long"),
        ("float", "float"),
        ("double", "double"),
        ("string", "string"),
        ("binary", "binary"),
        ("date", "date"),
        ("uuid", "binary"),
        ("decimal(9, 2)", "decimal(9,2)"),
        ("timestamp", "timestamp"),
        ("timestamp(ms)", "timestamp"),
        ("timestamp_ntz", "timestamp_ntz"),
        ("timestamp_ntz(ms)", "timestamp_ntz"),
    ],
)
def test_flat_types_have_types_of_delta(ours: str, theirs: str) -> None:
    [column] = delta_schema(schema_of(Field(id=7, name="x", type=ours)), by_id=False)["fields"]
    assert column == {"name": "x", "type": theirs, "nullable": True, "metadata": {}}


def test_mapped_columns_are_found_by_their_ids() -> None:
    field = Field(
        id=7,
        name="odd name",
        type="list<struct<a: int64, b: map<string, date>>>",
        nullable=False,
        doc="Parts.",
        member_ids={
            "element": 8, "element.a": 9, "element.b": 10, "element.b.key": 11, "element.b.value": 12,
        },
    )  # fmt: skip
    [column] = json.loads(schema_string(schema_of(field), by_id=True))["fields"]
    assert (column["name"], column["nullable"]) == ("odd name", False)
    assert column["metadata"] == {
        "comment": "Parts.",
        "delta.columnMapping.id": 7,
        "delta.columnMapping.physicalName": "col-7",
    }
    first, second = column["type"]["elementType"]["fields"]
    assert first == {
        "name": "a",
        "type": "long",
        "nullable": True,
        "metadata": {"delta.columnMapping.id": 9, "delta.columnMapping.physicalName": "col-9"},
    }
    assert second["type"] == {
        "type": "map", "keyType": "string", "valueType": "date", "valueContainsNull": True,
    }  # fmt: skip
    assert second["metadata"]["delta.columnMapping.id"] == 10


def test_columns_that_are_hidden_have_nulls() -> None:
    fields = (Field(id=1, name="k", type="int64", nullable=False), Field(id=2, name="s", type="string"))
    schema = delta_schema(schema_of(*fields), by_id=False, nullable={1})
    assert [each["nullable"] for each in schema["fields"]] == [True, True]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("timestamp", False), ("timestamp_ntz", True), ("list<struct<at: timestamp_ntz(ms)>>", True)],
)
def test_times_without_a_zone_are_found_in_members(kind: str, expected: bool) -> None:
    assert has_zoneless_times(schema_of(Field(id=1, name="x", type=kind))) is expected
