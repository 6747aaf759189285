"""Verifies a table of files against its feed, as the service does, in the process of the tests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.parquet_file import ParquetReader
from app.infra.files.slices.feed_verification import check_files
from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.kernel.changelog.verification import FoldTask, FoldVerdict, plan_fold
from app.kernel.format.file_group import ChangelogSegment
from app.kernel.format.schema.schema import Schema
from tests.support.lake_table import LakeTable


def fold_tasks(
    table: LakeTable, start: LakeTable | None = None, schemas: Sequence[Schema] = ()
) -> list[FoldTask]:
    """What it takes to verify the table, from version 0 on or from an earlier one, `start`.

    `schemas`: those that it had before the one it has.
    """
    begin = 0 if start is None else start.version
    segments = [
        ChangelogSegment(
            file=file,
            row_count=file.row_count,
            first_offset=offset,
            version=version,
            committed_at=datetime.fromtimestamp(version, UTC),
        )
        for version, offset, file in table.feed
        if version > begin
    ]
    before = () if start is None else start.files.values()
    had = {schema.id: schema for schema in (*schemas, table.dataset.schema)}
    return plan_fold(table.dataset, before, table.files.values(), segments, had)


def verified(
    table: LakeTable,
    start: LakeTable | None = None,
    schemas: Sequence[Schema] = (),
    memory: MemoryBudget | None = None,
) -> FoldVerdict:
    """What verifying the table finds. Files are opened again, so that what was done to them since is seen."""
    slices = SliceReader(ParquetReader(table.storage), VectorReader(table.storage))
    tasks = fold_tasks(table, start, schemas)
    return sum(
        (check_files(slices, task, memory or MemoryBudget(bytes_max=2**26)) for task in tasks), FoldVerdict()
    )
