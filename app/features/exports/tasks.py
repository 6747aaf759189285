"""Exports: what is written to files, and the tasks that write them.

A range of a feed is exported either as its changes, or as the rows that changed, as they are at its end. A snapshot has
all rows of a version, which are read from the table. The rows that changed are read from the feed where it has all
changes with the rows of the table. Elsewhere they are read from the table, whose rows know the version that gave them
their values. Each task writes a part to files, whose names contain the number of the task and of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Final

import msgspec

from app.kernel.changelog.corrections_since import CorrectionsSince
from app.kernel.changelog.delivery_forms import ChangeForm
from app.kernel.changelog.shared_files import changes_by_unit, is_of_share, shares_of, sharing_partitions
from app.kernel.codecs.commit_times import PackedCommitTimes
from app.kernel.commit.read_plan import plan_read
from app.kernel.commit.table_rows import TableRows, table_rows
from app.kernel.format.dataset import ChangelogProducer, DatasetDefinition
from app.kernel.format.engine_task import EngineTask
from app.kernel.format.file_format import FileFormat
from app.kernel.format.file_group import ChangelogSegment, DataFile
from app.kernel.format.result_file import ExportedFile, RunFile
from app.kernel.format.schema.schema import Schema
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess
from app.kernel.sql.conditions.tree import Filter

TARGET_BYTES_MIN: Final = 64 * 1024
TARGET_BYTES_MAX: Final = 16 * 1024 * 1024 * 1024
# The approximate size of the changelog files that one task reads.
_PART_BYTES: Final = 16 * 1024 * 1024
_PART_ROWS: Final = 1_000_000


class ExportQuery(str, Enum):
    """What is exported: the changes of a range, the latest rows of the keys that changed in it, or all rows of a
    version.
    """

    CHANGES = "changes"
    INCREMENTAL = "incremental"
    SNAPSHOT = "snapshot"


class ExportFormat(str, Enum):
    """The file formats of exports."""

    PARQUET = FileFormat.PARQUET.value
    CSV = FileFormat.CSV.value
    NDJSON = FileFormat.NDJSON.value
    ARROW = FileFormat.ARROW.value

    @property
    def file_format(self) -> FileFormat:
        """The format as a `FileFormat`."""
        return FileFormat(self.value)


class ExportSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What is exported of a dataset, under the schema of `dataset`. `form`: the form of changes.

    `columns`: None for all. `where`: a filter on rows. `partitions`: globs, one of which a row's partition must match.
    `target_bytes`: the size at which a file is closed. `access`: what the reader of the files may see. `commit_times`:
    of all versions, where rows have the meta columns, which are read from the table; None where they have not.
    `corrections`: the same for the marks of rows that later changes have corrected. `latest`: of a snapshot, the
    present schema of the dataset, which has the columns that the access names.
    """

    dataset: DatasetDefinition
    query: ExportQuery
    format: ExportFormat
    form: ChangeForm
    columns: tuple[str, ...] | None
    where: str | None
    partitions: tuple[str, ...] | None
    target_bytes: int
    access: RowAccess = EVERYTHING
    commit_times: PackedCommitTimes | None = None
    corrections: CorrectionsSince | None = None
    latest: Schema | None = None


