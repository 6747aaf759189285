"""The request of a refresh to the engine: SQL over rows or changes of the inputs of a view."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from app.format.dataset import DatasetDefinition
from app.format.file_group import ChangelogSegment, DataFile
from app.format.operation import Operation


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


DeriveInput: TypeAlias = TableInput | FeedInput


class DeriveRequest(msgspec.Struct, frozen=True, kw_only=True):
    """SQL to run on Spark, and how to use its result.

    `sql` reads its inputs by the names that `inputs` gives them, and returns the columns of `view` in order. With
    operation `snapshot` the result is the whole view, and every input a TableInput. With `changelog` the input is one
    FeedInput, and every change becomes at most one of the view, in the same order, with its `_hw_op` behind it. The
    paths of the staged files start with `prefix`.
    """

    sql: str
    inputs: dict[str, DeriveInput]
    view: DatasetDefinition
    operation: Operation
    prefix: str
