"""Which rows of which changelog file hold which offsets of a feed."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from sqlalchemy import BigInteger, Connection, Select, bindparam, func, select

from app.access.errors import NotFound
from app.core.catalog.tables import heads
from app.core.changes.errors import OffsetAhead
from app.core.changes.positions import FeedBounds, FeedStart, FromTime, FromVersion, StartingPosition
from app.core.timeline.repository.commit_metadata import (
    ListedCommits,
    commits_of_changes,
    commits_of_versions,
)
from app.core.timeline.repository.watermarks import watermark_at
from app.core.timeline.tables import changelog_files, commits
from app.infra.db.session import Database
from app.kernel.format.file_group import ChangelogFile, ChangelogSegment

# Of each segment by itself: a join may read all commits of the dataset.
_COMMITTED_AT: Final = (
    select(commits.c.committed_at)
    .where(
        commits.c.dataset_id == changelog_files.c.dataset_id,
        commits.c.version == changelog_files.c.version,
    )
    .scalar_subquery()
)
# In the order in which `_segment` takes them.
_COLUMNS: Final = (
    *(
        changelog_files.c[name]
        for name in (
            "path", "size_bytes", "checksum", "file_rows", "schema_id", "file_group", "corrects_min", "corrects_max",
            "first_offset", "row_count", "first_row", "version",
        )
    ),
    _COMMITTED_AT,
)  # fmt: skip


def _of_offsets() -> Select[Any]:
    """The segments that hold offsets [since, until) of a dataset, in order; the four are parameters of the query."""
    in_dataset = changelog_files.c.dataset_id == bindparam("dataset", type_=changelog_files.c.dataset_id.type)
    since, until = bindparam("since", type_=BigInteger()), bindparam("until", type_=BigInteger())
    # Offsets are dense, so the first file is the last one that starts no later than `since`: one index probe. Under row
    # level security, the index is not searched for an expression such as `coalesce`, which is not leakproof.
    start = (
        select(func.max(changelog_files.c.first_offset))
        .where(in_dataset, changelog_files.c.first_offset <= since)
        .scalar_subquery()
    )
    return (
        select(*_COLUMNS)
        .where(in_dataset, changelog_files.c.first_offset < until)
        .where(changelog_files.c.first_offset >= start)
        .where(changelog_files.c.first_offset + changelog_files.c.row_count > since)
        .order_by(changelog_files.c.first_offset)
        .limit(bindparam("limit", type_=BigInteger()))
    )


# Built once: every page runs this query, and building it takes a third of the time of running it.
_OF_OFFSETS: Final = _of_offsets()


class ChangelogStore:
    """The index of the changelog in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def bounds(self, tenant_id: str, dataset_id: str) -> FeedBounds:
        """Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            return _bounds(connection, dataset_id)

    def position_at_commit(self, tenant_id: str, dataset_id: str, start: FromVersion | FromTime) -> int:
        """The position of the first change that was committed at the start or later. Raises NotFound, OffsetAhead."""
        with self._database.tenant(tenant_id) as connection:
            return _position_at_commit(connection, dataset_id, start)

    def segments(
        self, tenant_id: str, dataset_id: str, since: int, until: int, *, limit: int | None = None
    ) -> list[ChangelogSegment]:
        """The segments that hold offsets [since, until), in order; the first `limit` of them.

        Raises OffsetExpired if the feed begins after `since`: it may have been cut since its bounds were read.
        """
        if until <= since:
            return []
        with self._database.tenant(tenant_id) as connection:
            parameters = {"dataset": dataset_id, "since": since, "until": until, "limit": limit}
            segments = [_segment(row) for row in connection.execute(_OF_OFFSETS, parameters)]
            if not segments or segments[0].first_offset > since:
                _bounds(connection, dataset_id).checked(since)
        return segments

    def watermark(self, tenant_id: str, dataset_id: str, position: int) -> datetime | None:
        """The watermark of the changes before a position; None if there is none, or it is kept no longer."""
        with self._database.tenant(tenant_id) as connection:
            return watermark_at(connection, dataset_id, position)

    def commits_of_changes(
        self, tenant_id: str, dataset_id: str, since: int, until: int, *, bytes_max: int
    ) -> ListedCommits:
        """The commits with metadata that have changes at offsets [since, until).

        They have at most `bytes_max` bytes of metadata together, unless it is one commit.
        """
        with self._database.tenant(tenant_id) as connection:
            return commits_of_changes(connection, dataset_id, since, until, bytes_max=bytes_max)

    def commits_of_versions(
        self, tenant_id: str, dataset_id: str, begin: int, end: int, *, bytes_max: int
    ) -> ListedCommits:
        """The commits with metadata of the versions after `begin` and up to `end`, bounded as `commits_of_changes`."""
        with self._database.tenant(tenant_id) as connection:
            return commits_of_versions(connection, dataset_id, begin, end, bytes_max=bytes_max)

    def correcting(
        self, tenant_id: str, dataset_id: str, first: int, last: int, *, since: int, limit: int
    ) -> list[ChangelogSegment]:
        """Up to `limit` segments with changes from `since` on that may take back one of first–last, in order."""
        query = (
            select(*_COLUMNS)
            .where(
                changelog_files.c.dataset_id == dataset_id,
                changelog_files.c.corrects_max >= first,
                changelog_files.c.corrects_min <= last,
                changelog_files.c.first_offset + changelog_files.c.row_count > since,
            )
            .order_by(changelog_files.c.first_offset)
            .limit(limit)
        )
        with self._database.tenant(tenant_id) as connection:
            return [_segment(row) for row in connection.execute(query)]


def lock_feed(connection: Connection, dataset_id: str) -> FeedBounds:
    """The bounds of the feed, which no commit and no cut moves until the transaction ends. Raises NotFound.

    For rare operations: commits queue for this lock. It is exclusive, since holders of a shared lock could make commits
    wait for ever.
    """
    return _bounds(connection, dataset_id, lock=True)


def offset_of(connection: Connection, dataset_id: str, start: FeedStart) -> int | StartingPosition:
    """A start as an offset or a name. Exact while the caller holds the feed's lock. Raises NotFound, OffsetAhead."""
    if isinstance(start, FromVersion | FromTime):
        return _position_at_commit(connection, dataset_id, start)
    return start


