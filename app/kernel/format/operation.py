"""Operations of a write, and the operations that a dataset accepts."""

from __future__ import annotations

from enum import Enum
from typing import Final

from app.kernel.format.dataset import ChangelogProducer, DatasetDefinition, MergeMode
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.partition.fields import partition_sources
from app.kernel.format.partition.members import key_fields, member_root, with_key_members
from app.kernel.format.rows.change_schema import change_schema, marked_schema, optional_unless_key
from app.kernel.format.schema.schema import Schema


class Operation(str, Enum):
    """What a write does with its rows."""

    INSERT = "insert"
    UPSERT = "upsert"
    BULK_INSERT = "bulk_insert"
    DELETE = "delete"
    DELETE_PARTITION = "delete_partition"
    OVERWRITE = "overwrite"
    SNAPSHOT = "snapshot"
    CHANGELOG = "changelog"

    @property
    def replaces(self) -> bool:
        """Whether its rows replace live rows unmerged."""
        return self in (Operation.OVERWRITE, Operation.SNAPSHOT)

    @property
    def refuses_live_keys(self) -> bool:
        """Whether a key that is live already is an error, not an update."""
        return self in (Operation.INSERT, Operation.BULK_INSERT)


def check_operation(
    operation: Operation, dataset: DatasetDefinition, *, by_filter: bool = False, by_arrival: bool = False
) -> None:
    """Raises InvalidRequest if the dataset does not accept it. `by_filter`: a filter selects the rows. `by_arrival`:
    changes are applied as they arrive.
    """
    if dataset.keyed:
        compares = operation is Operation.CHANGELOG and not by_arrival
        reason = _NO_COMPARED_CHANGES.get(dataset.merge_mode) if compares else None
        if reason is not None:
            mode = dataset.merge_mode.value
            raise _refused(
                f"{dataset.name!r} accepts changes only as they arrive, because its merge_mode is {mode}",
                reason,
            )
        return
    if operation not in _NEED_KEYS or (by_filter and operation is Operation.DELETE):
        return
    operations = [each.value for each in Operation if each not in _NEED_KEYS]
    raise _refused(
        f"{operation.value} needs a record key, and {dataset.name!r} is append-only",
        f"an append-only dataset accepts {', '.join(operations)}, and delete with a filter",
    )


def matches_equal_rows(operation: Operation, dataset: DatasetDefinition) -> bool:
    """Whether its retractions remove rows that equal them in every value, since rows have no key.

    Such a write reads the partitions of its rows.
    """
    return operation is Operation.CHANGELOG and not dataset.keyed


def _refused(detail: str, reason: str) -> InvalidRequest:
    return InvalidRequest(detail, [FieldError(pointer="/operation", detail=reason)])


_NEED_KEYS: Final = (Operation.UPSERT, Operation.DELETE)
_NO_COMPARED_CHANGES: Final = {
    MergeMode.FIRST: "the first row of a key stays, so corrections of it would be lost; use order arrival, or upsert "
    "and delete",
    MergeMode.AGGREGATE: "an aggregate cannot retract a value; use order arrival, or upsert, and delete for whole keys",
}


def input_schema(operation: Operation, dataset: DatasetDefinition) -> Schema:
    """The schema of the write's rows: a row that deletes needs only the key fields, changes have an op."""
    schema = with_key_members(dataset.schema, dataset.record_key)
    match operation:
        case Operation.DELETE:
            return optional_unless_key(schema, key_fields(dataset))
        case Operation.CHANGELOG:
            place = frozenset((*key_fields(dataset), *partition_sources(dataset)))
            return change_schema(
                schema,
                key_fields(dataset),
                dataset.changelog.vocabulary,
                keepable=_keepable(dataset, place),
                place=place,
            )
        case Operation.UPSERT:
            return marked_schema(schema, key_fields(dataset), dataset.delete_marker)
        case _:
            return schema


def _keepable(dataset: DatasetDefinition, place: frozenset[str]) -> frozenset[str]:
    """The fields of which a change may keep the stored value.

    Not those that decide which row a change replaces, and whether it does, and no required ones: the key may have no
    row. A feed of the rows as they were sent cannot say that a value is kept.
    """
    if not dataset.keyed or dataset.changelog.producer is ChangelogProducer.INPUT:
        return frozenset()
    grouped = {name for group in dataset.sequence_groups for name in (group.ordering_field, *group.fields)}
    deciding = {*place, *grouped, member_root(dataset.ordering_field, dataset.schema.names())}
    return frozenset(
        field.name for field in dataset.schema.fields if field.nullable and field.name not in deciding
    )
