"""Ids of the columns of files that leave the service: engines match the columns of Parquet files by id.

Columns and members of a dataset have those of its schema, the columns of the format and the meta columns fixed ones.
Others, which a query or a form of changes makes, have the next ones after those that occur.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Final, TypeAlias

import pyarrow as pa

from app.kernel.codecs.meta_on_read import (
    COMMIT_TIME_FIELD,
    CORRECTED_BY_FIELD,
    CORRECTED_VERSION_FIELD,
    RECORD_KEY_FIELD,
    SEQUENCE_FIELD,
)
from app.kernel.format.rows.file_columns import OWN_FIELD_IDS
from app.kernel.format.rows.meta_columns import FILE_NAME_FIELD, PARTITION_FIELD
from app.kernel.format.schema.schema_projection import field_id
from app.kernel.format.schema.types import id_metadata

SERVICE_FIELD_IDS: Final = {
    **OWN_FIELD_IDS,
    COMMIT_TIME_FIELD.name: 2_147_483_470,
    SEQUENCE_FIELD.name: 2_147_483_471,
    RECORD_KEY_FIELD.name: 2_147_483_472,
    PARTITION_FIELD.name: 2_147_483_473,
    FILE_NAME_FIELD.name: 2_147_483_474,
    CORRECTED_BY_FIELD.name: 2_147_483_475,
    CORRECTED_VERSION_FIELD.name: 2_147_483_476,
}
"""The field ids of the columns that the service adds to rows, by name."""
_Id: TypeAlias = Callable[[pa.Field], int]


def with_ids(schema: pa.Schema) -> pa.Schema:
    """The columns with an id for each of them and of their members, each another one.

    Ids that are there stay, except 0 and those that a column before has.
    """
    fields = [_own(field) for field in schema]
    numbers = [number for field in fields for number in _ids(field)]
    new_ids = count(max(numbers, default=0) + 1)
    used: set[int] = set(SERVICE_FIELD_IDS.values())

    def id_of(field: pa.Field) -> int:
        number = field_id(field)
        if not number or number in used:
            number = next(new_ids)
        used.add(number)
        return number

    return pa.schema(
        [field if field.name in SERVICE_FIELD_IDS else _identified(field, id_of) for field in fields],
        metadata=schema.metadata,
    )


def _own(field: pa.Field) -> pa.Field:
    number = SERVICE_FIELD_IDS.get(field.name)
    return field if number is None else _with_id(field, number)


def _ids(field: pa.Field) -> Iterator[int]:
    """The ids of a column and its members that are not the service's own."""
    yield field_id(field) or 0
    for member in _members(field.type):
        yield from _ids(member)


def _identified(field: pa.Field, id_of: _Id) -> pa.Field:
    # The column is before its members.
    column = _with_id(field, id_of(field))
    members = [_identified(member, id_of) for member in _members(field.type)]
    return column.with_type(_of_members(field.type, members))


def _members(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    if pa.types.is_struct(kind) or pa.types.is_list(kind):
        return [kind.field(at) for at in range(kind.num_fields)]
    return []


def _of_members(kind: pa.DataType, members: list[pa.Field]) -> pa.DataType:
    if pa.types.is_map(kind):
        return pa.map_(*members)
    if pa.types.is_struct(kind):
        return pa.struct(members)
    if pa.types.is_list(kind):
        return pa.list_(members[0])
    return kind


def _with_id(field: pa.Field, number: int) -> pa.Field:
    return field.with_metadata({**(field.metadata or {}), **id_metadata(number)})
