"""Consumers that workers serve, and which of them are due. All time is the database's clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from app.core.catalog.tables import heads
from app.core.changes.positions import SnapshotPosition
from app.core.consumers.followers import Consumer, ConsumerKind
from app.core.consumers.repository.places import keep_version, stored_place
from app.core.consumers.tables import consumers
from app.core.consumers.values import ConsumerPlace
from app.core.jobs.repository.outbox import post
from app.infra.db.claims import ClaimColumns, due_after, tenants_in_turn
from app.infra.db.session import Database

CONSUMER_COLUMNS: Final = tuple(consumers.c[name] for name in Consumer.__struct_fields__)

# Consumers whose position is in the feed of changes. The others are woken by the events that they count.
IN_FEED: Final = consumers.c.kind != ConsumerKind.PARTITION_WEBHOOK.value

_BEHIND: Final = or_(consumers.c.position < heads.c.next_offset, consumers.c.snapshot.is_not(None))
FOLLOWER_CLAIMS: Final = ClaimColumns(
    due_at=consumers.c.wake_at,
    owner=consumers.c.member,
    epoch=consumers.c.lease_epoch,
    until=consumers.c.lease_until,
)
_IS_FOLLOWER: Final = consumers.c.kind != ConsumerKind.READER.value
_DUE: Final = and_(
    _IS_FOLLOWER,
    or_(
        and_(IN_FEED, consumers.c.wake_at.is_(None), _BEHIND),
        FOLLOWER_CLAIMS.is_due(),
    ),
)
_HEAD: Final = and_(heads.c.tenant_id == consumers.c.tenant_id, heads.c.dataset_id == consumers.c.dataset_id)


class FollowerStore:
    """Followers in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def due(self, limit: int) -> list[tuple[str, str]]:
        """Tenants and datasets with followers that are due and not claimed.

        The first of every tenant come before the second of any; of a tenant, those come first that moved longest ago.
        """
        query = (
            select(consumers.c.tenant_id, consumers.c.dataset_id)
            .join(heads, _HEAD)
            .where(_DUE, FOLLOWER_CLAIMS.is_free())
            .group_by(consumers.c.tenant_id, consumers.c.dataset_id)
        )
        query = tenants_in_turn(query, consumers.c.tenant_id, func.min(consumers.c.moved_at), limit)
        with self._database.relay() as connection:
            return [(row[0], row[1]) for row in connection.execute(query)]

    def claim(self, tenant_id: str, dataset_id: str, owner: str, lease_seconds: float) -> Consumer | None:
        """A follower of the dataset that is due, now claimed by `owner`; None if no such follower is free."""
        free = (
            select(consumers.c.name)
            .join(heads, _HEAD)
            .where(consumers.c.dataset_id == dataset_id, _DUE, FOLLOWER_CLAIMS.is_free())
            # The follower that moved longest ago comes first, so that none starves behind one that is always due.
            .order_by(consumers.c.moved_at)
            .limit(1)
            .with_for_update(of=consumers, skip_locked=True)
        )
        with self._database.tenant(tenant_id) as connection:
            name = connection.execute(free).scalar_one_or_none()
            if name is None:
                return None
            statement = (
                update(consumers)
                .where(consumers.c.dataset_id == dataset_id, consumers.c.name == name)
                .values(FOLLOWER_CLAIMS.claimed(owner, lease_seconds))
                .returning(*CONSUMER_COLUMNS)
            )
            return consumer_of(connection.execute(statement).one())

    def settle(self, tenant_id: str, consumer: Consumer, wake_after_seconds: float | None) -> None:
        """Releases the claim and sets when the follower is due again, as `Follower.follow` returned it.

        Changes nothing if the claim was lost meanwhile. A time that another transaction has set during the claim is
        kept.
        """
        with self._database.tenant(tenant_id) as connection:
            named = _named(consumer.dataset_id, consumer.name)
            FOLLOWER_CLAIMS.settle(connection, named, consumer.lease_epoch, wake_after_seconds)

    def end_claims(self, owner: str) -> None:
        """Frees the followers of every tenant that a worker has claimed: it has ended."""
        FOLLOWER_CLAIMS.end_of(
            self._database,
            owner,
            _IS_FOLLOWER,
            due_at=FOLLOWER_CLAIMS.unless_woken(func.clock_timestamp()),
            returning=consumers.c.dataset_id,
            on_end=_post_follow,
        )


