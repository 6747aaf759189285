"""Retention of feeds: moves their beginnings, and deletes the rows of changelog files before them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import ColumnElement, Connection, Text, and_, cast, delete, func, or_, select, update

from app.core.catalog.tables import datasets, heads
from app.core.changes.repository import lock_feed
from app.core.consumers.followers import ConsumerKind
from app.core.consumers.repository.consumers import behind_since, seconds_since
from app.core.consumers.repository.followers import IN_FEED
from app.core.consumers.tables import consumers
from app.core.jobs.kinds.named_version import VersionKind
from app.core.timeline.repository.kept_versions import KEEPS_FEED, LEASE_LIVES, NAME_LIVES
from app.core.timeline.tables import changelog_files, commits, named_versions, read_leases
from app.features.retention.repository.tenant_ids import all_tenants
from app.infra.db.any_of import any_of
from app.infra.db.session import Database
from app.infra.db.times import seconds_ago
from app.kernel.format.dataset import Retention

# Compared as text, since Postgres cannot parse JSON with a NUL, such as in the description of a field. Within a
# string the quotes would be escaped, and a cut checks the definition itself.
_HAS_RETENTION: Final = cast(datasets.c.definition, Text).contains('"retention":{', autoescape=True)
_HEAD: Final = and_(heads.c.tenant_id == datasets.c.tenant_id, heads.c.dataset_id == datasets.c.id)


class RetentionStore:
    """The beginnings of the feeds of all tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def tenants(self) -> Sequence[str]:
        """Ids of all tenants."""
        return all_tenants(self._database)

    def datasets(self, tenant_id: str) -> Sequence[str]:
        """Ids of the live datasets that have a retention, or whose feed was cut before."""
        query = (
            select(datasets.c.id)
            .join(heads, _HEAD)
            .where(datasets.c.deleted_at.is_(None), or_(_HAS_RETENTION, heads.c.earliest_offset > 0))
        )
        with self._database.tenant(tenant_id) as connection:
            return list(connection.execute(query).scalars())

    def cut(self, tenant_id: str, dataset_id: str, *, follower_lag_seconds: float) -> int:
        """Moves the beginning of a feed as far as possible; returns the number of changes that were cut.

        It cuts whole commits that are older than the feed's retention or beyond its number of changes, and none that a
        consumer within its maximum lag has still to read. `follower_lag_seconds`: the maximum lag of followers that
        have none of their own.
        """
        with self._database.tenant(tenant_id) as connection:
            # Usually there is nothing to cut. That is checked without a lock.
            if not _cuttable(connection, dataset_id, follower_lag_seconds):
                return 0
            # Under these locks no consumer is made or moved between this check and the cut.
            lock_feed(connection, dataset_id)
            connection.execute(
                select(consumers.c.name)
                .where(consumers.c.dataset_id == dataset_id)
                .with_for_update(read=True)
            )
            changes = _cuttable(connection, dataset_id, follower_lag_seconds)
            if changes:
                connection.execute(
                    update(heads)
                    .where(heads.c.dataset_id == dataset_id)
                    .values(earliest_offset=heads.c.earliest_offset + changes)
                )
            return changes

    def expire_files(self, tenant_id: str, dataset_id: str, limit: int) -> int:
        """Removes up to `limit` segments before the beginning of the feed; returns how many there were.

        A merged file is referenced until its last segment is removed.
        """
        in_dataset = changelog_files.c.dataset_id == dataset_id
        beginning = select(heads.c.earliest_offset).where(heads.c.dataset_id == dataset_id).scalar_subquery()
        # A feed begins with a commit, so no segment lies on both sides.
        oldest = (
            select(changelog_files.c.first_offset)
            .where(in_dataset, changelog_files.c.first_offset < beginning)
            .order_by(changelog_files.c.first_offset)
            .limit(limit)
        )
        with self._database.tenant(tenant_id) as connection:
            first_offsets = list(connection.execute(oldest).scalars())
            if first_offsets:
                connection.execute(
                    delete(changelog_files).where(
                        in_dataset, any_of(changelog_files.c.first_offset, first_offsets)
                    )
                )
        return len(first_offsets)


