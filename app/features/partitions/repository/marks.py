"""Marks of partitions that are done, and their events. All time is the database's clock."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    Connection,
    Select,
    and_,
    delete,
    func,
    insert,
    literal,
    null,
    select,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import insert as insert_unless

from app.access.errors import NotFound
from app.core.catalog.repository.live_datasets import share_datasets
from app.core.catalog.tables import heads
from app.core.changes.errors import OffsetAhead
from app.core.changes.positions import StartingPosition
from app.core.consumers.repository.followers import wake_partition_webhooks
from app.core.timeline.tables import commits, files
from app.features.partitions.tables import partition_events, partition_feeds, partition_marks
from app.features.partitions.values import (
    DoneReason,
    MarkerWork,
    PartitionEvent,
    PartitionEventKind,
    PartitionEvents,
    PartitionMark,
)
from app.infra.db.any_of import any_of
from app.infra.db.session import Database
from app.infra.db.times import seconds_ago
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.file_group import FileKind
from app.kernel.format.instant import Action

_MARK: Final = tuple(partition_marks.c[name] for name in PartitionMark.__struct_fields__)
_EVENT: Final = tuple(partition_events.c[name] for name in PartitionEvent.__struct_fields__)
_NOW: Final = func.clock_timestamp()
# What these write was in the partition before.
_MOVES_ROWS_ONLY: Final = (Action.COMPACTION.value, Action.CLUSTERING.value)


class PartitionStore:
    """Marks and events in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def catch_up(self, tenant_id: str, dataset_id: str, *, idle_seconds: float | None) -> float | None:
        """Records which partitions commits have changed since the last call, and ends those that are idle.

        `idle_seconds`: how long a partition must have no write; None to end none. Returns the seconds until the next
        partition is idle; None if none will be.
        """
        with self._database.tenant(tenant_id) as connection:
            if not share_datasets(connection, [dataset_id]):
                return None
            version = _catch_up(connection, dataset_id)
            if idle_seconds is None:
                return None
            # One time for both, or a partition that becomes idle between them would be found by neither.
            before = connection.execute(select(seconds_ago(idle_seconds))).scalar_one()
            _end(connection, dataset_id, _idle(connection, dataset_id, before), version, DoneReason.IDLE)
            return _next_idle(connection, dataset_id, before)

    def end(self, tenant_id: str, dataset_id: str, partitions: Sequence[str]) -> list[PartitionMark]:
        """Marks partitions as done, in the given order; partitions that are done already do not change.

        Raises NotFound (dataset gone), InvalidRequest for a partition that does not exist, or with writes that are
        invisible until a compaction.
        """
        with self._database.tenant(tenant_id) as connection:
            if not share_datasets(connection, [dataset_id]):
                raise NotFound(f"there is no dataset {dataset_id!r}")
            version = _catch_up(connection, dataset_id)
            earlier_marks = _marks(connection, dataset_id, partitions)
            _refuse(connection, dataset_id, partitions, earlier_marks)
            still_open = [path for path in dict.fromkeys(partitions) if earlier_marks[path].done_at is None]
            _end(connection, dataset_id, still_open, version, DoneReason.ENDED)
            marks = _marks(connection, dataset_id, partitions)
            return [marks[path] for path in dict.fromkeys(partitions)]

    def end_changed(self, tenant_id: str, dataset_id: str, since: int) -> None:
        """Marks the partitions that changed after a version as done. Raises NotFound (dataset gone)."""
        with self._database.tenant(tenant_id) as connection:
            if not share_datasets(connection, [dataset_id]):
                raise NotFound(f"there is no dataset {dataset_id!r}")
            _end_changed(connection, dataset_id, _catch_up(connection, dataset_id), since)

    def of(self, tenant_id: str, dataset_id: str, paths: Collection[str]) -> dict[str, PartitionMark]:
        """The marks of these partitions, as far as they have any."""
        with self._database.tenant(tenant_id) as connection:
            return _marks(connection, dataset_id, paths)

    def events(
        self, tenant_id: str, dataset_id: str, since: int | StartingPosition, limit: int
    ) -> PartitionEvents:
        """Raises OffsetAhead."""
        with self._database.tenant(tenant_id) as connection:
            return read_events(connection, dataset_id, since, limit)

    def settle_markers(
        self,
        tenant_id: str,
        dataset_id: str,
        settle: Callable[[MarkerWork], None],
        *,
        with_markers: bool,
        limit: int,
    ) -> int:
        """Calls `settle` for up to `limit` markers that are outdated; returns the number of calls.

        Partitions that are done have a marker if `with_markers`; no others have one. Each marker is settled by one
        caller at a time. If `settle` raises, that marker and those after it stay outdated.
        """
        should_say = partition_marks.c.done_version if with_markers else null()
        columns = partition_marks.c.path, should_say.label("version"), partition_marks.c.done_at
        query = (
            select(*columns)
            .where(
                partition_marks.c.dataset_id == dataset_id,
                partition_marks.c.marker_version.is_distinct_from(should_say),
            )
            .limit(1)
            .with_for_update(skip_locked=True)
        )
        for count in range(limit):
            # While its row is locked, no other process changes the marker, and the partition does not change.
            with self._database.tenant(tenant_id) as connection:
                row = connection.execute(query).one_or_none()
                if row is None:
                    return count
                settle(
                    MarkerWork(
                        path=row.path,
                        version=row.version,
                        done_at=None if row.version is None else row.done_at,
                    )
                )
                connection.execute(
                    update(partition_marks)
                    .where(partition_marks.c.dataset_id == dataset_id, partition_marks.c.path == row.path)
                    .values(marker_version=row.version)
                )
        return limit

    def clear(self, tenant_id: str, dataset_id: str) -> None:
        """Removes the marks. Events stay, and the numbers of later ones continue."""
        in_dataset = partition_feeds.c.dataset_id == dataset_id
        with self._database.tenant(tenant_id) as connection:
            if connection.execute(
                select(partition_feeds.c.version).where(in_dataset).with_for_update()
            ).first():
                connection.execute(update(partition_feeds).where(in_dataset).values(version=0))
                connection.execute(delete(partition_marks).where(partition_marks.c.dataset_id == dataset_id))


