"""The scope of a write: rows that it retracts without naming keys, and rows that it must read for that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.kernel.commit.write_options import Overwrite, OverwriteScope, SaveMode, WriteOptions
from app.kernel.commit.write_plan import WriteScope
from app.kernel.format.dataset import BucketMode, DatasetDefinition
from app.kernel.format.errors import DataExists
from app.kernel.format.file_group import DataFile
from app.kernel.format.operation import Operation, matches_equal_rows
from app.kernel.format.partition.globs import matches_partition_glob
from app.kernel.format.rows.staged import StagedFile
from app.kernel.sql.conditions.parse import parse_filter


def has_scope(operation: Operation, options: WriteOptions, dataset: DatasetDefinition) -> bool:
    """Whether the plan of the write needs every live file of the table."""
    return (
        operation.replaces
        or operation is Operation.DELETE_PARTITION
        or options.where is not None
        or matches_equal_rows(operation, dataset)
        or _saves(options)
    )


def scope_of(
    operation: Operation,
    options: WriteOptions,
    dataset: DatasetDefinition,
    staged_files: Sequence[StagedFile],
    live: Iterable[DataFile],
) -> WriteScope | None:
    """The live rows that the write retracts, unless it has them itself; None for a write that touches only its keys."""
    match operation:
        case Operation.OVERWRITE:
            return _overwritten(options.overwrite or Overwrite(), dataset, staged_files)
        case Operation.SNAPSHOT:
            return WriteScope()
        case Operation.DELETE_PARTITION:
            paths = {file.slot.partition_path for file in live}
            matching = {
                path
                for path in paths
                if any(matches_partition_glob(path, glob) for glob in options.partitions)
            }
            moves = dataset.bucket.mode is BucketMode.KEY_DYNAMIC
            return WriteScope(partitions=tuple(sorted(matching)), globs=options.partitions if moves else ())
        case Operation.DELETE if options.where is not None:
            return WriteScope(where=parse_filter(options.where, dataset.schema))
        case _ if matches_equal_rows(operation, dataset):
            return _staged_partitions(staged_files)
        case _:
            return None


def read_scope(operation: Operation, options: WriteOptions, scope: WriteScope | None) -> WriteScope | None:
    """The rows that no later commit may have changed: a write that checks for an empty table has read all rows."""
    if _saves(options) or operation is Operation.DELETE_PARTITION:
        return WriteScope()
    return None if scope is None else WriteScope(partitions=scope.partitions)


def is_no_op(options: WriteOptions, *, holds_rows: bool, version: int) -> bool:
    """Whether the save mode leaves the table unchanged. Raises DataExists where it rejects the write."""
    if holds_rows and options.mode is SaveMode.ERROR_IF_EXISTS:
        raise DataExists(
            f"the dataset already has rows, at version {version}, and the write's mode is {options.mode.value}",
            version=version,
            retryable=False,
        )
    return holds_rows and options.mode is SaveMode.IGNORE


def _overwritten(
    overwrite: Overwrite, dataset: DatasetDefinition, staged_files: Sequence[StagedFile]
) -> WriteScope:
    match overwrite.scope:
        case OverwriteScope.PARTITIONS:
            return _staged_partitions(staged_files)
        case OverwriteScope.FILTER:
            return WriteScope(where=parse_filter(overwrite.where or "", dataset.schema))
        case OverwriteScope.TABLE:
            return WriteScope()


def _staged_partitions(staged_files: Sequence[StagedFile]) -> WriteScope:
    """The partitions that staged rows are in."""
    paths = {path for file in staged_files for path in file.partitions}
    paths = paths or {batch.slot.partition_path for file in staged_files for batch in file.batches}
    return WriteScope(partitions=tuple(sorted(paths)))


def _saves(options: WriteOptions) -> bool:
    """Whether the save mode depends on existing data."""
    return options.mode in (SaveMode.IGNORE, SaveMode.ERROR_IF_EXISTS)