def _cuttable(connection: Connection, dataset_id: str, follower_lag_seconds: float) -> int:
    """The number of changes at the beginning of the feed that have expired and that no consumer needs."""
    feed = connection.execute(
        select(heads.c.earliest_offset, heads.c.next_offset, datasets.c.definition)
        .join(datasets, _HEAD)
        .where(datasets.c.id == dataset_id, datasets.c.deleted_at.is_(None))
    ).one_or_none()
    if feed is None or (retention := feed.definition.changelog.retention) is None:
        return 0
    end = _expired_before(connection, dataset_id, retention, feed.next_offset)
    fence = connection.execute(
        select(func.min(consumers.c.position)).where(
            consumers.c.dataset_id == dataset_id,
            IN_FEED,
            # A consumer before the beginning has lost changes already, and does not prevent the cut.
            consumers.c.position >= feed.earliest_offset,
            _fences(feed.next_offset, follower_lag_seconds),
        )
    ).scalar_one()
    bounds = fence, _savepoints_fence(connection, dataset_id), _leases_fence(connection, dataset_id)
    fences = [each for each in bounds if each is not None]
    end = min([end, *fences])
    boundary = connection.execute(
        select(func.max(commits.c.next_offset)).where(
            commits.c.dataset_id == dataset_id, commits.c.next_offset <= end
        )
    ).scalar_one()
    return max(0, (boundary or 0) - feed.earliest_offset)


def _leases_fence(connection: Connection, dataset_id: str) -> int | None:
    """The offset after the changes of the earliest version after which a reader reads the feed."""
    of_version = and_(
        commits.c.dataset_id == read_leases.c.dataset_id, commits.c.version == read_leases.c.version
    )
    fence: int | None = connection.execute(
        select(func.min(func.coalesce(commits.c.next_offset, 0)))
        .join_from(read_leases, commits, of_version, isouter=True)
        .where(
            read_leases.c.dataset_id == dataset_id,
            KEEPS_FEED,
            LEASE_LIVES,
        )
    ).scalar_one()
    return fence


def _savepoints_fence(connection: Connection, dataset_id: str) -> int | None:
    """The offset after the changes of the earliest savepoint, which keeps all later changes."""
    of_version = and_(
        commits.c.dataset_id == named_versions.c.dataset_id, commits.c.version == named_versions.c.version
    )
    fence: int | None = connection.execute(
        # Version 0 has no commit, and is before all changes.
        select(func.min(func.coalesce(commits.c.next_offset, 0)))
        .join_from(named_versions, commits, of_version, isouter=True)
        .where(
            named_versions.c.dataset_id == dataset_id,
            named_versions.c.kind == VersionKind.SAVEPOINT.value,
            NAME_LIVES,
        )
    ).scalar_one()
    return fence


def _expired_before(connection: Connection, dataset_id: str, retention: Retention, next_offset: int) -> int:
    """The offset before which changes are beyond the retention, by age or by number."""
    by_count = 0 if retention.changes is None else next_offset - retention.changes
    if retention.seconds is None:
        return by_count
    before = seconds_ago(float(retention.seconds))
    by_age = connection.execute(
        select(commits.c.next_offset)
        .where(commits.c.dataset_id == dataset_id, commits.c.committed_at < before)
        .order_by(commits.c.committed_at.desc())
        .limit(1)
    ).scalar_one_or_none()
    return max(by_count, by_age or 0)


def _fences(next_offset: int, follower_lag_seconds: float) -> ColumnElement[bool]:
    """Whether a consumer prevents a cut beyond its position."""
    has_bound = or_(consumers.c.max_lag_rows.is_not(None), consumers.c.max_lag_seconds.is_not(None))
    behind = seconds_since(behind_since(consumers.c.dataset_id, consumers.c.position))
    keeps_up = and_(
        or_(
            consumers.c.max_lag_rows.is_(None), next_offset - consumers.c.position <= consumers.c.max_lag_rows
        ),
        or_(consumers.c.max_lag_seconds.is_(None), behind <= consumers.c.max_lag_seconds),
    )
    return or_(
        and_(has_bound, keeps_up),
        and_(~has_bound, or_(consumers.c.kind == ConsumerKind.READER.value, behind <= follower_lag_seconds)),
    )
