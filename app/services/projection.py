"""Which columns of a dataset a reader asks for."""

from __future__ import annotations

from collections.abc import Sequence

from app.lake.errors import FieldError, InvalidRequest
from app.services.model import Dataset


def checked_columns(dataset: Dataset, columns: Sequence[str] | None) -> list[str]:
    """The names, or those of all columns for None. Raises InvalidRequest for unknown, repeated and no names."""
    known = dataset.definition.schema.names()
    if columns is None:
        return known
    unknown = [name for name in columns if name not in known]
    if unknown or not columns or len(set(columns)) != len(columns):
        detail = f"unknown: {unknown}" if unknown else "name each column once, and at least one"
        raise InvalidRequest("the columns are not valid", [FieldError(pointer="/columns", detail=detail)])
    return list(columns)