def read_events(
    connection: Connection, dataset_id: str, since: int | StartingPosition, limit: int
) -> PartitionEvents:
    """Up to `limit` events from `since` on. Raises OffsetAhead."""
    in_dataset = partition_feeds.c.dataset_id == dataset_id
    count = (
        connection.execute(select(partition_feeds.c.next_event).where(in_dataset)).scalar_one_or_none() or 0
    )
    if isinstance(since, StartingPosition):
        since = count if since is StartingPosition.NOW else 0
    if since > count:
        raise OffsetAhead(
            f"the position {since} is beyond the last event, after which comes {count}",
            since=since,
            head=count,
        )
    conditions = (
        partition_events.c.dataset_id == dataset_id,
        partition_events.c.number >= since,
        partition_events.c.number < count,
    )
    query = select(*_EVENT).where(*conditions).order_by(partition_events.c.number).limit(limit)
    items = tuple(_event(row) for row in connection.execute(query))
    return PartitionEvents(items=items, next_since=since + len(items), count=count)


def lock_events(connection: Connection, dataset_id: str) -> int:
    """The number of the next event. Until the transaction ends, no other one adds events."""
    connection.execute(insert_unless(partition_feeds).values(dataset_id=dataset_id).on_conflict_do_nothing())
    query = select(partition_feeds.c.next_event).where(partition_feeds.c.dataset_id == dataset_id)
    return int(connection.execute(query.with_for_update()).scalar_one())


def _catch_up(connection: Connection, dataset_id: str) -> int:
    """Records the partitions that commits have changed since the last call, under the lock that orders events.

    Returns the version up to which they are recorded.
    """
    lock_events(connection, dataset_id)
    in_dataset = partition_feeds.c.dataset_id == dataset_id
    since = connection.execute(select(partition_feeds.c.version).where(in_dataset)).scalar_one()
    of_head = select(heads.c.version, heads.c.earliest_version).where(heads.c.dataset_id == dataset_id)
    version, earliest = connection.execute(of_head).one()
    if since == version:
        return since
    while True:
        changes = connection.execute(_changed(dataset_id, since, version, earliest)).all()
        before, (_, earliest) = earliest, connection.execute(of_head).one()
        if earliest <= max(before, since):
            break
        # A clean has deleted rows of removed files meanwhile.
    _note_changes(connection, dataset_id, changes)
    connection.execute(update(partition_feeds).where(in_dataset).values(version=version))
    return int(version)


