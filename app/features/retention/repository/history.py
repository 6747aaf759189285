"""The beginnings of histories, and the data files that no retained version uses."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, delete, distinct, func, select, tuple_, update

from app.access.errors import NotFound
from app.core.catalog.tables import datasets, heads
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.repository.job_locks import UNFINISHED
from app.core.jobs.tables import jobs
from app.core.jobs.values import JobQueue, JobState
from app.core.timeline.repository.archives import count_archivable
from app.core.timeline.repository.kept_versions import LEASE_LIVES, NAME_LIVES, lock_history, pinned_versions
from app.core.timeline.tables import commits, files, named_versions, read_leases
from app.features.retention.values import (
    ARCHIVED_MIN,
    ExpiredFiles,
    HistoryExpiry,
    HistoryStart,
    beginning_of,
)
from app.infra.db.any_of import any_of
from app.infra.db.session import Database
from app.infra.db.times import seconds_ago
from app.kernel.format.policies import HistoryPolicy, TimelinePolicy

_RUNNING_WRITE: Final = (jobs.c.state == JobState.RUNNING.value, jobs.c.lane == JobQueue.WRITES.value)


class HistoryStore:
    """Histories in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def advance_start(self, tenant_id: str, dataset_id: str, policy: HistoryPolicy) -> HistoryStart:
        """Moves the beginning of the history as far as the policy and running writes allow.

        Raises NotFound.
        """
        with self._database.tenant(tenant_id) as connection:
            lock_history(connection, dataset_id)
            _delete_lapsed_pins(connection, dataset_id)
            head = _head(connection, dataset_id, lock=True)
            beginning = _first_retained_version(connection, dataset_id, policy, head.version)
            if beginning <= head.earliest_version:
                return HistoryStart(earliest_version=head.earliest_version, expired_versions=0)
            connection.execute(
                update(heads).where(heads.c.dataset_id == dataset_id).values(earliest_version=beginning)
            )
            pins = pinned_versions(dataset_id).subquery()
            pin_count = connection.execute(
                select(func.count(distinct(pins.c.version))).where(
                    pins.c.version >= head.earliest_version, pins.c.version < beginning
                )
            ).scalar_one()
            return HistoryStart(
                earliest_version=beginning, expired_versions=beginning - head.earliest_version - pin_count
            )

    def expire_files(self, tenant_id: str, dataset_id: str, since: int, limit: int) -> ExpiredFiles:
        """Records that up to `limit` data files are used by no retained version; `remove_files` deletes their rows.

        Selects files that version `since` or a later one removed, the earliest first. Requests that pin a version and
        commits that list a file again wait for this transaction. Raises NotFound.
        """
        pins = pinned_versions(dataset_id).subquery()
        uses = select(pins.c.version).where(
            pins.c.version >= files.c.added_version, pins.c.version < files.c.removed_version
        )
        with self._database.tenant(tenant_id) as connection:
            lock_history(connection, dataset_id)
            _delete_lapsed_pins(connection, dataset_id)
            head = _head(connection, dataset_id, lock=True)
            unused_files = (
                select(files.c.path, files.c.added_version)
                .where(
                    files.c.dataset_id == dataset_id,
                    files.c.removed_version >= since,
                    files.c.removed_version <= head.earliest_version,
                    files.c.unused_at.is_(None),
                    ~uses.exists(),
                )
                .order_by(files.c.removed_version)
                .limit(limit)
            )
            rows = connection.execute(
                update(files)
                .where(
                    files.c.dataset_id == dataset_id,
                    tuple_(files.c.path, files.c.added_version).in_(unused_files),
                )
                .values(unused_at=func.clock_timestamp())
                .returning(files.c.path, files.c.size_bytes, files.c.removed_version)
            ).all()
            sizes = {row.path: row.size_bytes for row in rows}
            paths = connection.execute(
                select(files.c.path).where(
                    files.c.dataset_id == dataset_id, files.c.unused_at.is_(None), any_of(files.c.path, sizes)
                )
            )
            for path in set(paths.scalars()):
                del sizes[path]
        return ExpiredFiles(
            files=len(rows),
            bytes=sum(sizes.values()),
            until=max((row.removed_version for row in rows), default=since),
        )

    def removable(self, tenant_id: str, *, unused_seconds: float) -> list[str]:
        """Ids of the live datasets with files that `remove_files` would remove."""
        query = (
            select(files.c.dataset_id)
            .distinct()
            .join(
                datasets, (datasets.c.tenant_id == files.c.tenant_id) & (datasets.c.id == files.c.dataset_id)
            )
            .where(files.c.unused_at <= seconds_ago(unused_seconds), datasets.c.deleted_at.is_(None))
        )
        with self._database.tenant(tenant_id) as connection:
            return list(connection.execute(query).scalars())

    def remove_files(self, tenant_id: str, dataset_id: str, *, unused_seconds: float, limit: int) -> int:
        """Deletes the rows of up to `limit` data files that have been unused for so long; returns how many.

        Commits that list a file again wait for this transaction. Raises NotFound.
        """
        row = tuple_(files.c.path, files.c.added_version)
        old = (
            select(files.c.path, files.c.added_version)
            .where(files.c.dataset_id == dataset_id, files.c.unused_at <= seconds_ago(unused_seconds))
            .limit(limit)
        )
        with self._database.tenant(tenant_id) as connection:
            _head(connection, dataset_id, lock=True)
            return connection.execute(
                delete(files).where(files.c.dataset_id == dataset_id, row.in_(old))
            ).rowcount

    def expiry(
        self, tenant_id: str, dataset_id: str, history: HistoryPolicy | None, timeline: TimelinePolicy | None
    ) -> HistoryExpiry:
        """Whether a clean would have an effect, and none waits or runs, and when the earliest version expires.

        A clean would remove versions that the history does not keep, or archive instants. Raises NotFound.
        """
        cleaning = select(jobs.c.id).where(
            jobs.c.dataset_id == dataset_id, jobs.c.kind == JobKind.CLEAN.value, UNFINISHED
        )
        with self._database.tenant(tenant_id) as connection:
            head = _head(connection, dataset_id)
            next_at = None if history is None else _next_expiry(connection, dataset_id, history, head)
            if connection.execute(cleaning.limit(1)).first():
                return HistoryExpiry(due=False, next_at=next_at)
            return HistoryExpiry(
                due=_archives(connection, dataset_id, timeline)
                or _expires(connection, dataset_id, history, head),
                next_at=next_at,
            )


