"""Files, partitions and sums of a table at one version, whatever is committed meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Text,
    and_,
    bindparam,
    case,
    cast,
    distinct,
    func,
    literal,
    or_,
    select,
    text,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY

from app.core.catalog.tables import SCHEMA, heads, schema_versions
from app.core.consumers.repository.followers import IN_FEED
from app.core.consumers.tables import consumers
from app.core.jobs.tables import instants, jobs
from app.core.jobs.values import JobState
from app.core.timeline.repository.data_file_rows import FILE_COLUMNS, data_file
from app.core.timeline.repository.kept_versions import reading_version
from app.core.timeline.tables import SEGMENT_BYTES, changelog_files, commits, files
from app.features.overview.values import (
    ChangelogTotals,
    CommitTotals,
    FileQuery,
    KindTotals,
    PartitionRecord,
    SizeClass,
    TableTotals,
)
from app.infra.db.session import Database
from app.kernel.format.file_group import ColumnStatistics, DataFile, FileKind
from app.kernel.format.index.column_summary import FileStatistics
from app.kernel.format.instant import Action, InstantState
from app.kernel.format.schema.schema import Schema

# The sizes, in bytes, at which classes of files begin.
SIZE_BOUNDS: Final = tuple(2**power for power in (16, 20, 23, 25, 27, 29, 30))
_SERVICES: Final = (Action.COMPACTION, Action.CLUSTERING, Action.CLEAN)
_ROWS_AT_ONCE: Final = 2_000
_STATISTICS: Final = msgspec.json.Decoder(dict[str, ColumnStatistics])


class OverviewStore:
    """The overview of tables in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def files(
        self,
        tenant_id: str,
        dataset_id: str,
        version: int,
        query: FileQuery,
        *,
        skip: int,
        limit: int,
    ) -> list[DataFile]:
        """Up to `limit` files by path, after the first `skip`. Raises VersionExpired, NotFound (dataset gone)."""
        conditions = [
            files.c.dataset_id == dataset_id,
            files.c.added_version <= version,
            or_(files.c.removed_version.is_(None), files.c.removed_version > version),
        ]
        if query.partition is not None:
            conditions.append(files.c.partition_path == query.partition)
        if query.kind is not None:
            conditions.append(files.c.kind == query.kind.value)
        page = select(*FILE_COLUMNS).where(*conditions).order_by(files.c.path).offset(skip).limit(limit)
        with reading_version(self._database, tenant_id, dataset_id, version) as connection:
            return [data_file(row) for row in connection.execute(page)]

    def partitions(
        self, tenant_id: str, dataset_id: str, version: int, *, skip: int, limit: int
    ) -> list[PartitionRecord]:
        """Up to `limit` partitions by path, after the first `skip`. Raises VersionExpired, NotFound (dataset gone).

        A partition that has only tombstones is left out.
        """
        file = _visible(dataset_id, version)
        path = file.partition_path
        base, log, postponed, tombstone = (file.kind == kind.value for kind in FileKind)
        sums = (
            select(
                path.label("path"),
                func.count(case((base, 1))).label("base_files"),
                func.count(case((log, 1))).label("logs"),
                func.count(case((postponed, 1))).label("postponed"),
                func.count(case((tombstone, 1))).label("tombstone_files"),
                _total(case((base, file.row_count - _deleted(file)))).label("rows"),
                _total(case((log, file.row_count))).label("log_rows"),
                _total(case((postponed, file.row_count))).label("postponed_rows"),
                _total(file.size_bytes).label("size_bytes"),
                func.max(file.added_version).label("written_version"),
            )
            .group_by(path)
            .having(func.bool_or(~tombstone))
            .order_by(path)
            .offset(skip)
            .limit(limit)
            .subquery()
        )
        last_commit = and_(commits.c.dataset_id == dataset_id, commits.c.version == sums.c.written_version)
        page = (
            select(sums, commits.c.committed_at.label("written_at"))
            .join(commits, last_commit)
            .order_by(sums.c.path)
        )
        with reading_version(self._database, tenant_id, dataset_id, version) as connection:
            return [PartitionRecord(**row._asdict()) for row in connection.execute(page)]

    def totals(self, tenant_id: str, dataset_id: str, version: int, *, small_below: int) -> TableTotals:
        """The sums over all files, and over the commits up to the version. `small_below`: bytes of a small file."""
        values = {"dataset": dataset_id, "version": version, "small_below": small_below}
        with self._database.tenant(tenant_id) as connection:
            kinds, sizes = _files_by_size(connection, values)
            counts = connection.execute(_COUNTS, values).one()
            states = {row.state: row.jobs for row in connection.execute(_JOBS_BY_STATE, values)}
            readers = connection.execute(_CONSUMERS, values).one()
            return TableTotals(
                kinds=kinds,
                sizes=sizes,
                **counts._asdict(),
                changelog=ChangelogTotals(**connection.execute(_CHANGELOG, values).one()._asdict()),
                commits=tuple(
                    CommitTotals(**row._asdict() | {"action": Action(row.action)})
                    for row in connection.execute(_COMMITS, values)
                ),
                service_times={
                    Action(row.action): row.at for row in connection.execute(_SERVICE_TIMES, values)
                },
                consumers=readers.consumers,
                lag=readers.lag,
                queued_jobs=states.get(JobState.QUEUED.value, 0),
                running_jobs=states.get(JobState.RUNNING.value, 0),
            )

    def base_statistics(self, tenant_id: str, dataset_id: str, version: int) -> Iterator[FileStatistics]:
        """The statistics of each base file, in any order."""
        file = _visible(dataset_id, version)
        query = select(file.row_count, file.schema_id, cast(file.statistics, Text).label("statistics")).where(
            file.kind == FileKind.BASE.value
        )
        with self._database.tenant(tenant_id) as connection:
            rows = connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query)
            for row in rows:
                yield FileStatistics(
                    row_count=row.row_count,
                    schema_id=row.schema_id,
                    statistics=_STATISTICS.decode(row.statistics),
                )

    def schemas(self, tenant_id: str, dataset_id: str) -> dict[int, Schema]:
        """All schemas of the dataset, by id."""
        query = select(SCHEMA).where(schema_versions.c.dataset_id == dataset_id)
        with self._database.tenant(tenant_id) as connection:
            return {schema.id: schema for schema in connection.execute(query).scalars()}


