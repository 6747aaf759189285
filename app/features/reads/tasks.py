"""Read jobs: the tasks that read rows of a table, or rows that changed in it, and write them to files.

Without an order, tasks write result files straight away. With one they write sorted runs
(`app/kernel/sql/read_order.py`), of which other tasks make the files, unless one task alone could hold all
rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from app.features.exports.tasks import ExportPart
from app.kernel.changelog.corrections_since import CorrectionsSince
from app.kernel.codecs.commit_times import PackedCommitTimes
from app.kernel.commit.read_plan import GroupScan
from app.kernel.commit.table_rows import TableRows, table_rows
from app.kernel.format.dataset import BucketMode, DatasetDefinition
from app.kernel.format.engine_task import EngineTask
from app.kernel.format.file_format import FileFormat
from app.kernel.format.result_file import ExportedFile
from app.kernel.sql.conditions.tree import Filter
from app.kernel.sql.read_order import ReadOrder, RunRange, SortedRun

# The approximate number of bytes that one task reads.
PART_BYTES: Final = 32 * 1024 * 1024


class ReadSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What is read of a dataset, under the schema of `dataset`, and how it is written.

    `columns`: the columns of the result, in order. `masked`: those that have no values in it. `where` selects no row
    that the reader may not see. `partitions`: globs; None for all. `target_bytes`: the size at which
    a file is closed. `commit_times`: of all versions, where rows have the meta columns; None where they have not.
    `corrections`: where rows are marked that later changes have corrected, what these are; None where they are not.
    """

    dataset: DatasetDefinition
    columns: tuple[str, ...]
    where: Filter | None
    partitions: tuple[str, ...] | None
    order_by: tuple[ReadOrder, ...]
    format: FileFormat
    target_bytes: int
    masked: tuple[str, ...] = ()
    commit_times: PackedCommitTimes | None = None
    corrections: CorrectionsSince | None = None

    @property
    def with_sources(self) -> bool:
        """Whether the version and the change that gave a row its values are read along with it."""
        return self.commit_times is not None or self.corrections is not None

    @property
    def read_columns(self) -> tuple[str, ...]:
        """The columns of the result, followed by the other columns of the order."""
        return tuple(dict.fromkeys([*self.columns, *(key.column for key in self.order_by)]))

    @property
    def selects(self) -> bool:
        """Whether rows of the planned files may not be selected."""
        return self.where is not None or (
            self.partitions is not None and self.dataset.bucket.mode is BucketMode.KEY_DYNAMIC
        )


class ChangedRows(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The rows that an incremental export writes of a part of the feed."""

    part: ExportPart

    @property
    def size_bytes(self) -> int:
        """The approximate number of bytes to read."""
        return self.part.size_bytes


class RangeRows(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Rows of sorted runs, in order."""

    range: RunRange
    size_bytes: int


ReadSource = TableRows | ChangedRows | RangeRows


class ReadPartResult(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The result of a part: its files in order, or its sorted runs."""

    files: tuple[ExportedFile, ...] = ()
    runs: tuple[SortedRun, ...] = ()

    @property
    def rows(self) -> int:
        """Rows in the files."""
        return sum(file.row_count for file in self.files)


class ReadPart(EngineTask[ReadPartResult], frozen=True, kw_only=True, tag=True):
    """One task: reads the selected rows of the sources in order, at most `limit` of them, unless None.

    `alone`: whether it is the only part, so that it sorts its rows and writes result files at once. `prefix`: the
    prefix of the paths of its files.
    """

    spec: ReadSpec
    sources: tuple[ReadSource, ...]
    prefix: str
    limit: int | None = None
    alone: bool = False

    @property
    def size_bytes(self) -> int:
        """The approximate number of bytes to read."""
        return sum(source.size_bytes for source in self.sources)


def table_sources(spec: ReadSpec, scans: Sequence[GroupScan], limit: int | None) -> Sequence[ReadSource]:
    """The sources to read of a version, by file group.

    `limit`: the number of rows that suffice, whichever they are; None for all.
    """
    enough = None if spec.selects or spec.order_by else limit
    return table_rows(scans, piece_bytes=PART_BYTES, limit=enough)


def read_parts(
    spec: ReadSpec, sources: Iterable[ReadSource], prefix: str, limit: int | None
) -> list[ReadPart]:
    """The tasks that read the sources, in their order; small ones together."""
    packs: list[list[ReadSource]] = []
    size = PART_BYTES
    for source in sources:
        if size >= PART_BYTES:
            packs.append([])
            size = 0
        packs[-1].append(source)
        size += source.size_bytes
    return [
        ReadPart(
            spec=spec,
            sources=tuple(pack),
            prefix=f"{prefix}-{number:05d}",
            limit=limit,
            alone=len(packs) == 1,
        )
        for number, pack in enumerate(packs)
    ]


def range_parts(
    spec: ReadSpec, ranges: Sequence[RunRange], prefix: str, *, size_bytes: int, limit: int | None
) -> list[ReadPart]:
    """The tasks that write the rows of sorted runs, range after range, of `size_bytes` in all."""
    size = size_bytes // max(len(ranges), 1)
    return [
        ReadPart(
            spec=spec,
            sources=(RangeRows(range=each, size_bytes=size),),
            prefix=f"{prefix}-{number:05d}",
            limit=limit,
        )
        for number, each in enumerate(ranges)
    ]


def shortened(
    parts: Sequence[ReadPart], answers: Sequence[ReadPartResult], limit: int
) -> tuple[int, ReadPart | None]:
    """Shortens parts, run in order, to a number of rows: returns how many parts stay whole, and the next part to rerun.

    The next part is rerun with a lower limit; None if the limit falls between two parts, or is not reached.
    """
    remaining_rows = limit
    for number, (part, answer) in enumerate(zip(parts, answers, strict=False)):
        if remaining_rows == 0:
            return number, None
        if answer.rows > remaining_rows:
            return number, msgspec.structs.replace(part, limit=remaining_rows, prefix=f"{part.prefix}-cut")
        remaining_rows -= answer.rows
    return len(answers), None