def _position_at_commit(connection: Connection, dataset_id: str, start: FromVersion | FromTime) -> int:
    head = connection.execute(
        select(heads.c.version, heads.c.committed_at, func.clock_timestamp().label("now")).where(
            heads.c.dataset_id == dataset_id
        )
    ).one_or_none()
    if head is None:
        raise NotFound(f"there is no dataset {dataset_id!r}")
    match start:
        case FromVersion(version):
            # The version after the head's is the next commit, as the head's position is that of the next change.
            if version > head.version + 1:
                raise OffsetAhead(
                    f"version {version} is beyond the head at version {head.version}: it is of another or a recreated "
                    "dataset; start from `earliest`, or follow from `now`",
                    since_version=version,
                    head_version=head.version,
                )
            order, before = commits.c.version, commits.c.version < version
        case FromTime(time):
            if time > max(head.now, head.committed_at or head.now):
                raise OffsetAhead(
                    f"{time.isoformat()} is in the future: changes before it may still be committed; "
                    "expected a time up to now",
                    since_time=time,
                    now=head.now,
                )
            order, before = commits.c.committed_at, commits.c.committed_at < time
    # Versions, times and offsets have the same order, so the last commit before the start ends where it begins.
    query = select(commits.c.next_offset).where(commits.c.dataset_id == dataset_id, before)
    return connection.execute(query.order_by(order.desc()).limit(1)).scalar_one_or_none() or 0


def _bounds(connection: Connection, dataset_id: str, *, lock: bool = False) -> FeedBounds:
    query = select(heads.c.earliest_offset, heads.c.next_offset).where(heads.c.dataset_id == dataset_id)
    if lock:
        query = query.with_for_update()
    row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFound(f"there is no dataset {dataset_id!r}")
    return FeedBounds(earliest=row.earliest_offset, next_offset=row.next_offset)


def _segment(row: Any) -> ChangelogSegment:
    (
        path, size_bytes, checksum, file_rows, schema_id, file_group, corrects_min, corrects_max,
        first_offset, row_count, first_row, version, committed_at,
    ) = row  # fmt: skip
    file = ChangelogFile(
        path=path,
        size_bytes=size_bytes,
        checksum=checksum,
        # A file that was not merged has one segment.
        row_count=row_count if file_rows is None else file_rows,
        schema_id=schema_id,
        file_group=file_group,
        corrects_min=corrects_min,
        corrects_max=corrects_max,
    )
    return ChangelogSegment(
        file=file,
        first_offset=first_offset,
        version=version,
        committed_at=committed_at,
        row_count=row_count,
        first_row=first_row,
    )
