"""Consumers of feeds, as their readers see and move them. All time is the database's clock."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    delete,
    func,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as insert_unless

from app.access.errors import NotFound, PreconditionFailed, PreconditionRequired
from app.access.tenants.repository.quotas import check_count
from app.core.catalog.repository.live_datasets import share_datasets
from app.core.catalog.tables import datasets, heads
from app.core.changes.positions import FeedBounds, ReaderStart, SnapshotPosition, StartingPosition
from app.core.changes.repository import lock_feed, offset_of
from app.core.consumers.errors import LeaseLost
from app.core.consumers.followers import ConsumerKind
from app.core.consumers.repository.followers import CONSUMER_COLUMNS, IN_FEED, consumer_of
from app.core.consumers.repository.places import keep_version, place_in_version, stored_place
from app.core.consumers.tables import consumers
from app.core.consumers.values import (
    ConsumerChange,
    ConsumerLease,
    ConsumerPlace,
    ConsumerStatus,
    ExpectedRevision,
    check_lease,
    consumer_leased,
    consumer_managed,
    initial_place,
    lease_token,
    next_place,
)
from app.core.timeline.repository.kept_versions import share_versions
from app.core.timeline.tables import commits
from app.infra.db.any_of import any_of
from app.infra.db.session import Database
from app.infra.db.times import lease_end
from app.kernel.paging import Page, PageTokens

_COUNT: Final[Select[int]] = (
    select(func.count())
    .select_from(consumers)
    .join(datasets, datasets.c.id == consumers.c.dataset_id)
    .where(datasets.c.deleted_at.is_(None), consumers.c.kind == ConsumerKind.READER.value)
)
_NO_LEASE: Final[dict[str, Any]] = {"member": None, "lease_until": None}


class ConsumerStore:
    """Consumers in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def count(self, tenant_id: str) -> int:
        """The consumers that count against the quota `consumers`."""
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(_COUNT).scalar_one()

    def get(self, tenant_id: str, dataset_id: str, name: str) -> ConsumerStatus:
        """Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            return _existing(_find(connection, dataset_id, name), name)

    def list(self, tenant_id: str, dataset_id: str, *, page_size: int, page_token: str | None) -> Page:
        """ConsumerStatus items of every kind, by name. Raises InvalidRequest for a token that is not valid."""
        tokens = PageTokens("consumers", dataset_id)
        query = _statuses().where(consumers.c.dataset_id == dataset_id)
        if page_token is not None:
            query = query.where(consumers.c.name > tokens.position(page_token))
        with self._database.tenant(tenant_id) as connection:
            rows = connection.execute(query.order_by(consumers.c.name).limit(page_size + 1)).all()
        return tokens.page(rows, page_size, lambda row: row.name, _status)

    def readers(
        self, tenant_id: str, limit: int, dataset_ids: Collection[str] | None = None
    ) -> Sequence[ConsumerStatus]:
        """Up to `limit` consumers of readers, of these datasets or of all, by dataset and name."""
        query = _statuses().where(consumers.c.kind == ConsumerKind.READER.value)
        if dataset_ids is not None:
            query = query.where(any_of(consumers.c.dataset_id, dataset_ids))
        query = query.order_by(consumers.c.dataset_id, consumers.c.name).limit(limit)
        with self._database.tenant(tenant_id) as connection:
            return [_status(row) for row in connection.execute(query)]

    def put(
        self, tenant_id: str, dataset_id: str, name: str, change: ConsumerChange, condition: ExpectedRevision
    ) -> tuple[ConsumerStatus, bool]:
        """Makes or moves a reader's consumer; true if it was made.

        No change between its position and the head is cut meanwhile. Raises NotFound (dataset gone),
        PreconditionFailed, PreconditionRequired, InvalidRequest, OffsetAhead, OffsetExpired, ConsumerLeased, LeaseLost,
        VersionExpired, QuotaExceeded.
        """
        with self._database.tenant(tenant_id) as connection:
            if isinstance(change.offset, SnapshotPosition):
                # Before any lock of the head, as everywhere.
                share_versions(connection, dataset_id)
            # A cut reads the rows of consumers under their locks, so locking an existing row is enough.
            status = _find(connection, dataset_id, name, lock=True)
            is_new = status is None and _insert(connection, dataset_id, name, change, condition)
            if not is_new:
                # Another may have made it since.
                before = _existing(status or _find(connection, dataset_id, name, lock=True), name)
                if change.lease is not None:
                    # Checked first, so that a member that was too slow gets LeaseLost, not a failed precondition.
                    check_lease(before, change.lease)
                _check_expected(before.consumer.revision, condition)
                if change.lease is None and change.offset is not None:
                    check_lease(before, None)
                _update(connection, before, change)
            return _existing(_find(connection, dataset_id, name), name), is_new

    def delete(self, tenant_id: str, dataset_id: str, name: str, *, revision: int | None) -> None:
        """Raises NotFound, PreconditionFailed, ConsumerManaged."""
        with self._database.tenant(tenant_id) as connection:
            status = _readers(connection, dataset_id, name)
            if revision is not None:
                _check_expected(status.consumer.revision, ExpectedRevision(revision=revision))
            connection.execute(delete(consumers).where(_named(dataset_id, name)))
            keep_version(connection, dataset_id, name, status.consumer.snapshot, None)

    def lease(
        self, tenant_id: str, dataset_id: str, name: str, member: str, seconds: int, token: str | None
    ) -> ConsumerLease:
        """Gives the consumer to a member, or extends the hold that the token is of.

        A member that has lost its token is given a new one, and what it still does with the old one is refused. Raises
        NotFound, ConsumerLeased, LeaseLost, ConsumerManaged.
        """
        with self._database.tenant(tenant_id) as connection:
            status = _readers(connection, dataset_id, name)
            if token is not None:
                check_lease(status, token)
            if status.lease_seconds > 0 and member != status.consumer.member:
                raise consumer_leased(status)
            row = connection.execute(
                update(consumers)
                .where(_named(dataset_id, name))
                .values(
                    member=member,
                    lease_epoch=consumers.c.lease_epoch + (1 if token is None else 0),
                    lease_until=lease_end(seconds),
                )
                .returning(*CONSUMER_COLUMNS)
            ).one()
        return ConsumerLease(
            token=lease_token(consumer_of(row)),
            until=row.lease_until,
            position=consumer_of(row).place,
            revision=row.revision,
        )

    def release(self, tenant_id: str, dataset_id: str, name: str, token: str) -> None:
        """Ends a hold, if it has not ended by itself. Raises NotFound, LeaseLost, ConsumerManaged."""
        with self._database.tenant(tenant_id) as connection:
            status = _readers(connection, dataset_id, name)
            if status.consumer.member is None and token == lease_token(status.consumer):
                return
            check_lease(status, token)
            connection.execute(update(consumers).where(_named(dataset_id, name)).values(**_NO_LEASE))


def behind_since(dataset_id: ColumnElement[str], position: ColumnElement[int]) -> ColumnElement[Any]:
    """When the oldest change from a position on was committed; null if there is none."""
    return (
        select(commits.c.committed_at)
        .where(commits.c.dataset_id == dataset_id, commits.c.next_offset > position)
        .order_by(commits.c.next_offset, commits.c.version)
        .limit(1)
        .scalar_subquery()
    )


def seconds_since(moment: ColumnElement[Any]) -> ColumnElement[Any]:
    """Seconds from a moment until now; 0 for null, and for one to come."""
    return func.greatest(func.coalesce(func.extract("epoch", func.clock_timestamp() - moment), 0), 0)


def _statuses() -> Select[Any]:
    remaining_seconds = func.extract("epoch", consumers.c.lease_until - func.clock_timestamp())
    head = and_(heads.c.tenant_id == consumers.c.tenant_id, heads.c.dataset_id == consumers.c.dataset_id)
    return (
        select(
            *CONSUMER_COLUMNS,
            heads.c.earliest_offset,
            heads.c.next_offset,
            seconds_since(behind_since(consumers.c.dataset_id, consumers.c.position)).label("behind_seconds"),
            func.greatest(func.coalesce(remaining_seconds, 0), 0).label("lease_seconds"),
        )
        .join(heads, head)
        .where(IN_FEED)
    )


def _status(row: Any) -> ConsumerStatus:
    return ConsumerStatus(
        consumer=consumer_of(row),
        bounds=FeedBounds(earliest=row.earliest_offset, next_offset=row.next_offset),
        behind_seconds=float(row.behind_seconds),
        lease_seconds=float(row.lease_seconds),
    )


def _named(dataset_id: str, name: str) -> ColumnElement[bool]:
    return and_(consumers.c.dataset_id == dataset_id, consumers.c.name == name)


def _find(connection: Connection, dataset_id: str, name: str, *, lock: bool = False) -> ConsumerStatus | None:
    if "\0" in name:
        return None  # Postgres would refuse to compare it with a name
    if lock:
        # By itself: what is read along with a row that had to be waited for is older than the row.
        connection.execute(select(consumers.c.name).where(_named(dataset_id, name)).with_for_update())
    row = connection.execute(_statuses().where(_named(dataset_id, name))).one_or_none()
    return None if row is None else _status(row)


def _existing(status: ConsumerStatus | None, name: str) -> ConsumerStatus:
    if status is None:
        raise NotFound(f"there is no consumer {name!r} of this dataset")
    return status


def _readers(connection: Connection, dataset_id: str, name: str) -> ConsumerStatus:
    """A reader's consumer, locked. Raises NotFound, ConsumerManaged."""
    status = _existing(_find(connection, dataset_id, name, lock=True), name)
    if status.consumer.kind is not ConsumerKind.READER:
        raise consumer_managed(status.consumer)
    return status