def end_changed(connection: Connection, dataset_id: str) -> None:
    """Marks the partitions that the latest version changed as done. The caller has just committed that version."""
    version = _catch_up(connection, dataset_id)
    _end_changed(connection, dataset_id, version, since=version - 1)


def _end_changed(connection: Connection, dataset_id: str, version: int, since: int) -> None:
    query = select(partition_marks.c.path).where(
        *_open(dataset_id), partition_marks.c.changed_version > since
    )
    paths = list(connection.execute(query.order_by(partition_marks.c.path)).scalars())
    invisible_paths = _unseen(connection, dataset_id, paths)
    visible_paths = [path for path in paths if path not in invisible_paths]
    _end(connection, dataset_id, visible_paths, version, DoneReason.ENDED)


def _changed(dataset_id: str, since: int, until: int, earliest: int) -> Select[Any]:
    """By partition, the last version after `since` and up to `until` that added or removed rows of it.

    `earliest`: the version from which on all are kept.
    """
    in_dataset = (
        files.c.dataset_id == dataset_id,
        files.c.partition_path != "",
        files.c.kind != FileKind.TOMBSTONE.value,
    )
    changes = [
        select(files.c.partition_path, commits.c.version)
        .join(commits, and_(commits.c.dataset_id == files.c.dataset_id, commits.c.version == version))
        .where(*in_dataset, version > since, version <= until, commits.c.action.not_in(_MOVES_ROWS_ONLY))
        for version in (files.c.added_version, files.c.removed_version)
    ]
    if since < earliest:
        # The rows of removed files may be deleted, so any partition may have changed up to then.
        changes.append(select(files.c.partition_path, literal(earliest)).where(*in_dataset))
    path_versions = union_all(*changes).subquery()
    last = select(path_versions.c[0].label("path"), func.max(path_versions.c[1]).label("version")).group_by(
        path_versions.c[0]
    )
    latest = last.subquery()
    return select(latest.c.path, latest.c.version, commits.c.committed_at).join(
        commits, and_(commits.c.dataset_id == dataset_id, commits.c.version == latest.c.version)
    )


def _note_changes(connection: Connection, dataset_id: str, changes: Sequence[Any]) -> None:
    """Reopens the partitions of rows (path, version, time) that were done before these versions."""
    if not changes:
        return
    before = _marks(connection, dataset_id, [row.path for row in changes])
    statement = insert_unless(partition_marks)
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=[
                partition_marks.c.tenant_id,
                partition_marks.c.dataset_id,
                partition_marks.c.path,
            ],
            set_={
                "changed_version": statement.excluded.changed_version,
                "changed_at": statement.excluded.changed_at,
                "done_version": None,
                "done_at": None,
            },
        ),
        [
            {
                "dataset_id": dataset_id,
                "path": row.path,
                "changed_version": row.version,
                "changed_at": row.committed_at,
            }
            for row in changes
        ],
    )
    reopened_rows = [row for row in changes if row.path in before and before[row.path].done_at is not None]
    path_versions = [
        (row.path, row.version) for row in sorted(reopened_rows, key=lambda row: (row.version, row.path))
    ]
    _emit_events(connection, dataset_id, PartitionEventKind.REOPENED, path_versions, reason=None)


def _end(
    connection: Connection, dataset_id: str, paths: Sequence[str], version: int, reason: DoneReason
) -> None:
    if not paths:
        return
    connection.execute(
        update(partition_marks)
        .where(partition_marks.c.dataset_id == dataset_id, any_of(partition_marks.c.path, paths))
        .values(done_version=version, done_at=_NOW)
    )
    path_versions = [(path, version) for path in paths]
    _emit_events(connection, dataset_id, PartitionEventKind.DONE, path_versions, reason=reason)


