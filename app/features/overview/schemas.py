"""The JSON of a table's files, partitions and sums, and the options of their lists."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Annotated

import msgspec

from app.core.catalog.values import Dataset
from app.features.overview.values import PartitionRecord, SizeClass, TableTotals
from app.features.partitions.values import PartitionMark
from app.http.parameters.page_options import PageOptions
from app.http.parameters.query_parameters import INT64_MAX
from app.kernel.format.clustering import order_of
from app.kernel.format.file_group import ColumnStatistics, DataFile, FileKind, IndexKind
from app.kernel.format.index.column_summary import ColumnSummary
from app.kernel.format.instant import Action
from app.kernel.format.partition.fields import parse_partition, partition_name
from app.kernel.format.partition.segments import read_segment
from app.kernel.format.policies import ClusterOrder
from app.kernel.format.schema.schema import Schema


class ListVersionOptions(PageOptions, frozen=True, kw_only=True):
    """The options of a list of what is there at a version."""

    version: Annotated[int, msgspec.Meta(ge=0, le=INT64_MAX)] | None = None
    """The version to read; the latest by default."""
    as_of: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    """An RFC 3339 time: reads the last version committed by then."""
    tag: str | None = None
    """The name of a tag or savepoint: reads the version that has it."""


class ListFilesOptions(ListVersionOptions, frozen=True, kw_only=True):
    """The options of `list_files`."""

    partition: str | None = None
    """The path of a partition: its files only."""
    kind: FileKind | None = None
    """The files of this kind only."""
    statistics: bool = False
    """Adds the statistics of the columns of each file."""
    where: str | None = None
    """A filter of rows: adds to each file whether a read with it opens the file."""


class FileResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A data file at a version."""

    name: str
    """Its name, which the column `_hw_file_name` of its rows shows."""
    kind: FileKind
    """The kind of its rows: base, log, or postponed; or tombstone, whose rows are deleted keys, not rows of the table.
    """
    partition: Annotated[str, msgspec.Meta(examples=["day=2026-11-21"])]
    """The path of its partition; empty for a table without partitions."""
    bucket: int
    """Its bucket."""
    file_group: str
    """The id of its file group."""
    size_bytes: int
    """Its size."""
    rows: int
    """The number of its stored rows, deleted ones included."""
    live_rows: int
    """The number of its rows that no deletion vector deletes."""
    checksum: str
    """The checksum of its bytes."""
    schema_id: int
    """The schema that it was written with."""
    added_version: int | None
    """The version that added the file in this state."""
    written_version: int | None
    """The version that wrote it."""
    index: IndexKind | None
    """The kind of its key index; null for none."""
    clustered: ClusterOrder | None
    """The order of its rows, if a clustering wrote it; null otherwise."""
    statistics: dict[str, ColumnStatistics] | None
    """The statistics of its columns, by name; null unless `statistics` is requested."""
    read: bool | None = None
    """Whether a read with the filter `where` opens the file; null without `where`."""


class FilePage(msgspec.Struct, frozen=True, kw_only=True):
    """Files of a version by path; all pages of one list are of the same version."""

    items: list[FileResponse]
    """The files of this page."""
    version: int
    """The version of all pages."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class PartitionResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A partition at a version."""

    path: Annotated[str, msgspec.Meta(examples=["day=2026-11-21"])]
    """Its path; empty for a table without partitions."""
    values: Annotated[dict[str, str | None], msgspec.Meta(examples=[{"day": "2026-11-21"}])]
    """The values in its path, by name; null also for a value that is too long for a path."""
    base_files: int
    """The number of its base files."""
    logs: int
    """The number of its logs."""
    postponed: int
    """The number of its postponed writes."""
    tombstone_files: int
    """The number of its tombstone files."""
    rows: int
    """The number of live rows in base files; the number of rows that readers see if `exact`."""
    exact: bool
    """Whether there are no logs, which may add, change or delete rows."""
    log_rows: int
    """The number of rows in logs."""
    postponed_rows: int
    """The number of rows in postponed writes, which are visible after a compaction."""
    size_bytes: int
    """The size of its files."""
    written_version: int
    """The version of the last commit that changed its files, table services included."""
    written_at: datetime
    """The time of that commit."""
    changed_version: int | None
    """The version of the last commit that changed its rows; null if partitions are not marked."""
    changed_at: datetime | None
    """The time of that commit; null if partitions are not marked."""
    done_version: int | None
    """The version that has all of its data; null if it is not done."""
    done_at: datetime | None
    """When it was done; null if it is not done."""