def _insert(
    connection: Connection, dataset_id: str, name: str, change: ConsumerChange, condition: ExpectedRevision
) -> bool:
    """Makes the consumer; false if another request has made it since the search."""
    bounds = lock_feed(connection, dataset_id)
    if not share_datasets(connection, [dataset_id]):
        raise NotFound(f"there is no dataset {dataset_id!r}")
    if condition.revision is not None:
        raise PreconditionFailed(f"there is no consumer {name!r} of this dataset", revision=None)
    if change.lease is not None:
        raise LeaseLost(f"there is no consumer {name!r}, so it has no lease")
    place = initial_place(_start(connection, dataset_id, change.offset, bounds), bounds)
    rows = connection.execute(
        insert_unless(consumers)
        .values(
            dataset_id=dataset_id,
            name=name,
            kind=ConsumerKind.READER.value,
            **stored_place(place),
            **_bounds(change),
        )
        .on_conflict_do_nothing()
        .returning(consumers.c.name)
    )
    if rows.one_or_none() is None:
        return False
    check_count(connection, "consumers", _COUNT)
    keep_version(connection, dataset_id, name, None, place.snapshot)
    return True


def _update(connection: Connection, before: ConsumerStatus, change: ConsumerChange) -> None:
    at = before.consumer
    place = next_place(before, change, _start(connection, at.dataset_id, change.offset, before.bounds))
    moves = place != ConsumerPlace(offset=at.position, snapshot=at.snapshot)
    # A member whose lease has run out is no longer the last that moved it.
    lease_end = _NO_LEASE if change.offset is not None and change.lease is None else {}
    connection.execute(
        update(consumers)
        .where(_named(at.dataset_id, at.name))
        .values(
            **stored_place(place),
            revision=consumers.c.revision + 1,
            moved_at=func.clock_timestamp() if moves else consumers.c.moved_at,
            **_bounds(change),
            **lease_end,
        )
    )
    if change.offset is not None:
        keep_version(connection, at.dataset_id, at.name, at.snapshot, place.snapshot)


