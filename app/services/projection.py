"""Which columns of a dataset a reader asks for."""

from __future__ import annotations

from collections.abc import Sequence

from app.lake.errors import FieldError, InvalidRequest
from app.lake.schema import Schema


def projection(schema: Schema, asked: Sequence[str] | None) -> Schema:
    """The schema with the columns that are asked for, all of them for None.

    What is asked for is the name of a column, commas included, or a list of names between commas. Raises
    InvalidRequest for unknown, repeated and no names.
    """
    if asked is None:
        return schema
    known = set(schema.names())
    names = [name for value in asked for name in ([value] if value in known else value.split(","))]
    unknown = [name for name in names if name not in known]
    if unknown or not names or len(set(names)) != len(names):
        detail = f"unknown: {unknown}" if unknown else "name each column once, and at least one"
        raise InvalidRequest("the columns are not valid", [FieldError(pointer="/columns", detail=detail)])
    return schema.select(names)
