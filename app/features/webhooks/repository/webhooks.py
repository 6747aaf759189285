"""Webhooks, as their users see and change them. Each has a follower of the same name, which holds its position."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import Connection, Select, and_, delete, func, insert, select, update

from app.access.errors import NotFound, PreconditionFailed
from app.access.tenants.repository.quotas import check_count
from app.core.catalog.repository.live_datasets import share_datasets, share_schemas
from app.core.catalog.tables import datasets
from app.core.changes.positions import (
    FeedBounds,
    ReaderStart,
    SnapshotPosition,
    StartingPosition,
    resolve_position,
)
from app.core.changes.repository import lock_feed, offset_of
from app.core.consumers.followers import ConsumerKind
from app.core.consumers.repository.followers import add_follower, wake_follower
from app.core.consumers.repository.places import keep_version, place_in_version, stored_place
from app.core.consumers.tables import consumers
from app.core.consumers.values import ConsumerPlace, MaxLag
from app.core.timeline.repository.kept_versions import share_versions
from app.features.partitions.repository.marks import lock_events
from app.features.webhooks.repository.alert_feed import active_events, begin_alerts, lock_alert_feed
from app.features.webhooks.repository.alert_followers import add_alert_follower, wake_alert_follower
from app.features.webhooks.repository.webhook_row import (
    DELIVERY_COLUMNS,
    delivery_of,
    find_webhook,
    follower_name,
    live_credentials,
    lock_row,
    record_attempt,
    select_webhooks,
    webhook_of,
)
from app.features.webhooks.tables import webhook_deliveries, webhooks
from app.features.webhooks.values import (
    AlertStart,
    Delivery,
    DeliveryState,
    ReceiverCredentials,
    Reply,
    Webhook,
    WebhookAttempt,
    WebhookDefinition,
    WebhookEvents,
    WebhookState,
)
from app.infra.db.acts import act_concerns, record_act
from app.infra.db.any_of import any_of, matches_any
from app.infra.db.session import Database
from app.infra.db.times import lease_end
from app.kernel.format.errors import InvalidRequest
from app.kernel.format.identifiers import is_uuid
from app.kernel.paging import Page, PageTokens

_COUNT: Final[Select[int]] = (
    select(func.count())
    .select_from(webhooks)
    .outerjoin(datasets, datasets.c.id == webhooks.c.dataset_id)
    .where(datasets.c.deleted_at.is_(None))
)
_KINDS: Final = {
    WebhookEvents.CHANGES: ConsumerKind.WEBHOOK,
    WebhookEvents.PARTITIONS: ConsumerKind.PARTITION_WEBHOOK,
}


class WebhookStore:
    """Webhooks in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self,
        tenant_id: str,
        webhook_id: str,
        dataset_id: str | None,
        definition: WebhookDefinition,
        secret: str,
        *,
        schema_id: int | None,
        since: ReaderStart,
        max_lag: MaxLag,
        registry_password: str | None = None,
    ) -> Webhook:
        """`schema_id`: the schema that the definition was checked against; None for alerts. `since`: the position to
        start at. Nothing is cut from there on meanwhile. `dataset_id`: None for the alerts of all datasets.

        Raises NotFound, OffsetAhead, OffsetExpired, VersionExpired, SchemaChanged, QuotaExceeded.
        """
        with self._database.tenant(tenant_id) as connection:
            _share(connection, dataset_id, since)
            bounds = _lock_bounds(connection, dataset_id, definition)
            if dataset_id is not None and not share_datasets(connection, [dataset_id]):
                raise NotFound(f"there is no dataset {dataset_id!r}")
            if dataset_id is not None and schema_id is not None:
                share_schemas(connection, {dataset_id: schema_id})
            act_concerns(webhook=webhook_id)
            connection.execute(
                insert(webhooks).values(
                    id=webhook_id,
                    dataset_id=dataset_id,
                    definition=definition,
                    secret=secret,
                    registry_password=registry_password,
                    state=WebhookState.ACTIVE.value,
                )
            )
            place = _place(connection, dataset_id, since, bounds)
            if definition.events is WebhookEvents.ALERTS or dataset_id is None:
                begin_alerts(connection)
                add_alert_follower(connection, webhook_id, _alert_start(connection, dataset_id, since, place))
            else:
                add_follower(
                    connection,
                    dataset_id,
                    follower_name(webhook_id),
                    _KINDS[definition.events],
                    place.offset,
                    snapshot=place.snapshot,
                    wake_after_seconds=0.0,
                    max_lag_rows=max_lag.changes,
                    max_lag_seconds=max_lag.seconds,
                )
            check_count(connection, "webhooks", _COUNT)
            return find_webhook(connection, webhook_id)

    def count(self, tenant_id: str) -> int:
        """The webhooks that count against the quota `webhooks`."""
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(_COUNT).scalar_one()

    def get(self, tenant_id: str, webhook_id: str) -> Webhook:
        """Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            return find_webhook(connection, webhook_id)

    def credentials(self, tenant_id: str, webhook_id: str) -> ReceiverCredentials:
        """What identifies the service to the receiver now. Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            find_webhook(connection, webhook_id)
            return live_credentials(connection, webhook_id)

    def attempts(self, tenant_id: str, webhook_id: str) -> tuple[WebhookAttempt, ...]:
        """The latest attempts, the latest first, ATTEMPTS_MAX at most. Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            find_webhook(connection, webhook_id)
            query = select(webhooks.c.recent_attempts).where(webhooks.c.id == webhook_id)
            return connection.execute(query).scalar_one() or ()

    def tested(self, tenant_id: str, webhook_id: str, reply: Reply) -> None:
        """Records the attempt at a test message, unless the webhook is gone."""
        with self._database.tenant(tenant_id) as connection:
            if lock_row(connection, webhook_id) is not None:
                record_attempt(connection, webhook_id, None, reply)

    def sending(self) -> None:
        """Records the request that sends a message, before it is sent.

        Raises Unavailable.
        """
        record_act()

    def list(
        self,
        tenant_id: str,
        dataset_id: str | None,
        *,
        page_size: int,
        page_token: str | None,
        patterns: Collection[str] | None = None,
        dataset_ids: Collection[str] | None = None,
        state: WebhookState | None = None,
    ) -> Page:
        """Webhook items, the newest first; of datasets whose names match a pattern, unless None.

        `dataset_ids`: those of these datasets only; `state`: those in it.
        """
        tokens = PageTokens("webhooks", tenant_id, dataset_id, *(() if state is None else (state.value,)))
        query = select_webhooks().order_by(webhooks.c.id.desc()).limit(page_size + 1)
        if patterns is not None:
            query = query.where(matches_any(datasets.c.name, patterns))
        if dataset_id is not None:
            query = query.where(webhooks.c.dataset_id == dataset_id)
        if dataset_ids is not None:
            query = query.where(any_of(webhooks.c.dataset_id, dataset_ids))
        if state is not None:
            query = query.where(webhooks.c.state == state.value)
        if page_token is not None:
            query = query.where(webhooks.c.id < tokens.id(page_token))
        with self._database.tenant(tenant_id) as connection:
            rows = connection.execute(query).all()
        return tokens.page(rows, page_size, lambda row: row.id, webhook_of)

    def change(
        self,
        tenant_id: str,
        webhook_id: str,
        *,
        revision: int,
        definition: WebhookDefinition,
        state: WebhookState,
        max_lag: MaxLag,
        schema_id: int | None = None,
        since: ReaderStart | None = None,
    ) -> Webhook:
        """Changes a webhook that must be at `revision` still; what waits for an attempt is due at once.

        `schema_id`: the schema that the definition was checked against; None if it does not change, and nothing is
        sent. With `since` it goes on from there, and what waits is given up.
        Raises NotFound, PreconditionFailed, OffsetAhead, OffsetExpired, VersionExpired, SchemaChanged.
        """
        with self._database.tenant(tenant_id) as connection:
            # The versions and the feed are locked first, as everywhere, so there are no deadlocks.
            before = find_webhook(connection, webhook_id)
            _share(connection, before.dataset_id, since)
            bounds = _lock_bounds(connection, before.dataset_id, before.definition)
            if schema_id is not None and before.dataset_id is not None:
                share_schemas(connection, {before.dataset_id: schema_id})
            webhook = _lock(connection, webhook_id, revision)
            # One that stays paused keeps its reason.
            reset_values: dict[str, Any] = {}
            if state is WebhookState.ACTIVE:
                reset_values = {"error": None, "failures": 0, "paused_at": None}
            elif webhook.state is WebhookState.ACTIVE:
                reset_values = {"paused_at": func.clock_timestamp()}
            connection.execute(
                update(webhooks)
                .where(webhooks.c.id == webhook_id)
                .values(
                    definition=definition, state=state.value, revision=webhooks.c.revision + 1, **reset_values
                )
            )
            now = func.clock_timestamp()
            given_up = {"state": DeliveryState.DEAD.value, "next_attempt_at": None, "ended_at": now}
            connection.execute(
                update(webhook_deliveries)
                .where(
                    webhook_deliveries.c.webhook_id == webhook_id,
                    webhook_deliveries.c.state == DeliveryState.PENDING.value,
                )
                .values({"next_attempt_at": now} if since is None else given_up)
            )
            place = None if since is None else _place(connection, webhook.dataset_id, since, bounds)
            if webhook.dataset_id is None or webhook.definition.events is WebhookEvents.ALERTS:
                start = (
                    None
                    if since is None or place is None
                    else _alert_start(connection, webhook.dataset_id, since, place)
                )
                wake_alert_follower(connection, webhook.id, start)
            else:
                _follow(connection, webhook, webhook.dataset_id, place, max_lag)
            return find_webhook(connection, webhook_id)

    def rotate(self, tenant_id: str, webhook_id: str, secret: str, *, overlap_seconds: float) -> None:
        """Signs with a new secret from now on, and with the previous one too until it expires. Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            _lock(connection, webhook_id)
            connection.execute(
                update(webhooks)
                .where(webhooks.c.id == webhook_id)
                .values(
                    secret=secret,
                    old_secret=webhooks.c.secret,
                    old_secret_until=lease_end(overlap_seconds),
                )
            )

    def delete(self, tenant_id: str, webhook_id: str, *, revision: int | None) -> None:
        """Raises NotFound, PreconditionFailed."""
        with self._database.tenant(tenant_id) as connection:
            webhook = _lock(connection, webhook_id, revision)
            name = follower_name(webhook_id)
            connection.execute(
                delete(consumers).where(
                    consumers.c.dataset_id == webhook.dataset_id, consumers.c.name == name
                )
            )
            if webhook.dataset_id is not None:
                keep_version(connection, webhook.dataset_id, name, webhook.place.snapshot, None)
            # A follower of alerts ends with it.
            connection.execute(delete(webhooks).where(webhooks.c.id == webhook_id))

    def deliveries(
        self,
        tenant_id: str,
        webhook_id: str,
        state: DeliveryState | None,
        *,
        page_size: int,
        page_token: str | None,
    ) -> Page:
        """Delivery items, the newest first. Raises NotFound."""
        tokens = PageTokens("deliveries", webhook_id, state)
        query = (
            select(*DELIVERY_COLUMNS)
            .where(webhook_deliveries.c.webhook_id == webhook_id)
            .order_by(webhook_deliveries.c.id.desc())
            .limit(page_size + 1)
        )
        if state is not None:
            query = query.where(webhook_deliveries.c.state == state.value)
        if page_token is not None:
            query = query.where(webhook_deliveries.c.id < tokens.id(page_token))
        with self._database.tenant(tenant_id) as connection:
            webhook = find_webhook(connection, webhook_id)
            rows = connection.execute(query).all()
        return tokens.page(rows, page_size, lambda row: row.id, lambda row: delivery_of(row, webhook))

    def delivery(self, tenant_id: str, webhook_id: str, delivery_id: str) -> Delivery:
        """Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            return _find_delivery(connection, find_webhook(connection, webhook_id), delivery_id)

    def redeliver(self, tenant_id: str, webhook_id: str, delivery_id: str | None) -> int:
        """Queues one ended message (None: all dead ones) for redelivery; returns their number. Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            webhook = _lock(connection, webhook_id)
            condition = webhook_deliveries.c.state == DeliveryState.DEAD.value
            if delivery_id is not None:
                _find_delivery(connection, webhook, delivery_id)
                condition = and_(
                    webhook_deliveries.c.id == delivery_id,
                    webhook_deliveries.c.state != DeliveryState.PENDING.value,
                )
            count = connection.execute(
                update(webhook_deliveries)
                .where(webhook_deliveries.c.webhook_id == webhook_id, condition)
                .values(
                    state=DeliveryState.PENDING.value,
                    attempts=0,
                    next_attempt_at=func.clock_timestamp(),
                    ended_at=None,
                )
            ).rowcount
            if count:
                _wake(connection, webhook)
            return int(count)


