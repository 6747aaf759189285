"""The request to the engine: SQL over rows or changes of datasets, or over rows that a write brings."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import ChangelogSegment, DataFile
from app.kernel.format.operation import Operation
from app.kernel.format.rows.staged import StagedFile


class TableInput(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """All rows of a dataset at one version: `dataset` under its schema then, `files` those that were live.

    The files stand in the order of their commits. `columns`: the names of those that the SQL reads.
    """

    dataset: DatasetDefinition
    files: tuple[DataFile, ...]
    columns: tuple[str, ...]


class FeedInput(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The changes [since, until) of a dataset, in the order of their offsets, under the schema of `dataset`.

    Each is a row of the dataset with its `_hw_op`. The first and the last segment may reach beyond the range.
    `columns`: the names of those that the SQL reads.
    """

    dataset: DatasetDefinition
    since: int
    until: int
    segments: tuple[ChangelogSegment, ...]
    columns: tuple[str, ...]


class RowsInput(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Staged rows of a write, in order, as rows of `dataset`, which has neither keys nor partitions.

    With operation `changelog` each has its `_hw_op`. `columns`: the names of those that the SQL reads.
    """

    dataset: DatasetDefinition
    operation: Operation
    files: tuple[StagedFile, ...]
    columns: tuple[str, ...]


DeriveInput: TypeAlias = TableInput | FeedInput | RowsInput


def has_ops(source: DeriveInput) -> bool:
    """Whether each row has its `_hw_op`."""
    return isinstance(source, FeedInput) or (
        isinstance(source, RowsInput) and source.operation is Operation.CHANGELOG
    )


def relation_of(job_id: str, epoch: int) -> str:
    """The start of the names of a job's relations. Another attempt may still be ending, and drops its own."""
    return f"hw_{job_id.replace('-', '_')}_{epoch}"


class DeriveRequest(msgspec.Struct, frozen=True, kw_only=True):
    """SQL to run on Spark, and how to use its result.

    `sql` reads its inputs by the names that `inputs` gives them, and returns the `columns` of `view`: all of them in
    order, unless they are named. With operation `snapshot` the result is the whole view, and every input a TableInput.
    With `changelog` the input is one with ops, and every change becomes at most one of the view, in the same order,
    with its `_hw_op` behind it. With a RowsInput, the rows are those of a write with `operation`. The paths of the
    staged files start with `prefix`.
    """

    sql: str
    inputs: dict[str, DeriveInput]
    view: DatasetDefinition
    operation: Operation
    prefix: str
    columns: tuple[str, ...] = ()
