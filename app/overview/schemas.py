"""The JSON forms of a table's files, partitions and sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from app.catalog.values import Dataset
from app.format.clustering import order_of
from app.format.file_group import ColumnStatistics, DataFile, FileKind, IndexKind
from app.format.index.column_summary import ColumnSummary
from app.format.instant import Action
from app.format.partition import parse_partition, partition_name
from app.format.partition.segments import read_segment
from app.format.policies import ClusterOrder
from app.format.schema.schema import Schema
from app.overview.values import PartitionRecord, SizeClass, TableTotals
from app.partitions.values import PartitionMark


class FileResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A data file at a version. `name` is what `_hw_file_name` shows beside its rows.

    `live_rows`: those that no deletion vector has taken out. `added_version`: since when the file is as it is here;
    `written_version`: the commit that wrote it. `clustered`: the order in which a clustering has put its rows.
    `statistics`: by column, if they were asked for; a column that nothing is known of is left out.
    """

    name: str
    kind: FileKind
    partition: str
    bucket: int
    file_group: str
    size_bytes: int
    rows: int
    live_rows: int
    checksum: str
    schema_id: int
    added_version: int | None
    written_version: int | None
    index: IndexKind | None
    clustered: ClusterOrder | None
    statistics: dict[str, ColumnStatistics] | None


class FilePage(msgspec.Struct, frozen=True, kw_only=True):
    """Files of a version, in the order of their paths; every page of one walk is of the same version."""

    items: list[FileResponse]
    version: int
    next_page_token: str | None


class PartitionResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A partition at a version.

    `values`: by the names in its path; null also for a value that is too long for one. `rows`: those of base files that
    are live, which is what readers see if `exact`; otherwise there are logs (with `log_rows`), which may add rows, or
    change or take out some. `postponed_rows` nobody sees before a compaction. `written_version`: the last commit that
    wrote to its files, a compaction too. `changed_version`: the last that changed its data, and `done_version`: the one
    that has all of it, if it is done; both null where partitions are not marked.
    """

    path: str
    values: dict[str, str | None]
    base_files: int
    logs: int
    postponed: int
    rows: int
    exact: bool
    log_rows: int
    postponed_rows: int
    size_bytes: int
    written_version: int
    written_at: datetime
    changed_version: int | None
    changed_at: datetime | None
    done_version: int | None
    done_at: datetime | None


class PartitionPage(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions of a version by path; every page of one walk is of the same version."""

    items: list[PartitionResponse]
    version: int
    next_page_token: str | None


class RowSums(msgspec.Struct, frozen=True, kw_only=True):
    """`live`: rows of base files that no deletion vector has taken out, which is what readers see if `exact`.

    Otherwise there are logs. `deleted_ratio`: rows that vectors took out, to all rows of base files.
    """

    live: int
    exact: bool
    deleted: int
    deleted_ratio: float
    in_logs: int
    postponed: int


class FileSums(msgspec.Struct, frozen=True, kw_only=True):
    """Files by kind. `small`: base files far from the size at which the next is begun. `sizes`: base files by size."""

    base: int
    logs: int
    postponed: int
    small: int
    sizes: list[SizeClass]


class ByteSums(msgspec.Struct, frozen=True, kw_only=True):
    """`written`: by all commits so far, to data files; `write_amplification`: that, to the bytes of live data files."""

    base: int
    logs: int
    postponed: int
    deletion_vectors: int
    indexes: int
    changelog: int
    written: int
    write_amplification: float | None


class ChangelogSums(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that are kept: [earliest_offset, next_offset)."""

    changes: int
    earliest_offset: int
    next_offset: int
    files: int


class VersionSums(msgspec.Struct, frozen=True, kw_only=True):
    """Versions from `earliest` on are kept, and those with a name. `commits`: how many there were of each action."""

    earliest: int
    latest: int
    commits: dict[Action, int]


class ServiceTimes(msgspec.Struct, frozen=True, kw_only=True):
    """When each table service last did its work, also where it found nothing to do."""

    compaction: datetime | None
    clustering: datetime | None
    clean: datetime | None


class ConsumerSums(msgspec.Struct, frozen=True, kw_only=True):
    """`lag`: the changes that the consumer has before it that is farthest behind; null without consumers."""

    count: int
    lag: int | None


class JobSums(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of the dataset that have not ended."""

    queued: int
    running: int


class StatisticsResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A table in numbers. `columns`: bounds and nulls of those asked for, in base files, deleted rows included.

    A bound or count is null where one of the files does not tell.
    """

    version: int
    committed_at: datetime | None
    rows: RowSums
    files: FileSums
    partitions: int
    file_groups: int
    size_bytes: ByteSums
    changelog: ChangelogSums
    versions: VersionSums
    served_at: ServiceTimes
    consumers: ConsumerSums
    jobs: JobSums
    columns: list[ColumnSummary]


def file_response(file: DataFile, schema: Schema | None) -> FileResponse:
    """The JSON form of a file; with statistics if there is a schema to name columns by."""
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
    )


def _by_name(statistics: Mapping[str, ColumnStatistics], schema: Schema) -> dict[str, ColumnStatistics]:
    return {field.name: statistics[str(field.id)] for field in schema.fields if str(field.id) in statistics}


def partition_response(
    record: PartitionRecord, partition_by: Sequence[str], mark: PartitionMark | None
) -> PartitionResponse:
    """The JSON form of a partition, with what is known of its being done."""
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
    """The JSON form of a table's sums."""
    base, logs, postponed = (totals.kinds[kind] for kind in FileKind)
    every = base + logs + postponed
    written = sum(each.bytes_added for each in totals.commits)
    return StatisticsResponse(
        version=dataset.version,
        committed_at=dataset.committed_at,
        rows=RowSums(
            live=base.rows - base.deleted,
            exact=logs.files == 0,
            deleted=base.deleted,
            deleted_ratio=base.deleted / base.rows if base.rows else 0.0,
            in_logs=logs.rows,
            postponed=postponed.rows,
        ),
        files=FileSums(
            base=base.files,
            logs=logs.files,
            postponed=postponed.files,
            small=totals.small_files,
            sizes=list(totals.sizes),
        ),
        partitions=totals.partitions,
        file_groups=totals.file_groups,
        size_bytes=ByteSums(
            base=base.size_bytes,
            logs=logs.size_bytes,
            postponed=postponed.size_bytes,
            deletion_vectors=every.vector_bytes,
            indexes=every.index_bytes,
            changelog=totals.changelog.size_bytes,
            written=written,
            write_amplification=written / every.size_bytes if every.size_bytes else None,
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
            compaction=totals.served.get(Action.COMPACTION),
            clustering=totals.served.get(Action.CLUSTERING),
            clean=totals.served.get(Action.CLEAN),
        ),
        consumers=ConsumerSums(count=totals.consumers, lag=totals.lag),
        jobs=JobSums(queued=totals.jobs_queued, running=totals.jobs_running),
        columns=columns,
    )
