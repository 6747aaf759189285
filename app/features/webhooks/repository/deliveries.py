"""Messages of webhooks, for the worker that sends them. All time is the database's clock."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Connection, and_, delete, func, insert, select, update

from app.access.errors import NotFound
from app.core.changes.values import DeliveryFormat
from app.core.consumers.followers import Consumer
from app.core.consumers.repository.followers import FOLLOWER_CLAIMS, is_at, move_consumer
from app.core.consumers.repository.places import extend_version
from app.core.consumers.tables import consumers
from app.core.consumers.values import ConsumerPlace
from app.core.timeline.repository.kept_versions import share_versions
from app.features.webhooks.repository.alert_followers import holds_alerts, move_alerts
from app.features.webhooks.repository.webhook_row import (
    DELIVERY_COLUMNS,
    LockedWebhook,
    delivery_members,
    delivery_place,
    find_webhook,
    follower_name,
    live_credentials,
    lock_row,
    pause_webhook,
    record_attempt,
)
from app.features.webhooks.tables import webhook_deliveries, webhooks
from app.features.webhooks.values import (
    DeliveryState,
    DeliveryWork,
    FormattedDelivery,
    Reply,
    WebhookEvents,
    given_up,
)
from app.infra.db.session import Database
from app.infra.db.times import lease_end
from app.kernel.format.errors import Fault

_PENDING: Final = webhook_deliveries.c.state == DeliveryState.PENDING.value
# The column of the format has the name that it was first given.
_FORMATTED: Final = (*DELIVERY_COLUMNS, webhook_deliveries.c.telling.label("delivery_format"))
_SECONDS_UNTIL_DUE: Final = func.extract(
    "epoch", webhook_deliveries.c.next_attempt_at - func.clock_timestamp()
)
# More than one for each new message, so that old messages become fewer.
_PURGED_AT_ONCE: Final = 4


class DeliveryStore:
    """Messages in Postgres. `keep_seconds`: how long messages are listed after their end."""

    def __init__(self, database: Database, *, keep_seconds: float) -> None:
        self._database = database
        self._keep_seconds = keep_seconds

    def work(self, tenant_id: str, webhook_id: str) -> DeliveryWork | None:
        """The next work of the webhook; None if it is gone."""
        next_pending = (
            select(*_FORMATTED, _SECONDS_UNTIL_DUE.label("waits"))
            .where(webhook_deliveries.c.webhook_id == webhook_id, _PENDING)
            .order_by(webhook_deliveries.c.next_attempt_at)
            .limit(1)
        )
        with self._database.tenant(tenant_id) as connection:
            try:
                webhook = find_webhook(connection, webhook_id)
            except NotFound:
                return None
            # A message that is not at the position was sent before, and is redelivered.
            at_position = and_(
                webhook_deliveries.c.since == webhook.place.offset,
                webhook_deliveries.c.since_snapshot.is_not_distinct_from(webhook.place.snapshot_text),
            )
            ahead = connection.execute(next_pending.where(at_position)).one_or_none()
            behind = connection.execute(next_pending.where(~at_position)).one_or_none()
            return DeliveryWork(
                webhook=webhook,
                credentials=live_credentials(connection, webhook_id),
                next=None if ahead is None else _delivery(ahead),
                next_seconds=None if ahead is None else max(0.0, float(ahead.waits)),
                redelivery=None if behind is None else _delivery(behind),
                redelivery_seconds=None if behind is None else max(0.0, float(behind.waits)),
            )

    def begin(
        self,
        tenant_id: str,
        consumer: Consumer,
        since: ConsumerPlace,
        until: ConsumerPlace,
        delivery_id: str,
        delivery_format: DeliveryFormat,
    ) -> FormattedDelivery | None:
        """Makes the message of what the consumer has not sent from `since` up to `until`; None if the claim was lost.

        Within the rows of a version, the version is kept for another day.
        """
        webhook_id = consumer.name.removeprefix(follower_name(""))
        with self._database.tenant(tenant_id) as connection:
            _share(connection, consumer, since)
            locked = lock_row(connection, webhook_id)
            if locked is None or not _holds(connection, locked, webhook_id, consumer, since):
                return None
            _extend(connection, consumer, since)
            self._purge(connection, webhook_id)
            row = connection.execute(
                insert(webhook_deliveries)
                .values(
                    id=delivery_id,
                    webhook_id=webhook_id,
                    **delivery_place(since, until),
                    telling=delivery_format,
                    state=DeliveryState.PENDING.value,
                    next_attempt_at=func.clock_timestamp(),
                )
                .returning(*_FORMATTED)
            ).one()
            return _delivery(row)

    def skip(self, tenant_id: str, consumer: Consumer, since: ConsumerPlace, until: ConsumerPlace) -> bool:
        """Moves past what is not selected; false if the claim was lost."""
        with self._database.tenant(tenant_id) as connection:
            _share(connection, consumer, since)
            webhook_id = consumer.name.removeprefix(follower_name(""))
            locked = lock_row(connection, webhook_id)
            if locked is None or not _holds(connection, locked, webhook_id, consumer, since):
                return False
            _extend(connection, consumer, since)
            return _move(connection, locked, webhook_id, since, until)

    def delivered(self, tenant_id: str, delivery: FormattedDelivery, reply: Reply) -> None:
        """Ends a message that arrived, and moves the position past it."""
        with self._database.tenant(tenant_id) as connection:
            locked = _attempted(connection, delivery, DeliveryState.DELIVERED, reply)
            if locked is not None:
                _move_past(connection, locked, delivery)
                connection.execute(
                    update(webhooks)
                    .where(webhooks.c.id == delivery.webhook_id, webhooks.c.failures > 0)
                    .values(failures=0, error=None)
                )

    def failed(
        self,
        tenant_id: str,
        delivery: FormattedDelivery,
        reply: Reply,
        *,
        retry_seconds: float | None,
        dead_max: int,
    ) -> None:
        """Counts an attempt that failed; the next one is in `retry_seconds`.

        Without one the message is dead: the position moves past it, and after `dead_max` in a row the webhook pauses.
        """
        state = DeliveryState.DEAD if retry_seconds is None else DeliveryState.PENDING
        with self._database.tenant(tenant_id) as connection:
            locked = _attempted(connection, delivery, state, reply, retry_seconds=retry_seconds)
            if locked is None or state is not DeliveryState.DEAD:
                return
            if _move_past(connection, locked, delivery):
                failures = connection.execute(
                    update(webhooks)
                    .where(webhooks.c.id == delivery.webhook_id)
                    .values(failures=webhooks.c.failures + 1)
                    .returning(webhooks.c.failures)
                ).scalar_one()
                error = Fault.of(given_up(failures, reply))
                if failures >= dead_max:
                    pause_webhook(connection, delivery.webhook_id, error)
                else:
                    connection.execute(
                        update(webhooks).where(webhooks.c.id == delivery.webhook_id).values(error=error)
                    )

    def pause(self, tenant_id: str, webhook_id: str, error: Fault) -> None:
        """Pauses a webhook that cannot continue."""
        with self._database.tenant(tenant_id) as connection:
            pause_webhook(connection, webhook_id, error)

    def _purge(self, connection: Connection, webhook_id: str) -> None:
        """Removes a few of the oldest messages, if they ended long enough ago."""
        oldest = (
            select(webhook_deliveries.c.id)
            .where(webhook_deliveries.c.webhook_id == webhook_id)
            .order_by(webhook_deliveries.c.id)
            .limit(_PURGED_AT_ONCE)
        )
        connection.execute(
            delete(webhook_deliveries).where(
                webhook_deliveries.c.id.in_(oldest),
                webhook_deliveries.c.ended_at < lease_end(-self._keep_seconds),
            )
        )


def _delivery(row: Any) -> FormattedDelivery:
    """The message in a row of _FORMATTED."""
    return FormattedDelivery(**delivery_members(row), delivery_format=row.delivery_format)


def _share(connection: Connection, consumer: Consumer, place: ConsumerPlace) -> None:
    """Before any other lock, as everywhere: no version is removed while one is kept for longer."""
    if place.snapshot is not None:
        share_versions(connection, consumer.dataset_id)


def _extend(connection: Connection, consumer: Consumer, place: ConsumerPlace) -> None:
    if place.snapshot is not None:
        extend_version(connection, consumer.dataset_id, consumer.name, place.snapshot)


def _holds(
    connection: Connection,
    webhook: LockedWebhook,
    webhook_id: str,
    consumer: Consumer,
    place: ConsumerPlace,
) -> bool:
    """Whether the consumer has the same claim as before, and is at the place; locked until the transaction ends."""
    if webhook.events is WebhookEvents.ALERTS:
        return holds_alerts(connection, webhook_id, consumer, place)
    return FOLLOWER_CLAIMS.holds(
        connection,
        consumer.lease_epoch,
        consumers.c.dataset_id == consumer.dataset_id,
        consumers.c.name == consumer.name,
        is_at(place),
    )


def _attempted(
    connection: Connection,
    delivery: FormattedDelivery,
    state: DeliveryState,
    reply: Reply,
    *,
    retry_seconds: float | None = None,
) -> LockedWebhook | None:
    """Counts an attempt, and returns the webhook; None if another worker has done so, or the webhook is gone."""
    locked = lock_row(connection, delivery.webhook_id)
    if locked is None:
        return None
    final = state is not DeliveryState.PENDING
    row_count = connection.execute(
        update(webhook_deliveries)
        .where(
            webhook_deliveries.c.id == delivery.id,
            webhook_deliveries.c.attempts == delivery.attempts,
            _PENDING,
        )
        .values(
            state=state.value,
            attempts=delivery.attempts + 1,
            status=reply.status,
            error=reply.error,
            next_attempt_at=None if retry_seconds is None else lease_end(retry_seconds),
            ended_at=func.clock_timestamp() if final else None,
        )
    ).rowcount
    if not row_count:
        return None
    record_attempt(connection, delivery.webhook_id, delivery.id, reply)
    return locked


def _move_past(connection: Connection, webhook: LockedWebhook, delivery: FormattedDelivery) -> bool:
    """Moves the position past a message; False for a redelivery, since the position is past it already."""
    return _move(connection, webhook, delivery.webhook_id, delivery.since, delivery.until)


def _move(
    connection: Connection,
    webhook: LockedWebhook,
    webhook_id: str,
    before: ConsumerPlace,
    after: ConsumerPlace,
) -> bool:
    if webhook.events is WebhookEvents.ALERTS:
        return move_alerts(connection, webhook_id, before, after)
    # All others are of a dataset.
    return move_consumer(connection, webhook.dataset_id or "", follower_name(webhook_id), before, after)
