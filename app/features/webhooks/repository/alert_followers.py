"""The positions of webhooks that send alerts, and which of them are due. All time is the database's clock."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Connection, func, insert, select, update

from app.core.consumers.followers import Consumer, ConsumerKind
from app.core.consumers.values import ConsumerPlace
from app.features.webhooks.repository.webhook_row import follower_name
from app.features.webhooks.tables import alert_followers
from app.features.webhooks.values import AlertStart
from app.infra.db.claims import ClaimColumns, tenants_in_turn
from app.infra.db.session import Database

_CLAIMS: Final = ClaimColumns(
    due_at=alert_followers.c.wake_at,
    owner=alert_followers.c.member,
    epoch=alert_followers.c.lease_epoch,
    until=alert_followers.c.lease_until,
)


class AlertFollowerStore:
    """See `Followers`. Each is named by its webhook, in place of a dataset."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def due(self, limit: int) -> list[tuple[str, str]]:
        """Tenants and webhooks that are due and not claimed."""
        query = select(alert_followers.c.tenant_id, alert_followers.c.webhook_id)
        query = query.where(_CLAIMS.is_due(), _CLAIMS.is_free())
        query = tenants_in_turn(query, alert_followers.c.tenant_id, alert_followers.c.moved_at, limit)
        with self._database.relay() as connection:
            return [(row[0], row[1]) for row in connection.execute(query)]

    def claim(self, tenant_id: str, dataset_id: str, owner: str, lease_seconds: float) -> Consumer | None:
        """The follower of a webhook, now claimed by `owner`; None if it is not due, or not free."""
        statement = (
            update(alert_followers)
            .where(alert_followers.c.webhook_id == dataset_id, _CLAIMS.is_due(), _CLAIMS.is_free())
            .values(_CLAIMS.claimed(owner, lease_seconds))
            .returning(alert_followers)
        )
        with self._database.tenant(tenant_id) as connection:
            row = connection.execute(statement).one_or_none()
        return None if row is None else _consumer(row)

    def settle(self, tenant_id: str, consumer: Consumer, wake_after_seconds: float | None) -> None:
        """See `Followers`. A time that another transaction has set during the claim is kept."""
        row = alert_followers.c.webhook_id == consumer.dataset_id
        with self._database.tenant(tenant_id) as connection:
            _CLAIMS.settle(connection, row, consumer.lease_epoch, wake_after_seconds)

    def end_claims(self, owner: str) -> None:
        """Frees the followers of every tenant that a worker has claimed: it has ended."""
        _CLAIMS.end_of(self._database, owner)


def add_alert_follower(connection: Connection, webhook_id: str, start: AlertStart) -> None:
    """Adds the follower of a webhook, which is due at once."""
    connection.execute(
        insert(alert_followers).values(
            webhook_id=webhook_id, wake_at=func.clock_timestamp(), **_start_values(start)
        )
    )


def wake_alert_follower(connection: Connection, webhook_id: str, start: AlertStart | None = None) -> None:
    """Makes a follower due; with another start, unless None."""
    places = {} if start is None else {"moved_at": func.clock_timestamp(), **_start_values(start)}
    connection.execute(
        update(alert_followers)
        .where(alert_followers.c.webhook_id == webhook_id)
        .values(wake_at=func.clock_timestamp(), **places)
    )


def holds_alerts(connection: Connection, webhook_id: str, consumer: Consumer, place: ConsumerPlace) -> bool:
    """Whether the follower has the same claim as before, and is at the place; locked until the transaction ends."""
    return _CLAIMS.holds(
        connection,
        consumer.lease_epoch,
        alert_followers.c.webhook_id == webhook_id,
        alert_followers.c.position == place.offset,
    )


def move_alerts(connection: Connection, webhook_id: str, before: ConsumerPlace, after: ConsumerPlace) -> bool:
    """Moves a follower from a place on to another one; False if it is not there any more."""
    move = connection.execute(
        update(alert_followers)
        .where(alert_followers.c.webhook_id == webhook_id, alert_followers.c.position == before.offset)
        .values(position=after.offset, moved_at=func.clock_timestamp())
    )
    return bool(move.rowcount)


def _start_values(start: AlertStart) -> dict[str, Any]:
    return {
        "position": start.position,
        "first_event": start.first_event,
        "active_events": list(start.active_events),
    }


def _consumer(row: Any) -> Consumer:
    return Consumer(
        dataset_id=row.webhook_id,
        name=follower_name(row.webhook_id),
        kind=ConsumerKind.WEBHOOK,
        position=row.position,
        revision=row.lease_epoch,
        max_lag_rows=None,
        max_lag_seconds=None,
        member=row.member,
        lease_epoch=row.lease_epoch,
        lease_until=row.lease_until,
        created_at=row.moved_at,
        moved_at=row.moved_at,
    )