def _archives(connection: Connection, dataset_id: str, policy: TimelinePolicy | None) -> bool:
    """Whether there are enough instants to archive."""
    if policy is None:
        return False
    return count_archivable(connection, dataset_id, policy.instants, ARCHIVED_MIN) == ARCHIVED_MIN


def _expires(connection: Connection, dataset_id: str, policy: HistoryPolicy | None, head: Any) -> bool:
    """Whether there are versions to expire."""
    if policy is None:
        return False
    return _first_retained_version(connection, dataset_id, policy, head.version) > int(head.earliest_version)


def _next_expiry(
    connection: Connection, dataset_id: str, policy: HistoryPolicy, head: Any
) -> datetime | None:
    """When the earliest version is kept no longer for its age: `seconds` after the commit of the version after it."""
    by_number = policy.versions is not None and head.earliest_version > head.version - policy.versions
    if policy.seconds is None or by_number or head.earliest_version >= head.version:
        return None
    following: datetime = connection.execute(
        select(commits.c.committed_at).where(
            commits.c.dataset_id == dataset_id, commits.c.version == head.earliest_version + 1
        )
    ).scalar_one()
    return following + timedelta(seconds=policy.seconds)


def _head(connection: Connection, dataset_id: str, *, lock: bool = False) -> Any:
    query = (
        select(heads.c.version, heads.c.earliest_version)
        .join(datasets, (datasets.c.tenant_id == heads.c.tenant_id) & (datasets.c.id == heads.c.dataset_id))
        .where(heads.c.dataset_id == dataset_id, datasets.c.deleted_at.is_(None))
    )
    row = connection.execute(query.with_for_update(of=heads) if lock else query).one_or_none()
    if row is None:
        raise NotFound(f"there is no dataset {dataset_id!r}")
    return row


def _first_retained_version(connection: Connection, dataset_id: str, policy: HistoryPolicy, head: int) -> int:
    """The first version that the policy keeps, or that a running write may have been planned at.

    Without the latter, running writes would have to be planned again. Correctness does not depend on it: a commit that
    was planned at an expired version conflicts. The oldest running write is read under the lock of the head, so a write
    that is claimed meanwhile is planned at this head or later.
    """
    latest_then = 0
    if policy.seconds is not None:
        before = seconds_ago(float(policy.seconds))
        latest_then = _version_at(connection, dataset_id, before)
    beginning = beginning_of(policy, head=head, latest_then=latest_then)
    start_time = connection.execute(
        select(func.min(jobs.c.started_at)).where(jobs.c.dataset_id == dataset_id, *_RUNNING_WRITE)
    ).scalar_one()
    return (
        beginning if start_time is None else min(beginning, _version_at(connection, dataset_id, start_time))
    )


def _version_at(connection: Connection, dataset_id: str, moment: Any) -> int:
    query = (
        select(commits.c.version)
        .where(commits.c.dataset_id == dataset_id, commits.c.committed_at <= moment)
        .order_by(commits.c.committed_at.desc())
        .limit(1)
    )
    return connection.execute(query).scalar_one_or_none() or 0


def _delete_lapsed_pins(connection: Connection, dataset_id: str) -> None:
    """Deletes names and read leases that have expired, so that a clock that goes backwards cannot revive them."""
    connection.execute(delete(named_versions).where(named_versions.c.dataset_id == dataset_id, ~NAME_LIVES))
    connection.execute(delete(read_leases).where(read_leases.c.dataset_id == dataset_id, ~LEASE_LIVES))
