"""Ids of the members of columns: of elements, keys, values, and members of structs.

A member gets its id with the schema that adds it, from the same numbers as columns, and keeps it for ever: a type only
ever gains members. A column that is dropped and added again is another column, whose members have other ids.

They are stored beside the schema, since the release before refuses a schema that has them. A column that this release
did not add may lack them: it gets the next ones whenever it is read, and keeps them from the next schema on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from app.kernel.format.schema.schema import Field, Schema
from app.kernel.format.schema.types import member_types

MemberIds: TypeAlias = dict[int, dict[str, int]]
"""The ids of members by the id of their column, and by their path."""


def with_member_ids(schema: Schema, known: Mapping[int, Mapping[str, int]] | None = None) -> Schema:
    """The schema with an id for each member; itself if it has all of them.

    `known`: ids of members that the fields do not have. Members without an id get the next ones, in the order of the
    schema.
    """
    nested = {field.id: [path for path, _ in member_types(field.data_type())] for field in schema.fields}
    if not any(nested.values()):
        return schema
    stored = known or {}
    ids = {field.id: {**stored.get(field.id, {}), **(field.member_ids or {})} for field in schema.fields}
    last = max([schema.highest_field_id, *(number for each in stored.values() for number in each.values())])
    for field_id, paths in nested.items():
        for path in paths:
            if path not in ids[field_id]:
                last = ids[field_id][path] = last + 1
    fields = tuple(
        msgspec.structs.replace(field, member_ids=ids[field.id]) if nested[field.id] else field
        for field in schema.fields
    )
    return msgspec.structs.replace(schema, fields=fields, last_field_id=last)


def member_ids_of(schema: Schema) -> MemberIds | None:
    """The ids of all members of a schema; None for a schema without any."""
    return {field.id: field.member_ids for field in schema.fields if field.member_ids} or None


def without_member_ids(schema: Schema) -> Schema:
    """The same schema without the ids of members."""
    if not any(field.member_ids for field in schema.fields):
        return schema
    return msgspec.structs.replace(schema, fields=tuple(map(_plain, schema.fields)))


def _plain(field: Field) -> Field:
    return msgspec.structs.replace(field, member_ids=msgspec.UNSET)