class ExportedPart(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The result of a part: its files in order. `splits_end`: the range ends between a -C and its +C, so that it was
    exported up to the position before both.
    """

    files: tuple[ExportedFile, ...]
    splits_end: bool = False


class ExportPart(EngineTask[ExportedPart], frozen=True, kw_only=True, tag=True):
    """One task of the export of the changes [since, until): those at [first, last), which `segments` hold, in order; or
    of the rows of `table`, of those only that a commit after the version `changed_after` gave their values, if that is
    not None.

    `earliest`: no change before it can be read. `retracting`: without a key, files that may take back some of the
    changes of the part. `prefix`: what the paths of the files start with. `share`: of this number of `shares` of a
    partition, where file groups share changelog files (see `app.kernel.changelog.shared_files`).
    """

    spec: ExportSpec
    segments: tuple[ChangelogSegment, ...]
    since: int
    until: int
    first: int
    last: int
    earliest: int
    retracting: tuple[ChangelogSegment, ...] = ()
    prefix: str
    share: int = 0
    shares: int = 1
    table: tuple[TableRows, ...] = ()
    changed_after: int | None = None

    @property
    def size_bytes(self) -> int:
        """The approximate number of bytes to read."""
        return sum(each.size_bytes for each in (*self.segments, *self.table))


class PublishedFiles(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The result of copying files."""


class PublishTask(EngineTask[PublishedFiles], frozen=True, kw_only=True, tag=True):
    """Copies files to the folder with the URI `destination`, which must be below one of the `roots`."""

    files: tuple[RunFile, ...]
    destination: str
    roots: tuple[str, ...]

    @property
    def size_bytes(self) -> int:
        """The number of bytes to copy."""
        return sum(file.size_bytes for file in self.files)


def export_parts(
    spec: ExportSpec,
    segments: Sequence[ChangelogSegment],
    *,
    since: int,
    until: int,
    earliest: int,
    prefix: str,
) -> list[ExportPart]:
    """The tasks of an export of the changes [since, until), which `segments` hold, in order."""
    by_group = spec.query is ExportQuery.INCREMENTAL and spec.dataset.keyed
    whole = ExportPart(
        spec=spec, segments=(), since=since, until=until, first=since, last=until, earliest=earliest, prefix=prefix
    )  # fmt: skip
    drafts = (
        _of_groups(spec.dataset, segments, since, until) if by_group else _of_offsets(segments, since, until)
    )
    retracting = [each for each in segments if each.file.corrects_max is not None]
    if spec.query is ExportQuery.CHANGES or spec.dataset.keyed:
        retracting = []
    return [
        msgspec.structs.replace(
            whole,
            segments=tuple(draft.segments),
            first=draft.first,
            last=draft.last,
            share=draft.share,
            shares=draft.shares,
            retracting=tuple(each for each in retracting if _may_retract(each, draft.first, draft.last)),
            prefix=f"{prefix}-{number:05d}",
        )
        for number, draft in enumerate(drafts)
    ]


def reads_feed(dataset: DatasetDefinition) -> bool:
    """Whether the rows that changed can be read from the feed: if it has every change at its version, with the row of
    the table.
    """
    return dataset.changelog.producer is ChangelogProducer.FULL


def changed_row_parts(
    spec: ExportSpec,
    live: Iterable[DataFile],
    where: Filter | None,
    *,
    begin: int | None,
    since: int,
    until: int,
    earliest: int,
    prefix: str,
) -> list[ExportPart]:
    """The tasks that export the rows with values from commits after version `begin`, or all, from the table.

    `live`: the data files of the version at the end of the range. `where`: the rows that are selected. `since`,
    `until`: the range in the feed.
    """
    scans = plan_read(spec.dataset, live, where=where, partitions=spec.partitions)
    packs: list[list[TableRows]] = []
    size_bytes = _PART_BYTES
    for piece in table_rows(scans, piece_bytes=_PART_BYTES, changed_after=begin):
        if size_bytes >= _PART_BYTES:
            packs.append([])
            size_bytes = 0
        packs[-1].append(piece)
        size_bytes += piece.size_bytes
    return [
        ExportPart(
            spec=spec, segments=(), since=since, until=until, first=since, last=until, earliest=earliest,
            prefix=f"{prefix}-{number:05d}", table=tuple(pack), changed_after=begin,
        )
        for number, pack in enumerate(packs)
    ]  # fmt: skip


class _Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What distinguishes a part from the others."""

    segments: list[ChangelogSegment]
    first: int
    last: int
    share: int = 0
    shares: int = 1


def _may_retract(segment: ChangelogSegment, first: int, last: int) -> bool:
    least, greatest = segment.file.corrects_min, segment.file.corrects_max
    return least is None or greatest is None or (least < last and greatest >= first)


def _of_offsets(segments: Sequence[ChangelogSegment], since: int, until: int) -> Iterator[_Draft]:
    """Ranges of the feed of about equal size; they may begin and end within a file."""
    part: list[ChangelogSegment] = []
    first, size_bytes = since, 0.0
    for segment in segments:
        position, end = max(since, segment.first_offset), min(until, segment.end_offset)
        row_bytes = segment.size_bytes / max(segment.row_count, 1)
        while position < end:
            room = min(_PART_ROWS - (position - first), int((_PART_BYTES - size_bytes) / max(row_bytes, 1)))
            step = min(max(room, 1), end - position)
            if not part or part[-1] is not segment:
                part.append(segment)
            position += step
            size_bytes += step * row_bytes
            if position - first >= _PART_ROWS or size_bytes >= _PART_BYTES:
                yield _Draft(segments=part, first=first, last=position)
                part, first, size_bytes = [], position, 0.0
    if part:
        yield _Draft(segments=part, first=first, last=until)


def _of_groups(
    dataset: DatasetDefinition, segments: Sequence[ChangelogSegment], since: int, until: int
) -> Iterator[_Draft]:
    """Whole file groups, since all changes of a key are in one group; small groups share a part.

    A large partition in which they may be in several groups, or in shared files, is divided into shares.
    """
    whole = _Draft(segments=[], first=since, last=until)
    part: list[ChangelogSegment] = []
    size_bytes = 0
    for unit in changes_by_unit(segments):
        unit_bytes = sum(segment.size_bytes for segment in unit)
        groups = {segment.file.file_group for segment in unit}
        shares = min(shares_of(dataset, groups), 1 + unit_bytes // _PART_BYTES)
        if shares > 1 and sharing_partitions(groups):
            for share in range(shares):
                own = [each for each in unit if is_of_share(each.file.file_group, share, shares)]
                yield msgspec.structs.replace(whole, segments=own, share=share, shares=shares)
            continue
        part += unit
        size_bytes += unit_bytes
        if size_bytes >= _PART_BYTES:
            yield msgspec.structs.replace(whole, segments=part)
            part, size_bytes = [], 0
    if part:
        yield msgspec.structs.replace(whole, segments=part)
