"""Schemas as Delta's: every type of a column, with the types that the columns of data files have.

Flat types state their own (`FlatType.delta`). With column mapping by id, a column is found in files by its field id,
under whichever name it has there.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Any, Final

import msgspec

from app.kernel.format.schema.schema import Field, Schema
from app.kernel.format.schema.types import (
    DataType,
    FlatType,
    List,
    Map,
    Struct,
    Timestamp,
)
from app.kernel.format.schema.types.nested import member_path_below, member_types
from app.kernel.format.schema.types.uuids import UUID

COLUMN_MAPPING: Final = {"delta.columnMapping.mode": "id"}
"""The configuration of a table with column mapping. `delta.columnMapping.maxColumnId` is that of the schema."""


def physical_name(field: Field) -> str:
    """The name of a column in statistics of a table with column mapping. It stays when the column is renamed."""
    return f"col-{field.id}"


def delta_schema(schema: Schema, *, by_id: bool, nullable: Collection[int] = ()) -> dict[str, Any]:
    """The schema in Delta's JSON form.

    `by_id`: whether columns are found by id. `nullable`: ids of columns that have nulls, whatever the schema says.
    """
    return {
        "type": "struct",
        "fields": [_field(field, by_id, field.nullable or field.id in nullable) for field in schema.fields],
    }


def schema_string(schema: Schema, *, by_id: bool, nullable: Collection[int] = ()) -> str:
    """`delta_schema` as the text that metadata have."""
    return msgspec.json.encode(delta_schema(schema, by_id=by_id, nullable=nullable)).decode()


def has_zoneless_times(schema: Schema) -> bool:
    """Whether a column, or a member of one, is a time without a zone: only the format `delta` has such."""
    return any(
        isinstance(kind, Timestamp) and not kind.zoned for field in schema.fields for kind in _types(field)
    )


def has_uuid(field: Field) -> bool:
    """Whether the column, or a member of it, is a uuid. Delta's kernel for Rust refuses the bytes that files have."""
    return UUID in _types(field)


def without_columns(schema: Schema, omit: Collection[int]) -> Schema:
    """The schema without the columns with these ids. It has the highest id of all of them."""
    if not omit:
        return schema
    fields = tuple(field for field in schema.fields if field.id not in omit)
    return msgspec.structs.replace(schema, fields=fields, last_field_id=schema.highest_field_id)


@lru_cache(maxsize=4_096)
def by_name(schemas: tuple[Schema, ...], latest: Schema) -> bool:
    """Whether files of all of the schemas have the columns of `latest` under its names, and no others under them."""
    names = {field.id: field.name for field in latest.fields}
    ids = {field.name: field.id for field in latest.fields}
    return all(
        names.get(field.id, field.name) == field.name and ids.get(field.name, field.id) == field.id
        for schema in schemas
        for field in schema.fields
    )


@lru_cache(maxsize=4_096)
def has_parts_of_other_types(file_schema: Schema, schema: Schema) -> bool:
    """Whether a column of lists, maps or structs has another type in a file with `file_schema`: it was widened since.
    Readers widen plain values, and refuse these.
    """
    kinds = {field.id: field.data_type() for field in file_schema.fields}
    return any(
        not isinstance(kind := field.data_type(), FlatType) and kinds.get(field.id, kind) != kind
        for field in schema.fields
    )


def _types(field: Field) -> list[DataType]:
    kind = field.data_type()
    return [kind, *(member for _, member in member_types(kind))]


def _field(field: Field, by_id: bool, nullable: bool) -> dict[str, Any]:
    metadata: dict[str, Any] = {} if field.doc is None else {"comment": field.doc}
    if by_id:
        metadata |= {
            "delta.columnMapping.id": field.id,
            "delta.columnMapping.physicalName": physical_name(field),
        }
    kind = _type(field, field.data_type(), "", by_id)
    return {"name": field.name, "type": kind, "nullable": nullable, "metadata": metadata}


def _type(field: Field, kind: DataType, path: str, by_id: bool) -> Any:
    match kind:
        case FlatType():
            return kind.delta
        case List(element):
            inner = _type(field, element, member_path_below(path, "element"), by_id)
            return {"type": "array", "elementType": inner, "containsNull": True}
        case Map(key, value):
            return {
                "type": "map",
                "keyType": _type(field, key, member_path_below(path, "key"), by_id),
                "valueType": _type(field, value, member_path_below(path, "value"), by_id),
                "valueContainsNull": True,
            }
        case Struct(members):
            fields = [_member(field, name, member, path, by_id) for name, member in members]
            return {"type": "struct", "fields": fields}


def _member(field: Field, name: str, kind: DataType, path: str, by_id: bool) -> dict[str, Any]:
    inner = member_path_below(path, name)
    metadata: dict[str, Any] = {}
    if by_id and inner in (field.member_ids or {}):
        number = (field.member_ids or {})[inner]
        metadata = {
            "delta.columnMapping.id": number,
            "delta.columnMapping.physicalName": f"col-{number}",
        }
    return {"name": name, "type": _type(field, kind, inner, by_id), "nullable": True, "metadata": metadata}
