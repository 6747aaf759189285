"""The columns and the partitions of a dataset that a reader requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.partition.fields import PartitionSyntaxError
from app.kernel.format.partition.globs import check_partition_glob
from app.kernel.format.schema.schema import Schema
from app.kernel.format.similar_names import similar_names


def projection(schema: Schema, columns: Sequence[str] | None) -> Schema:
    """The schema with the requested columns, all of them for None.

    Each entry of `columns` is the name of a column, commas included, or a list of names between commas. Raises
    InvalidRequest for unknown or repeated names, and for an empty list.
    """
    if columns is None:
        return schema
    field_names = set(schema.names())
    names = [name for value in columns for name in ([value] if value in field_names else value.split(","))]
    unknown_names = [name for name in names if name not in field_names]
    if unknown_names or not names or len(set(names)) != len(names):
        detail = (
            _no_column(unknown_names[0], field_names)
            if unknown_names
            else "list each column once, and at least one column"
        )
        raise InvalidRequest(f"columns: {detail}", [FieldError(pointer="/columns", detail=detail)])
    return schema.select(names)


def _no_column(name: str, names: Iterable[str]) -> str:
    similar = similar_names(name, sorted(names))
    return f"there is no column {name!r}" + (f"; did you mean {similar[0]!r}?" if similar else "")


def check_partitions(definition: DatasetDefinition, globs: Sequence[str] | None) -> None:
    """Raises InvalidRequest for globs that cannot match any of the dataset's partitions."""
    if globs is not None and not definition.partition_by:
        detail = "the dataset has no partitions (no partition_by); use where"
        raise InvalidRequest(f"partitions: {detail}", [FieldError(pointer="/partitions", detail=detail)])
    for glob in globs or ():
        try:
            check_partition_glob(glob, definition.partition_by)
        except PartitionSyntaxError as error:
            raise InvalidRequest(
                f"partitions: {error}", [FieldError(pointer="/partitions", detail=str(error))]
            ) from None