def _alert_start(
    connection: Connection, dataset_id: str | None, since: ReaderStart, place: ConsumerPlace
) -> AlertStart:
    """Where a webhook of alerts starts: one that starts `now` sends the active ones first."""
    if since is not StartingPosition.NOW:
        return AlertStart(place.offset)
    return AlertStart(place.offset, active_events(connection, dataset_id))


def _follow(
    connection: Connection, webhook: Webhook, dataset_id: str, place: ConsumerPlace | None, max_lag: MaxLag
) -> None:
    """Makes a webhook of changes or of partitions due; at another place, unless None."""
    name = follower_name(webhook.id)
    place_values = {}
    if place is not None:
        place_values = {**stored_place(place), "moved_at": func.clock_timestamp()}
        keep_version(connection, dataset_id, name, webhook.place.snapshot, place.snapshot)
    connection.execute(
        update(consumers)
        .where(consumers.c.dataset_id == dataset_id, consumers.c.name == name)
        .values(max_lag_rows=max_lag.changes, max_lag_seconds=max_lag.seconds, **place_values)
    )
    _wake(connection, webhook)


def _wake(connection: Connection, webhook: Webhook) -> None:
    if webhook.dataset_id is None or webhook.definition.events is WebhookEvents.ALERTS:
        wake_alert_follower(connection, webhook.id)
    else:
        wake_follower(connection, webhook.dataset_id, follower_name(webhook.id))


