"""Rows of webhooks and of their messages, as values; and the one lock of a webhook."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Select, and_, case, func, select, true, update

from app.access.errors import NotFound
from app.core.catalog.tables import datasets, heads
from app.core.consumers.followers import ConsumerKind
from app.core.consumers.tables import consumers
from app.core.consumers.values import ConsumerPlace, MaxLag
from app.features.partitions.tables import partition_feeds
from app.features.webhooks.repository.alert_feed import events_after
from app.features.webhooks.tables import alert_followers, webhook_deliveries, webhooks
from app.features.webhooks.values import (
    ATTEMPTS_MAX,
    Delivery,
    DeliveryState,
    ReceiverCredentials,
    Reply,
    Webhook,
    WebhookAttempt,
    WebhookEvents,
    WebhookRetry,
    WebhookState,
)
from app.kernel.format.errors import Fault
from app.kernel.format.identifiers import is_uuid

_MEMBERS: Final = tuple(name for name in Delivery.__struct_fields__ if name not in {"since", "until"})
_PLACES: Final = ("since", "since_snapshot", "next_since", "next_snapshot")
_RETRY: Final = ("id", "attempts", "status", "error", "next_attempt_at")
DELIVERY_COLUMNS: Final = tuple(webhook_deliveries.c[name] for name in (*_MEMBERS, *_PLACES))


class LockedWebhook(NamedTuple):
    """What the position of a webhook is in. `dataset_id`: None for the alerts of all datasets."""

    dataset_id: str | None
    events: WebhookEvents


def follower_name(webhook_id: str) -> str:
    """The name of a webhook's consumer."""
    return f"{ConsumerKind.WEBHOOK.value}:{webhook_id}"


def find_webhook(connection: Connection, webhook_id: str) -> Webhook:
    """Raises NotFound."""
    row = None
    if is_uuid(webhook_id):
        row = connection.execute(select_webhooks().where(webhooks.c.id == webhook_id)).one_or_none()
    if row is None:
        raise no_webhook(webhook_id)
    return webhook_of(row)


def no_webhook(webhook_id: str) -> NotFound:
    """The error for a webhook that does not exist, or is hidden."""
    return NotFound(f"there is no webhook {webhook_id!r}")


def live_credentials(connection: Connection, webhook_id: str) -> ReceiverCredentials:
    """The secrets that sign now, and the password for a schema registry."""
    still = (webhooks.c.old_secret_until > func.clock_timestamp()).label("still")
    query = select(webhooks.c.secret, webhooks.c.old_secret, still, webhooks.c.registry_password)
    row = connection.execute(query.where(webhooks.c.id == webhook_id)).one()
    secrets = (row.secret, row.old_secret) if row.still else (row.secret,)
    return ReceiverCredentials(secrets=secrets, registry_password=row.registry_password)


def delivery_of(row: Any, webhook: Webhook) -> Delivery:
    """The delivery in a row of DELIVERY_COLUMNS. That of a paused webhook has no next attempt."""
    members = delivery_members(row)
    if webhook.state is WebhookState.PAUSED:
        members["next_attempt_at"] = None
    return Delivery(**members)


def delivery_members(row: Any) -> dict[str, Any]:
    """The members of a delivery in a row that begins with DELIVERY_COLUMNS."""
    return {
        **{name: getattr(row, name) for name in _MEMBERS},
        "state": DeliveryState(row.state),
        "since": ConsumerPlace.stored(row.since, row.since_snapshot),
        "until": ConsumerPlace.stored(row.next_since, row.next_snapshot),
    }


def delivery_place(since: ConsumerPlace, until: ConsumerPlace) -> dict[str, Any]:
    """The values of the columns of a message's places."""
    values = (since.offset, since.snapshot_text, until.offset, until.snapshot_text)
    return dict(zip(_PLACES, values, strict=True))


