"""The alerts of tenants in Postgres: their states, and the events of those that were fired or resolved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, and_, any_, delete, func, insert, or_, select, update
from sqlalchemy.dialects.postgresql import insert as insert_unless

from app.access.tenants.tables import tenants
from app.core.changes.errors import OffsetAhead
from app.features.webhooks.tables import alert_events, alert_feeds, alert_followers, webhooks
from app.features.webhooks.values import AlertEvent, AlertPage, DecideAlerts, HeldAlerts, NumberedAlert
from app.infra.db.session import Database
from app.infra.db.times import seconds_ago

_NOW: Final = func.clock_timestamp()
# More than messages are listed by default.
_KEPT_SECONDS: Final = 60 * 86_400.0


class AlertFeedStore:
    """Alerts of tenants in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def tenants(self, after: str, limit: int) -> list[str]:
        """Ids of tenants with webhooks that send alerts, in order, behind this one; from the first for an empty one."""
        query = select(alert_followers.c.tenant_id).distinct().order_by(alert_followers.c.tenant_id)
        if after:
            query = query.where(alert_followers.c.tenant_id > after)
        with self._database.relay() as connection:
            return list(connection.execute(query.limit(limit)).scalars())

    def states(self, tenant_id: str) -> HeldAlerts:
        """The states of a tenant's alerts."""
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(select(alert_feeds.c.states)).scalar_one_or_none() or {}

    def change(self, tenant_id: str, decide: DecideAlerts) -> Sequence[AlertEvent]:
        """Stores the states after a round, and its events, in one transaction: each event is there once.

        Webhooks that send them are due. Returns the events. Raises Unavailable.
        """
        with self._database.tenant(tenant_id) as connection:
            first = lock_alert_feed(connection)
            before = connection.execute(select(alert_feeds.c.states)).scalar_one()
            name = connection.execute(select(tenants.c.name)).scalar_one()
            after, events = decide(name, first, before)
            if events:
                rows = [
                    {"number": number, "dataset_id": event.labels.get("dataset_id"), "event": event}
                    for number, event in enumerate(events, first)
                ]
                connection.execute(insert(alert_events), rows)
                connection.execute(delete(alert_events).where(alert_events.c.at < seconds_ago(_KEPT_SECONDS)))
                connection.execute(update(alert_followers).values(wake_at=_NOW))
            if events or after != before:
                connection.execute(
                    update(alert_feeds).values(states=dict(after), next_event=first + len(events))
                )
            return events

    def after(self, tenant_id: str, webhook_id: str, since: int, limit: int) -> AlertPage:
        """The first events from `since` on that a webhook sends, `limit` at most. Raises OffsetAhead."""
        query = (
            select(alert_events.c.number, alert_events.c.event)
            .join_from(alert_followers, webhooks, webhooks.c.id == alert_followers.c.webhook_id)
            .join(alert_events, _is_sent_from(webhooks.c.dataset_id, since))
            .where(alert_followers.c.webhook_id == webhook_id)
            .order_by(alert_events.c.number)
            .limit(limit)
        )
        with self._database.tenant(tenant_id) as connection:
            count = connection.execute(select(alert_feeds.c.next_event)).scalar_one_or_none() or 0
            if since > count:
                raise OffsetAhead(
                    f"the position {since} is beyond the last event, after which comes {count}",
                    since=since,
                    head=count,
                )
            items = [NumberedAlert(*row) for row in connection.execute(query)]
        return AlertPage(items, items[-1].number + 1 if len(items) == limit else count)

    def event(self, tenant_id: str, number: int) -> AlertEvent | None:
        """The event of this number; None if it is no longer stored."""
        query = select(alert_events.c.event).where(alert_events.c.number == number)
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(query).scalar_one_or_none()


def lock_alert_feed(connection: Connection) -> int:
    """The number of the tenant's next event. Until the transaction ends, no other one adds events."""
    connection.execute(insert_unless(alert_feeds).values(next_event=0).on_conflict_do_nothing())
    query = select(alert_feeds.c.next_event).with_for_update()
    return int(connection.execute(query).scalar_one())


def begin_alerts(connection: Connection) -> None:
    """Deletes states that nothing has kept up to date: a tenant without followers has no rounds.

    The caller has locked the feed.
    """
    if connection.execute(select(alert_followers.c.webhook_id).limit(1)).first() is None:
        connection.execute(update(alert_feeds).values(states={}))


def active_events(connection: Connection, dataset_id: str | None) -> tuple[int, ...]:
    """The numbers of the events by which the active alerts of a dataset were fired; of all datasets for None.

    The caller has locked the feed.
    """
    states = connection.execute(select(alert_feeds.c.states)).scalar_one()
    return tuple(
        sorted(
            state.event
            for state in states.values()
            if state.event is not None and dataset_id in {None, state.dataset_id}
        )
    )


def events_after(dataset_id: ColumnElement[Any], position: ColumnElement[Any]) -> ColumnElement[Any]:
    """The number of events that a follower sends from a position on, of a dataset; of all for null."""
    return (
        select(func.count())
        .where(_is_sent_from(dataset_id, position))
        .select_from(alert_events)
        .scalar_subquery()
    )


def _is_sent_from(dataset_id: ColumnElement[Any], position: ColumnElement[Any] | int) -> ColumnElement[Any]:
    """Whether a follower sends an event, if it is at this position."""
    return and_(
        alert_events.c.number >= position,
        func.coalesce(alert_events.c.dataset_id == dataset_id, dataset_id.is_(None)),
        or_(
            alert_events.c.number >= alert_followers.c.first_event,
            alert_events.c.number == any_(alert_followers.c.active_events),
        ),
    )
