"""Which options of a write are valid together, and for which datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from app.kernel.commit.write_options import ChangeOrder, OnError, OverwriteScope, SaveMode, WriteOptions
from app.kernel.format.clustering import ClusterBy, column_faults
from app.kernel.format.commit_metadata import metadata_faults
from app.kernel.format.dataset import BucketMode, DatasetDefinition
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.operation import Operation, check_operation
from app.kernel.format.partition.fields import PartitionSyntaxError
from app.kernel.format.partition.globs import check_partition_glob
from app.kernel.sql.conditions.parse import parse_filter

INT64_MAX: Final = 2**63 - 1
WRITER_ID_CHARACTERS_MAX: Final = 255
PARTITION_GLOBS_MAX: Final = 1_000

_Fault = tuple[str, str]
_Rule = Callable[[Operation, WriteOptions, DatasetDefinition], Iterator[_Fault]]
_APPENDING: Final = (Operation.INSERT, Operation.BULK_INSERT)
_SAVING: Final = (*_APPENDING, Operation.UPSERT)


def brings_rows(operation: Operation, options: WriteOptions) -> bool:
    """Whether the write needs a source. Without it, a source is an error."""
    return operation is not Operation.DELETE_PARTITION and options.where is None


def resolve_mode(operation: Operation, options: WriteOptions) -> tuple[Operation, WriteOptions]:
    """The write without save mode `overwrite`, which is a synonym of the operation overwrite."""
    if options.mode is not SaveMode.OVERWRITE or operation not in (*_SAVING, Operation.OVERWRITE):
        return operation, options
    return Operation.OVERWRITE, msgspec.structs.replace(options, mode=SaveMode.APPEND)


def applies_by_arrival(operation: Operation, options: WriteOptions) -> bool:
    """Whether rows are applied in the order of arrival, whatever their ordering values."""
    return operation is Operation.CHANGELOG and options.order is not ChangeOrder.ORDERING_FIELD


def row_order(options: WriteOptions, dataset: DatasetDefinition) -> ClusterBy | None:
    """The order of the rows in the files of the write; None if it specifies none.

    Raises InvalidRequest if the dataset does not have its columns any more.
    """
    if not options.sort_by:
        return None
    errors = [
        FieldError(pointer=pointer, detail=detail) for pointer, detail in _sort_faults(options, dataset)
    ]
    if errors:
        raise InvalidRequest(f"rows cannot be sorted by these columns: {errors[0].detail}", errors)
    return ClusterBy(columns=options.sort_by)


def check_options(operation: Operation, options: WriteOptions, dataset: DatasetDefinition) -> None:
    """Raises InvalidRequest with every fault of options that conflict with each other or with the dataset.

    Raises InvalidFilter for a filter that does not fit the dataset.
    """
    by_arrival = applies_by_arrival(operation, options)
    check_operation(operation, dataset, by_filter=options.where is not None, by_arrival=by_arrival)
    faults = [fault for rule in _RULES for fault in rule(operation, options, dataset)]
    if faults:
        errors = [FieldError(pointer=pointer, detail=detail) for pointer, detail in faults]
        summary = "; ".join(f"{error.pointer.removeprefix('/')}: {error.detail}" for error in errors)
        raise InvalidRequest(f"the options of the write are not valid: {summary}", errors)
    for text in (options.where, options.overwrite.where if options.overwrite else None):
        if text is not None:
            parse_filter(text, dataset.schema)


def _postponed_rule(operation: Operation, _: WriteOptions, dataset: DatasetDefinition) -> Iterator[_Fault]:
    postpones = dataset.bucket.mode is BucketMode.POSTPONE and not dataset.bucket.fixed_now
    if postpones and operation in _APPENDING:
        yield (
            "/operation",
            f"under bucket mode postpone only compaction looks up keys, so {operation.value} cannot reject "
            "existing ones: use upsert, or register the dataset with fixed_now",
        )


def _mode_rule(operation: Operation, options: WriteOptions, _: DatasetDefinition) -> Iterator[_Fault]:
    if options.mode is not SaveMode.APPEND and operation not in _SAVING:
        yield (
            "/mode",
            f"{options.mode.value!r} applies to insert, upsert and bulk_insert; {operation.value} always does the same "
            "with existing data: leave the mode out",
        )


def _overwrite_rule(
    operation: Operation, options: WriteOptions, dataset: DatasetDefinition
) -> Iterator[_Fault]:
    overwrite = options.overwrite
    if overwrite is None:
        return
    if operation is not Operation.OVERWRITE:
        yield "/overwrite", "a scope belongs to operation overwrite (or mode overwrite)"
    if overwrite.scope is OverwriteScope.PARTITIONS and not dataset.partition_by:
        yield "/overwrite/scope", "the dataset has no partitions (no partition_by); use 'table' or 'filter'"
    if overwrite.scope is OverwriteScope.FILTER and overwrite.where is None:
        yield "/overwrite/where", "scope 'filter' replaces the rows that a filter matches: specify the filter"
    if overwrite.scope is not OverwriteScope.FILTER and overwrite.where is not None:
        yield "/overwrite/where", "a filter belongs to scope 'filter'"


def _where_rule(operation: Operation, options: WriteOptions, _: DatasetDefinition) -> Iterator[_Fault]:
    if options.where is not None and operation is not Operation.DELETE:
        hint = "; an overwrite has its filter in overwrite.where" if operation is Operation.OVERWRITE else ""
        yield "/where", f"a filter selects the rows that operation delete deletes{hint}"


def _partitions_rule(
    operation: Operation, options: WriteOptions, dataset: DatasetDefinition
) -> Iterator[_Fault]:
    if operation is not Operation.DELETE_PARTITION:
        if options.partitions:
            yield "/partitions", "globs of partitions belong to operation delete_partition"
        return
    if not dataset.partition_by:
        yield "/operation", "the dataset has no partitions (no partition_by); delete with a filter instead"
        return
    if not 1 <= len(options.partitions) <= PARTITION_GLOBS_MAX:
        detail = f"expected 1–{PARTITION_GLOBS_MAX} globs of partition paths, such as 'day=2026-11-*'"
        yield "/partitions", detail
    for number, glob in enumerate(options.partitions):
        try:
            check_partition_glob(glob, dataset.partition_by)
        except PartitionSyntaxError as error:
            yield f"/partitions/{number}", str(error)


def _rows_rule(operation: Operation, options: WriteOptions, _: DatasetDefinition) -> Iterator[_Fault]:
    if brings_rows(operation, options):
        return
    if options.on_error is not OnError.FAIL:
        yield "/on_error", "a write without rows has no bad records"
    for name in ("merge_schema", "explicit_cast"):
        if getattr(options, name):
            yield f"/{name}", "a write without rows has no schema to merge"


def _schema_rule(operation: Operation, options: WriteOptions, _: DatasetDefinition) -> Iterator[_Fault]:
    if not brings_rows(operation, options):
        return
    if options.merge_schema and operation is Operation.DELETE:
        yield "/merge_schema", "the rows of a delete need only the key, so they add no columns"
    if options.explicit_cast and not options.merge_schema:
        yield "/explicit_cast", "explicit_cast extends merge_schema: set merge_schema too"


def _duplicates_rule(
    operation: Operation, options: WriteOptions, dataset: DatasetDefinition
) -> Iterator[_Fault]:
    if not options.drop_duplicates:
        return
    if operation not in _APPENDING:
        yield (
            "/drop_duplicates",
            f"only insert and bulk_insert reject existing keys; {operation.value} does not",
        )
    elif not dataset.keyed:
        yield "/drop_duplicates", "rows are compared by key, and the dataset is append-only (no record_key)"


def _combine_rule(
    operation: Operation, options: WriteOptions, dataset: DatasetDefinition
) -> Iterator[_Fault]:
    if options.combine:
        return
    if operation not in _APPENDING:
        yield (
            "/combine",
            f"only insert and bulk_insert can require rows as they were sent; {operation.value} cannot: "
            "leave combine out",
        )
    elif dataset.keyed:
        yield (
            "/combine",
            "the dataset has a record_key and stores one row of each key, so rows of one key in a write are merged: "
            "leave combine out, or write to a dataset without record_key, which stores every row",
        )


def _sort_rule(operation: Operation, options: WriteOptions, dataset: DatasetDefinition) -> Iterator[_Fault]:
    if not options.sort_by:
        return
    if operation is not Operation.BULK_INSERT:
        yield (
            "/sort_by",
            f"only bulk_insert sorts the rows of its files; {operation.value} does not: leave sort_by out",
        )
        return
    if dataset.keyed and not dataset.looks_up:
        yield (
            "/sort_by",
            f"under table type merge_on_read with changelog producer {dataset.changelog.producer.value} new rows are "
            "stored in logs, by key: leave sort_by out, and cluster the dataset (services.clustering)",
        )
    yield from _sort_faults(options, dataset)


def _sort_faults(options: WriteOptions, dataset: DatasetDefinition) -> Iterator[_Fault]:
    for pointer, detail in column_faults(options.sort_by, dataset.schema):
        yield f"/sort_by{pointer}", detail


def _order_rule(operation: Operation, options: WriteOptions, _: DatasetDefinition) -> Iterator[_Fault]:
    if options.order is not None and operation is not Operation.CHANGELOG:
        yield (
            "/order",
            f"only changes can be applied in another order; {operation.value} always compares rows as the merge mode "
            "says: leave order out",
        )


def _tombstone_rule(operation: Operation, options: WriteOptions, _: DatasetDefinition) -> Iterator[_Fault]:
    if options.tombstone:
        return
    if operation is not Operation.DELETE:
        yield (
            "/tombstone",
            f"only delete can leave no tombstones; {operation.value} cannot: leave tombstone out",
        )
    elif options.where is not None:
        yield "/tombstone", "a delete by filter leaves no tombstones: leave tombstone out"


def _expected_version_rule(_: Operation, options: WriteOptions, __: DatasetDefinition) -> Iterator[_Fault]:
    if options.expected_version is not None and not 0 <= options.expected_version <= INT64_MAX:
        yield "/expected_version", f"expected 0–{INT64_MAX}"


def _batch_rule(_: Operation, options: WriteOptions, __: DatasetDefinition) -> Iterator[_Fault]:
    if (options.writer_id is None) != (options.batch_id is None):
        absent = "writer_id" if options.writer_id is None else "batch_id"
        yield f"/{absent}", "writer_id and batch_id identify a batch together: set both or neither"
    if options.writer_id is not None and not (
        1 <= len(options.writer_id) <= WRITER_ID_CHARACTERS_MAX and options.writer_id.isprintable()
    ):
        yield "/writer_id", f"expected 1–{WRITER_ID_CHARACTERS_MAX} printable characters"
    if options.batch_id is not None and not 0 <= options.batch_id <= INT64_MAX:
        yield "/batch_id", f"expected 0–{INT64_MAX}"


def _partition_done_rule(_: Operation, options: WriteOptions, dataset: DatasetDefinition) -> Iterator[_Fault]:
    if options.partition_done:
        yield from partition_done_faults(dataset)


def partition_done_faults(dataset: DatasetDefinition) -> Iterator[_Fault]:
    """Why a write cannot mark partitions of the dataset as done: a pointer, and what is expected."""
    if dataset.services.partition_done is None:
        yield "/partition_done", "the dataset has no services.partition_done; `{}` enables it"
    elif dataset.bucket.mode is BucketMode.POSTPONE:
        yield "/partition_done", "under bucket mode postpone rows are visible only after a compaction"


def _metadata_rule(_: Operation, options: WriteOptions, __: DatasetDefinition) -> Iterator[_Fault]:
    for pointer, detail in metadata_faults(options.metadata or {}):
        yield f"/metadata{pointer}", detail


_RULES: Final[tuple[_Rule, ...]] = (
    _postponed_rule,
    _mode_rule,
    _overwrite_rule,
    _where_rule,
    _partitions_rule,
    _rows_rule,
    _schema_rule,
    _duplicates_rule,
    _combine_rule,
    _sort_rule,
    _order_rule,
    _tombstone_rule,
    _expected_version_rule,
    _batch_rule,
    _partition_done_rule,
    _metadata_rule,
)