def select_webhooks() -> Select[Any]:
    """Webhooks with their positions: those of consumers, or of followers of alerts."""
    of_partitions = consumers.c.kind == ConsumerKind.PARTITION_WEBHOOK.value
    count = case((of_partitions, func.coalesce(partition_feeds.c.next_event, 0)), else_=heads.c.next_offset)
    position = func.coalesce(consumers.c.position, alert_followers.c.position)
    of_alerts = alert_followers.c.webhook_id.is_not(None)
    alerts = events_after(webhooks.c.dataset_id, alert_followers.c.position)
    pending = case((of_alerts, alerts), else_=count - consumers.c.position).label("pending")
    retry = (
        select(*(webhook_deliveries.c[name].label(f"retry_{name}") for name in _RETRY))
        .where(
            webhook_deliveries.c.webhook_id == webhooks.c.id,
            webhook_deliveries.c.state == DeliveryState.PENDING.value,
            webhook_deliveries.c.attempts > 0,
            webhook_deliveries.c.since == position,
            webhook_deliveries.c.since_snapshot.is_not_distinct_from(consumers.c.snapshot),
        )
        .order_by(webhook_deliveries.c.next_attempt_at)
        .limit(1)
        .lateral("retry")
    )
    columns = (
        *("id", "dataset_id", "definition", "state", "error", "paused_at"),
        *("failures", "revision", "created_at"),
    )
    return (
        select(
            *(webhooks.c[name] for name in columns),
            datasets.c.name.label("dataset"),
            position.label("position"),
            consumers.c.snapshot,
            pending,
            consumers.c.max_lag_rows,
            consumers.c.max_lag_seconds,
            *retry.c,
        )
        .outerjoin(datasets, datasets.c.id == webhooks.c.dataset_id)
        .outerjoin(heads, heads.c.dataset_id == webhooks.c.dataset_id)
        .outerjoin(partition_feeds, partition_feeds.c.dataset_id == webhooks.c.dataset_id)
        .outerjoin(alert_followers, alert_followers.c.webhook_id == webhooks.c.id)
        .outerjoin(
            consumers,
            and_(
                consumers.c.dataset_id == webhooks.c.dataset_id,
                consumers.c.name == func.concat(follower_name(""), webhooks.c.id),
            ),
        )
        .outerjoin(retry, true())
    )


def webhook_of(row: Any) -> Webhook:
    """The webhook in a row of `select_webhooks`."""
    values = row._asdict()
    max_lag = MaxLag(changes=values.pop("max_lag_rows"), seconds=values.pop("max_lag_seconds"))
    place = ConsumerPlace.stored(values.pop("position"), values.pop("snapshot"))
    state = WebhookState(values["state"])
    attempt = {name: values.pop(f"retry_{name}") for name in _RETRY}
    if state is WebhookState.PAUSED:
        attempt["next_attempt_at"] = None
    retry = None if attempt["id"] is None else WebhookRetry(delivery=attempt.pop("id"), **attempt)
    return Webhook(**{**values, "state": state, "max_lag": max_lag, "place": place, "retry": retry})


def lock_row(connection: Connection, webhook_id: str) -> LockedWebhook | None:
    """Locks a webhook until the transaction ends; None if there is no such webhook.

    Every change of a webhook locks its row first, so there are no deadlocks.
    """
    query = select(webhooks.c.dataset_id, webhooks.c.definition).where(webhooks.c.id == webhook_id)
    row = connection.execute(query.with_for_update()).one_or_none()
    return None if row is None else LockedWebhook(row.dataset_id, row.definition.events)


def record_attempt(connection: Connection, webhook_id: str, delivery_id: str | None, reply: Reply) -> None:
    """Adds an attempt to the latest of a webhook, whose row is locked."""
    query = select(webhooks.c.recent_attempts, func.clock_timestamp().label("now"))
    row = connection.execute(query.where(webhooks.c.id == webhook_id)).one()
    attempt = WebhookAttempt(
        delivery=delivery_id,
        at=row.now,
        status=reply.status,
        error=reply.error,
        seconds=reply.seconds,
        answer=reply.answer,
    )
    attempts = (attempt, *(row.recent_attempts or ()))[:ATTEMPTS_MAX]
    connection.execute(update(webhooks).where(webhooks.c.id == webhook_id).values(recent_attempts=attempts))


def pause_webhook(connection: Connection, webhook_id: str, error: Fault) -> None:
    """Pauses a webhook that is active. `error`: why."""
    connection.execute(
        update(webhooks)
        .where(webhooks.c.id == webhook_id, webhooks.c.state == WebhookState.ACTIVE.value)
        .values(
            state=WebhookState.PAUSED.value,
            error=error,
            paused_at=func.clock_timestamp(),
            revision=webhooks.c.revision + 1,
        )
    )