def consumer_of(row: Any) -> Consumer:
    """The consumer in a row of CONSUMER_COLUMNS."""
    values = {name: getattr(row, name) for name in Consumer.__struct_fields__}
    snapshot = None if row.snapshot is None else SnapshotPosition.of(row.snapshot)
    return Consumer(**{**values, "kind": ConsumerKind(row.kind), "snapshot": snapshot})


def add_follower(
    connection: Connection,
    dataset_id: str,
    name: str,
    kind: ConsumerKind,
    position: int,
    *,
    snapshot: SnapshotPosition | None = None,
    wake_after_seconds: float | None = None,
    max_lag_rows: int | None = None,
    max_lag_seconds: int | None = None,
) -> None:
    """Adds a follower, at a position that the caller has checked under a lock of the dataset's head.

    `snapshot`: its place in a version, which the caller has checked under `share_versions`. A message wakes the workers
    once this transaction is durable.
    """
    connection.execute(
        insert(consumers).values(
            dataset_id=dataset_id,
            name=name,
            kind=kind.value,
            **stored_place(ConsumerPlace(offset=position, snapshot=snapshot)),
            max_lag_rows=max_lag_rows,
            max_lag_seconds=max_lag_seconds,
            wake_at=due_after(wake_after_seconds),
        )
    )
    keep_version(connection, dataset_id, name, None, snapshot)
    post(connection, "follow", dataset_id)


def wake_follower(
    connection: Connection, dataset_id: str, name: str, after_seconds: float | None = 0.0
) -> None:
    """Makes a follower due after `after_seconds` (None: whenever it is behind), and wakes the workers."""
    connection.execute(
        update(consumers).where(_named(dataset_id, name)).values(wake_at=due_after(after_seconds))
    )
    post(connection, "follow", dataset_id)


def wake_partition_webhooks(connection: Connection, dataset_id: str) -> None:
    """Makes the webhooks due that deliver events of the dataset's partitions, and wakes the workers."""
    woken = connection.execute(
        update(consumers)
        .where(consumers.c.dataset_id == dataset_id, ~IN_FEED)
        .values(wake_at=func.clock_timestamp())
    )
    if woken.rowcount:
        post(connection, "follow", dataset_id)


def move_follower(connection: Connection, dataset_id: str, name: str, since: int, next_since: int) -> bool:
    """Moves a position from `since` on to `next_since`; False if it is not at `since` any more."""
    before, after = ConsumerPlace(offset=since), ConsumerPlace(offset=next_since)
    return move_consumer(connection, dataset_id, name, before, after)


def move_consumer(
    connection: Connection, dataset_id: str, name: str, before: ConsumerPlace, after: ConsumerPlace
) -> bool:
    """Moves a consumer from a place on to another one; False if it is not there any more.

    Behind the rows of a version, the version is kept for it no longer.
    """
    move = connection.execute(
        update(consumers)
        .where(_named(dataset_id, name), is_at(before))
        .values(**stored_place(after), revision=consumers.c.revision + 1, moved_at=func.clock_timestamp())
    )
    if move.rowcount and before.snapshot is not None and after.snapshot is None:
        keep_version(connection, dataset_id, name, before.snapshot, None)
    return bool(move.rowcount)


def is_at(place: ConsumerPlace) -> ColumnElement[bool]:
    """Whether a consumer is at this place."""
    return and_(
        consumers.c.position == place.offset,
        consumers.c.snapshot.is_not_distinct_from(place.snapshot_text),
    )


def is_followed(dataset_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether a dataset has followers of its feed."""
    return exists().where(consumers.c.dataset_id == dataset_id, _IS_FOLLOWER, IN_FEED)


def _named(dataset_id: str, name: str) -> ColumnElement[bool]:
    return and_(consumers.c.dataset_id == dataset_id, consumers.c.name == name)


def _post_follow(connection: Connection, dataset_ids: Sequence[str]) -> None:
    for dataset_id in sorted(set(dataset_ids)):
        post(connection, "follow", dataset_id)