class PartitionPage(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions of a version by path; all pages of one list are of the same version."""

    items: list[PartitionResponse]
    """The partitions of this page."""
    version: int
    """The version of all pages."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class RowSums(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of rows of a table."""

    live: int
    """Rows of base files that no deletion vector deletes; the rows that readers see if `exact`."""
    exact: bool
    """Whether there are no logs."""
    deleted: int
    """Rows of base files that deletion vectors delete."""
    deleted_ratio: float
    """The ratio of `deleted` to all rows of base files."""
    in_logs: int
    """The number of rows in logs."""
    postponed: int
    """Rows in postponed writes."""


class FileSums(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of data files of a table."""

    base: int
    """Base files."""
    logs: int
    """Logs."""
    postponed: int
    """Postponed writes."""
    tombstones: int
    """Tombstone files."""
    small: int
    """Base files that are much smaller than `target_bytes`."""
    sizes: list[SizeClass]
    """Base files by size."""


class ByteSums(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of the files of a table."""

    base: int
    """Of base files."""
    logs: int
    """Of logs."""
    postponed: int
    """Of postponed writes."""
    tombstones: int
    """Of tombstone files."""
    deletion_vectors: int
    """Of deletion vectors."""
    indexes: int
    """Of key indexes."""
    changelog: int
    """Of the files of the feed."""
    written: int
    """The bytes that all commits so far have written to data files."""
    write_amplification: float | None
    """The ratio of `written` to the bytes of live data files; null without live files."""


class ChangelogSums(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that are kept."""

    changes: int
    """Their number."""
    earliest_offset: int
    """The offset of the first one."""
    next_offset: int
    """The offset after the last one."""
    files: int
    """The number of files that contain them."""


class VersionSums(msgspec.Struct, frozen=True, kw_only=True):
    """The versions of a table."""

    earliest: int
    """The first version that is kept, apart from those with a name."""
    latest: int
    """The latest version."""
    commits: Annotated[dict[Action, int], msgspec.Meta(examples=[{"commit": 7}])]
    """The number of commits so far, by action."""


class ServiceTimes(msgspec.Struct, frozen=True, kw_only=True):
    """When each table service last succeeded, also without work to do; null if it never has."""

    compaction: datetime | None
    """The last compaction."""
    clustering: datetime | None
    """The last clustering."""
    clean: datetime | None
    """The last clean."""


class ConsumerSums(msgspec.Struct, frozen=True, kw_only=True):
    """The consumers of the feed."""

    count: int
    """Their number."""
    lag: int | None
    """The number of changes that the consumer farthest behind has not committed; null without consumers."""


class JobSums(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of the dataset that have not ended."""

    queued: int
    """Queued jobs."""
    running: int
    """Running jobs."""


class StatisticsResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of a table."""

    version: int
    """The version of the statistics."""
    committed_at: datetime | None
    """When it was committed; null before the first commit."""
    rows: RowSums
    """Its rows."""
    files: FileSums
    """Its files."""
    partitions: int
    """The number of partitions with files."""
    file_groups: int
    """The number of file groups with files."""
    size_bytes: ByteSums
    """Its bytes."""
    changelog: ChangelogSums
    """The changes that are kept."""
    versions: VersionSums
    """Its versions."""
    served_at: ServiceTimes
    """When table services last succeeded."""
    consumers: ConsumerSums
    """The consumers of its feed."""
    jobs: JobSums
    """Its jobs that have not ended."""
    columns: list[ColumnSummary]
    """Bounds and null counts of the requested columns."""


def file_response(
    file: DataFile, schema: Schema | None, paths: Collection[str] | None = None
) -> FileResponse:
    """The JSON of a file; with statistics if there is a schema to name columns by. `paths`: of the files that are read
    with a filter, if there is one.
    """
    return FileResponse(
        name=file.path.rsplit("/", 1)[-1],
        kind=file.kind,
        partition=file.slot.partition_path,
        bucket=file.slot.bucket,
        file_group=file.file_group,
        size_bytes=file.size_bytes,
        rows=file.row_count,
        live_rows=file.live_rows,
        checksum=file.checksum,
        schema_id=file.schema_id,
        added_version=file.added_version,
        written_version=file.written_version,
        index=None if file.index_file is None else file.index_file.kind,
        clustered=None if file.clustered_by is None else order_of(file.clustered_by),
        statistics=None if schema is None else _by_name(file.statistics, schema),
        read=None if paths is None else file.path in paths,
    )


def _by_name(statistics: Mapping[str, ColumnStatistics], schema: Schema) -> dict[str, ColumnStatistics]:
    return {field.name: statistics[str(field.id)] for field in schema.fields if str(field.id) in statistics}


def partition_response(
    record: PartitionRecord, partition_by: Sequence[str], mark: PartitionMark | None
) -> PartitionResponse:
    """The JSON of a partition, with its mark."""
    names = [partition_name(parse_partition(text)) for text in partition_by]
    segments = record.path.split("/") if names else []
    return PartitionResponse(
        **msgspec.structs.asdict(record),
        values={name: read_segment(segment, name) for name, segment in zip(names, segments, strict=True)},
        exact=record.logs == 0,
        changed_version=None if mark is None else mark.changed_version,
        changed_at=None if mark is None else mark.changed_at,
        done_version=None if mark is None else mark.done_version,
        done_at=None if mark is None else mark.done_at,
    )


def statistics_response(
    dataset: Dataset, totals: TableTotals, columns: list[ColumnSummary]
) -> StatisticsResponse:
    """The JSON of a table's sums."""
    base, logs, postponed, tombstones = (totals.kinds[kind] for kind in FileKind)
    every = base + logs + postponed + tombstones
    written_bytes = sum(each.added_bytes for each in totals.commits)
    return StatisticsResponse(
        version=dataset.version,
        committed_at=dataset.committed_at,
        rows=RowSums(
            live=base.rows - base.deleted_rows,
            exact=logs.files == 0,
            deleted=base.deleted_rows,
            deleted_ratio=base.deleted_rows / base.rows if base.rows else 0.0,
            in_logs=logs.rows,
            postponed=postponed.rows,
        ),
        files=FileSums(
            base=base.files,
            logs=logs.files,
            postponed=postponed.files,
            tombstones=tombstones.files,
            small=totals.small_files,
            sizes=list(totals.sizes),
        ),
        partitions=totals.partitions,
        file_groups=totals.file_groups,
        size_bytes=ByteSums(
            base=base.size_bytes,
            logs=logs.size_bytes,
            postponed=postponed.size_bytes,
            tombstones=tombstones.size_bytes,
            deletion_vectors=every.vector_bytes,
            indexes=every.index_bytes,
            changelog=totals.changelog.size_bytes,
            written=written_bytes,
            write_amplification=written_bytes / every.size_bytes if every.size_bytes else None,
        ),
        changelog=ChangelogSums(
            changes=dataset.next_offset - dataset.earliest_offset,
            earliest_offset=dataset.earliest_offset,
            next_offset=dataset.next_offset,
            files=totals.changelog.files,
        ),
        versions=VersionSums(
            earliest=dataset.earliest_version,
            latest=dataset.version,
            commits={each.action: each.commits for each in totals.commits},
        ),
        served_at=ServiceTimes(
            compaction=totals.service_times.get(Action.COMPACTION),
            clustering=totals.service_times.get(Action.CLUSTERING),
            clean=totals.service_times.get(Action.CLEAN),
        ),
        consumers=ConsumerSums(count=totals.consumers, lag=totals.lag),
        jobs=JobSums(queued=totals.queued_jobs, running=totals.running_jobs),
        columns=columns,
    )