def _emit_events(
    connection: Connection,
    dataset_id: str,
    kind: PartitionEventKind,
    path_versions: Iterable[tuple[str, int]],
    *,
    reason: DoneReason | None,
) -> None:
    """Adds events. The caller has locked them with `lock_events`."""
    in_dataset = partition_feeds.c.dataset_id == dataset_id
    first = connection.execute(select(partition_feeds.c.next_event).where(in_dataset)).scalar_one()
    rows = [
        {
            "dataset_id": dataset_id,
            "number": number,
            "kind": kind.value,
            "partition": path,
            "version": version,
            "reason": None if reason is None else reason.value,
        }
        for number, (path, version) in enumerate(path_versions, start=first)
    ]
    if rows:
        connection.execute(insert(partition_events), rows)
        connection.execute(update(partition_feeds).where(in_dataset).values(next_event=first + len(rows)))
        wake_partition_webhooks(connection, dataset_id)


def _idle(connection: Connection, dataset_id: str, before: datetime) -> list[str]:
    """Open partitions without a write after `before`; those with writes that are still invisible are not idle."""
    query = (
        select(partition_marks.c.path)
        .where(*_open(dataset_id), partition_marks.c.changed_at <= before)
        .order_by(partition_marks.c.changed_at, partition_marks.c.path)
    )
    paths = list(connection.execute(query).scalars())
    invisible_paths = _unseen(connection, dataset_id, paths)
    return [path for path in paths if path not in invisible_paths]


def _next_idle(connection: Connection, dataset_id: str, before: datetime) -> float | None:
    """Seconds until the next open partition is idle, if those without a write after `before` are idle now.

    None without one. Partitions that wait for a compaction are due with its commit.
    """
    changed_at = partition_marks.c.changed_at
    query = select(func.min(changed_at)).where(*_open(dataset_id), changed_at > before)
    first = connection.execute(query).scalar_one()
    return None if first is None else float((first - before).total_seconds())


def _open(dataset_id: str) -> tuple[Any, Any]:
    return partition_marks.c.dataset_id == dataset_id, partition_marks.c.done_at.is_(None)


def _unseen(connection: Connection, dataset_id: str, paths: Collection[str]) -> set[str]:
    """The partitions among these with writes that wait for a compaction."""
    if not paths:
        return set()
    query = select(files.c.partition_path).where(
        files.c.dataset_id == dataset_id,
        files.c.removed_version.is_(None),
        files.c.kind == FileKind.POSTPONED.value,
        any_of(files.c.partition_path, paths),
    )
    return set(connection.execute(query.distinct()).scalars())


def _refuse(
    connection: Connection, dataset_id: str, partitions: Sequence[str], marks: dict[str, PartitionMark]
) -> None:
    invisible_paths = _unseen(connection, dataset_id, marks)
    faults = []
    for number, path in enumerate(partitions):
        if path not in marks:
            detail = "the dataset has no such partition; expected a path that GET …/partitions returns"
        elif path in invisible_paths:
            detail = "the partition has writes that nobody sees before a compaction; compact it first"
        else:
            continue
        faults.append(FieldError(pointer=f"/partitions/{number}", detail=detail))
    if faults:
        raise InvalidRequest(f"{len(faults)} of the partitions cannot be done", faults)


def _marks(connection: Connection, dataset_id: str, paths: Collection[str]) -> dict[str, PartitionMark]:
    # Postgres would refuse to compare text with a NUL in it, and no path has one.
    valid_paths = [path for path in paths if "\0" not in path]
    query = select(*_MARK).where(
        partition_marks.c.dataset_id == dataset_id, any_of(partition_marks.c.path, valid_paths)
    )
    return {row.path: PartitionMark(**row._asdict()) for row in connection.execute(query)}


def _event(row: Any) -> PartitionEvent:
    values = row._asdict()
    reason = values["reason"]
    return PartitionEvent(
        **{
            **values,
            "kind": PartitionEventKind(values["kind"]),
            "reason": None if reason is None else DoneReason(reason),
        }
    )