def _visible(dataset_id: Any, version: Any) -> Any:
    """The columns of the files at a version: files that are still live, and files removed since, each by an index."""
    candidates = select(files).where(files.c.dataset_id == dataset_id, files.c.added_version <= version)
    still = candidates.where(files.c.removed_version.is_(None))
    return union_all(still, candidates.where(files.c.removed_version > version)).subquery().c


def _holds_rows(file: Any) -> ColumnElement[bool]:
    holds: ColumnElement[bool] = file.kind != FileKind.TOMBSTONE.value
    return holds


def _member(document: Any, name: str) -> ColumnElement[int]:
    """A number in a JSON column; 0 where the column is null."""
    return func.coalesce(cast(func.json_extract_path_text(document, name), BigInteger), 0)


def _deleted(file: Any) -> ColumnElement[int]:
    return _member(file.deletion_vector, "cardinality")


def _total(number: ColumnElement[int]) -> ColumnElement[int]:
    # The sum of bigints is numeric, which Python would get as a Decimal.
    return cast(func.coalesce(func.sum(number), 0), BigInteger)


# The sums of a table are read with statements that are built once: building them took 3 ms of processor time each time.
_DATASET: Final[Any] = bindparam("dataset")
_VERSION: Final[Any] = bindparam("version")
_FILE: Final = _visible(_DATASET, _VERSION)
_COUNTS: Final = select(
    func.count(distinct(_FILE.partition_path)).filter(_holds_rows(_FILE)).label("partitions"),
    func.count(distinct(_FILE.file_group)).label("file_groups"),
    func.count(
        case((and_(_FILE.kind == FileKind.BASE.value, _FILE.size_bytes < bindparam("small_below")), 1))
    ).label("small_files"),
)
_BY_SIZE: Final = select(
    _FILE.kind,
    func.width_bucket(_FILE.size_bytes, literal(list(SIZE_BOUNDS), ARRAY(BigInteger)), type_=Integer).label(
        "size_class"
    ),
    func.count().label("files"),
    _total(_FILE.row_count).label("rows"),
    _total(_deleted(_FILE)).label("deleted_rows"),
    _total(_FILE.size_bytes).label("size_bytes"),
    _total(_member(_FILE.deletion_vector, "size_bytes")).label("vector_bytes"),
    _total(_member(_FILE.index_file, "size_bytes")).label("index_bytes"),
).group_by(text("kind"), text("size_class"))
_CHANGELOG: Final = select(
    func.count(distinct(changelog_files.c.path)).label("files"),
    _total(SEGMENT_BYTES).label("size_bytes"),
).where(changelog_files.c.dataset_id == _DATASET, changelog_files.c.version <= _VERSION)
_COMMITS: Final = (
    select(
        commits.c.action,
        func.count().label("commits"),
        _total(commits.c.bytes_added).label("added_bytes"),
        func.max(commits.c.committed_at).label("committed_at"),
    )
    .where(commits.c.dataset_id == _DATASET, commits.c.version <= _VERSION)
    .group_by(commits.c.action)
    .order_by(commits.c.action)
)
_SERVICE_NAMES: Final = [action.value for action in _SERVICES]
# Commits of table services stay when their instants are archived.
_SERVED: Final = union_all(
    select(instants.c.action, instants.c.completed_at.label("ended_at")).where(
        instants.c.dataset_id == _DATASET,
        instants.c.state == InstantState.COMPLETED.value,
        instants.c.action.in_(_SERVICE_NAMES),
    ),
    select(commits.c.action, commits.c.committed_at).where(
        commits.c.dataset_id == _DATASET, commits.c.action.in_(_SERVICE_NAMES)
    ),
).subquery()
_SERVICE_TIMES: Final = select(_SERVED.c.action, func.max(_SERVED.c.ended_at).label("at")).group_by(
    _SERVED.c.action
)
_CONSUMERS: Final = (
    select(
        func.count().label("consumers"),
        func.max(func.greatest(heads.c.next_offset - consumers.c.position, 0)).label("lag"),
    )
    .join_from(consumers, heads, heads.c.dataset_id == consumers.c.dataset_id)
    .where(consumers.c.dataset_id == _DATASET, IN_FEED)
)
_JOBS_BY_STATE: Final = (
    select(jobs.c.state, func.count().label("jobs"))
    .where(jobs.c.dataset_id == _DATASET, jobs.c.state.in_([JobState.QUEUED.value, JobState.RUNNING.value]))
    .group_by(jobs.c.state)
)


def _files_by_size(
    connection: Connection, values: Mapping[str, Any]
) -> tuple[dict[FileKind, KindTotals], tuple[SizeClass, ...]]:
    kinds = {kind: KindTotals() for kind in FileKind}
    classes: dict[int, KindTotals] = {}
    for row in connection.execute(_BY_SIZE, values):
        members = row._asdict()
        kind, number = FileKind(members.pop("kind")), members.pop("size_class")
        totals = KindTotals(**members)
        kinds[kind] += totals
        if kind is FileKind.BASE:
            classes[number] = totals
    sizes = [
        SizeClass(below=below, files=class_totals.files, size_bytes=class_totals.size_bytes)
        for number, below in enumerate((*SIZE_BOUNDS, None))
        for class_totals in [classes.get(number, KindTotals())]
    ]
    return kinds, tuple(sizes)
