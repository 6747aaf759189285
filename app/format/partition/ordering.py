"""The ordering field of a dataset: a field, or a member of a struct as in `meta.updated_at`."""

from __future__ import annotations

from collections.abc import Collection

from app.format.partition.fields import PartitionSyntaxError, Transform, parse_partition


def ordering_path(ordering_field: str, fields: Collection[str]) -> tuple[str, ...]:
    """The field, then members of structs. `fields`: the names of the dataset's fields.

    The name of a field is that field, whatever its characters. Other texts have the syntax of partition fields without
    transforms: `meta.updated_at`, or in backticks. Raises PartitionSyntaxError.
    """
    if ordering_field in fields:
        return (ordering_field,)
    found = parse_partition(ordering_field)
    if found.transform is not Transform.IDENTITY or found.text != ordering_field:
        raise PartitionSyntaxError(
            f"expected a field or a member as in 'meta.updated_at', got {ordering_field!r}"
        )
    return found.path


def ordering_root(ordering_field: str | None, fields: Collection[str]) -> str | None:
    """The field that has the ordering value in it; None without an ordering field, or if it cannot be read."""
    if ordering_field is None:
        return None
    try:
        return ordering_path(ordering_field, fields)[0]
    except PartitionSyntaxError:
        return None
