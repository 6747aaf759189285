"""Schemas as Iceberg's: every type of a column, with the ids that the columns of data files have.

Flat types state their own (`FlatType.iceberg`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Any, Final

from app.kernel.format.schema.schema import Field, Schema
from app.kernel.format.schema.types import (
    DataType,
    Decimal,
    FlatType,
    List,
    Map,
    Struct,
)
from app.kernel.format.schema.types.nested import member_path_below

_PROMOTIONS: Final = frozenset({("int", "long"), ("float", "double")})


class UncarriedColumn(ValueError):
    """A column that Iceberg's form of the table cannot have. `column` is its name, the message has the reason."""

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(f"column {column!r} {reason}")
        self.column = column


def iceberg_schema(schema: Schema, omit: Collection[int] = ()) -> dict[str, Any]:
    """The schema in Iceberg's JSON form. Its id is the id of ours.

    `omit`: ids of fields that are left out. Raises UncarriedColumn for a column whose nested fields have no ids.
    """
    fields = [_field(field) for field in schema.fields if field.id not in omit]
    return {"type": "struct", "schema-id": schema.id, "fields": fields}


def _field(field: Field) -> dict[str, Any]:
    kind = _type(field, field.data_type(), "")
    column = {"id": field.id, "name": field.name, "required": not field.nullable, "type": kind}
    return column if field.doc is None else {**column, "doc": field.doc}


def _type(field: Field, kind: DataType, path: str) -> Any:
    match kind:
        case FlatType():
            return kind.iceberg
        case List(element):
            return {
                "type": "list",
                "element-id": _member_id(field, member_path_below(path, "element")),
                "element-required": False,
                "element": _type(field, element, member_path_below(path, "element")),
            }
        case Map(key, value):
            return {
                "type": "map",
                "key-id": _member_id(field, member_path_below(path, "key")),
                "key": _type(field, key, member_path_below(path, "key")),
                "value-id": _member_id(field, member_path_below(path, "value")),
                "value-required": False,
                "value": _type(field, value, member_path_below(path, "value")),
            }
        case Struct(members):
            return {"type": "struct", "fields": [_member(field, *member, path) for member in members]}


def _member(field: Field, name: str, kind: DataType, path: str) -> dict[str, Any]:
    inner = member_path_below(path, name)
    return {
        "id": _member_id(field, inner),
        "name": name,
        "required": False,
        "type": _type(field, kind, inner),
    }


def _member_id(field: Field, path: str) -> int:
    number = (field.member_ids or {}).get(path)
    if number is None:
        raise UncarriedColumn(field.name, f"has no field id for {path!r} in it")
    return number


def unreadable_columns(file_schema: Schema, schema: Schema) -> Iterator[str]:
    """The columns of `schema` that no reader of Iceberg reads in a file with `file_schema`: their type was widened in a
    way that Iceberg does not know. Their names are those of `schema`.
    """
    types = {field.id: field.data_type() for field in file_schema.fields}
    for field in schema.fields:
        if field.id in types and not promotes(types[field.id], field.data_type()):
            yield field.name


@lru_cache(maxsize=4_096)
def promotes(old: DataType, new: DataType) -> bool:
    """Whether a reader of Iceberg reads stored values of the type `old` as values of the type `new`."""
    match old, new:
        case FlatType(), FlatType():
            return _flat_promotes(old, new)
        case List(element), List(wider):
            return promotes(element, wider)
        case Map(key, value), Map(new_key, new_value):
            return promotes(key, new_key) and promotes(value, new_value)
        case Struct(members), Struct(new_members):
            types = dict(new_members)
            return all(name not in types or promotes(kind, types[name]) for name, kind in members)
    return False


def _flat_promotes(old: FlatType, new: FlatType) -> bool:
    if isinstance(old, Decimal) and isinstance(new, Decimal):
        return old.scale == new.scale and old.precision <= new.precision
    names = old.iceberg, new.iceberg
    return names[0] == names[1] or names in _PROMOTIONS