def _lock_bounds(connection: Connection, dataset_id: str | None, definition: WebhookDefinition) -> FeedBounds:
    """The positions that there are now, until the transaction ends: of changes, or of events. Raises NotFound."""
    if dataset_id is None or definition.events is WebhookEvents.ALERTS:
        return FeedBounds(earliest=0, next_offset=lock_alert_feed(connection))
    if definition.events is WebhookEvents.PARTITIONS:
        return FeedBounds(earliest=0, next_offset=lock_events(connection, dataset_id))
    return lock_feed(connection, dataset_id)


def _share(connection: Connection, dataset_id: str | None, since: ReaderStart | None) -> None:
    """Keeps the versions of the dataset until the transaction ends, if the position is within one."""
    if isinstance(since, SnapshotPosition) and dataset_id is not None:
        share_versions(connection, dataset_id)


def _place(
    connection: Connection, dataset_id: str | None, since: ReaderStart, bounds: FeedBounds
) -> ConsumerPlace:
    """Where a webhook starts. Raises OffsetAhead, OffsetExpired, VersionExpired."""
    if isinstance(since, int | StartingPosition):
        return ConsumerPlace(offset=resolve_position(since, bounds))
    if dataset_id is None:
        raise InvalidRequest("positions of alerts are numbers, `earliest` or `now`")
    if isinstance(since, SnapshotPosition):
        return place_in_version(connection, dataset_id, since)
    return ConsumerPlace(offset=resolve_position(offset_of(connection, dataset_id, since), bounds))


def _lock(connection: Connection, webhook_id: str, revision: int | None = None) -> Webhook:
    """The webhook, locked. Raises NotFound, PreconditionFailed."""
    if is_uuid(webhook_id):
        lock_row(connection, webhook_id)
    webhook = find_webhook(connection, webhook_id)
    if revision is not None and webhook.revision != revision:
        raise PreconditionFailed(
            f"The webhook is at revision {webhook.revision}, not {revision}", revision=webhook.revision
        )
    return webhook


def _find_delivery(connection: Connection, webhook: Webhook, delivery_id: str) -> Delivery:
    row = None
    if is_uuid(delivery_id):
        row = connection.execute(
            select(*DELIVERY_COLUMNS).where(
                webhook_deliveries.c.webhook_id == webhook.id, webhook_deliveries.c.id == delivery_id
            )
        ).one_or_none()
    if row is None:
        raise NotFound(f"there is no delivery {delivery_id!r} of this webhook")
    return delivery_of(row, webhook)