def _start(
    connection: Connection, dataset_id: str, start: ReaderStart | None, bounds: FeedBounds
) -> int | StartingPosition | ConsumerPlace | None:
    """The offset or the name of a start, or its place in a version. A commit since `bounds` were read is not skipped.

    Raises NotFound, OffsetAhead, OffsetExpired, VersionExpired.
    """
    if start is None or isinstance(start, int | StartingPosition):
        return start
    if isinstance(start, SnapshotPosition):
        return place_in_version(connection, dataset_id, start)
    offset = offset_of(connection, dataset_id, start)
    return min(offset, bounds.next_offset) if isinstance(offset, int) else offset


def _bounds(change: ConsumerChange) -> dict[str, Any]:
    match change.max_lag:
        case msgspec.UNSET:
            return {}
        case None:
            return {"max_lag_rows": None, "max_lag_seconds": None}
        case bounds:
            return {"max_lag_rows": bounds.changes, "max_lag_seconds": bounds.seconds}


def _check_expected(revision: int, condition: ExpectedRevision) -> None:
    if condition.absent:
        raise PreconditionFailed(f"The consumer is there already, at revision {revision}", revision=revision)
    if condition.revision is None:
        raise PreconditionRequired('send If-Match with the ETag that the consumer had, such as "7"')
    if condition.revision != revision:
        raise PreconditionFailed(
            f"The consumer is at revision {revision}, not {condition.revision}", revision=revision
        )
