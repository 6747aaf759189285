"""What webhook messages hold. The same delivery has the same changes whenever it is sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec
import pyarrow as pa

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.changes.positions import SnapshotPosition
from app.core.changes.service.read_changes import FeedQuery
from app.core.changes.service.read_snapshots import ReadSnapshots
from app.core.changes.values import ChangePage, DeliveryFormat
from app.core.consumers.values import ConsumerPlace
from app.features.partitions.values import PartitionEvents
from app.features.webhooks.values import (
    AlertEvent,
    AlertPage,
    FormattedDelivery,
    MessageContent,
    Webhook,
    WebhookDefinition,
    WebhookEvents,
)
from app.kernel.changelog.delivery_forms import json_names, symbols_of
from app.kernel.codecs.json.encode import encode_changes_json
from app.kernel.format.dataset import DEFAULT_VOCABULARY

# A message of more bytes is made of fewer changes, unless it is of one.
BODY_BYTES_MAX: Final = 1024 * 1024
_ROWS_OF_A_READ: Final = 1_000


class MessageBatch(msgspec.Struct, frozen=True, kw_only=True):
    """What the next message holds, up to `until`, or None if there is nothing. `delivery_format` names the schema."""

    delivery_format: DeliveryFormat
    until: ConsumerPlace
    content: MessageContent | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Messages:
    """Makes messages of feeds, of events of partitions, and of alerts.

    `read_events`: up to this number of events of a dataset from a position on. `alerts_after`: likewise of
    what a webhook sends. Both raise OffsetAhead. `alert`: the one of this number.
    """

    read_feed: ReadSnapshots
    read_events: Callable[[Dataset, int, int], PartitionEvents]
    alerts_after: Callable[[str, str, int, int], AlertPage]
    alert: Callable[[str, int], AlertEvent | None]

    def next_batch(self, tenant_id: str, dataset: Dataset | None, webhook: Webhook) -> MessageBatch:
        """What comes next for a webhook: changes, or only a place further on. Raises what reading a page raises.

        `dataset`: None for the alerts of all datasets of the tenant.
        """
        definition, place = webhook.definition, webhook.place
        if dataset is None or definition.events is WebhookEvents.ALERTS:
            return self._next_alert(tenant_id, webhook)
        read = self._events if definition.events is WebhookEvents.PARTITIONS else self._changes
        limit = definition.batch_changes_max
        while True:
            batch = read(dataset, definition.delivery_format, place, limit)
            size = 0 if batch.content is None else len(batch.content.json)
            if size <= BODY_BYTES_MAX or limit == 1:
                return batch
            limit = max(1, min(limit // 2, limit * BODY_BYTES_MAX // size))

    def _changes(
        self, dataset: Dataset, delivery_format: DeliveryFormat, place: ConsumerPlace, limit: int
    ) -> MessageBatch:
        page = self.read_feed.page(dataset, place.position, _query(delivery_format, limit, None))
        content = _encoded(page, [page.events.table]) if page.events.table.num_rows else None
        # A message keeps its schema and its names, however often it is sent.
        message_format = msgspec.structs.replace(
            delivery_format, schema_id=page.schema_id, vocabulary=page.vocabulary
        )
        until = ConsumerPlace(offset=page.next_since, snapshot=page.snapshot)
        return MessageBatch(delivery_format=message_format, until=until, content=content)

    def _events(
        self, dataset: Dataset, delivery_format: DeliveryFormat, place: ConsumerPlace, limit: int
    ) -> MessageBatch:
        events = self.read_events(dataset, place.offset, limit)
        content = MessageContent(msgspec.json.encode(events.items)) if events.items else None
        until = ConsumerPlace(offset=events.next_since)
        return MessageBatch(delivery_format=delivery_format, until=until, content=content)

    def _next_alert(self, tenant_id: str, webhook: Webhook) -> MessageBatch:
        """A message has one alert, as those for operators do."""
        page = self.alerts_after(tenant_id, webhook.id, webhook.place.offset, 1)
        return MessageBatch(
            delivery_format=webhook.definition.delivery_format,
            until=ConsumerPlace(offset=page.next_since),
            content=MessageContent(msgspec.json.encode(page.items[0].event)) if page.items else None,
        )

    def content_of(
        self,
        tenant_id: str,
        dataset: Dataset | None,
        definition: WebhookDefinition,
        delivery: FormattedDelivery,
    ) -> MessageContent:
        """What a message that was begun before holds. Raises what reading a page raises, NotFound for a past alert."""
        if dataset is None or definition.events is WebhookEvents.ALERTS:
            # Its message ends behind it.
            event = self.alert(tenant_id, delivery.until.offset - 1)
            if event is None:
                raise NotFound("the alert is no longer kept")
            return MessageContent(msgspec.json.encode(event))
        if definition.events is WebhookEvents.PARTITIONS:
            count = delivery.until.offset - delivery.since.offset
            batch = self._events(dataset, delivery.delivery_format, delivery.since, count)
            return batch.content or MessageContent(b"[]")
        # Messages of earlier releases had the standard names.
        message_format = msgspec.structs.replace(
            delivery.delivery_format,
            vocabulary=delivery.delivery_format.vocabulary or DEFAULT_VOCABULARY,
        )
        if delivery.since.snapshot is not None:
            return self._rows(dataset, message_format, delivery.since.snapshot, delivery.until.snapshot)
        tables: list[pa.Table] = []
        position, end = delivery.since.offset, delivery.until.offset
        while True:
            page = self.read_feed.page(dataset, position, _query(message_format, end - position, end))
            tables.append(page.events.table)
            if page.complete or page.next_since <= position:
                return _encoded(page, tables)
            position = page.next_since

    def _rows(
        self,
        dataset: Dataset,
        message_format: DeliveryFormat,
        since: SnapshotPosition,
        until: SnapshotPosition | None,
    ) -> MessageContent:
        """The rows of a version between two places; up to its last row for None."""
        tables: list[pa.Table] = []
        place: SnapshotPosition | None = since
        while True:
            page = self.read_feed.page(dataset, place or since, _query(message_format, _ROWS_OF_A_READ, None))
            before = (
                page.events.table
                if until is None or page.places is None
                else page.events.table.slice(0, page.places.count_before(until))
            )
            tables.append(before)
            place = page.snapshot
            if place is None or (until is not None and not place.is_before(until)):
                return _encoded(page, tables)


def _query(delivery_format: DeliveryFormat, limit: int, until: int | None) -> FeedQuery:
    return FeedQuery(**msgspec.structs.asdict(delivery_format), limit=limit, until=until)


def _encoded(page: ChangePage, tables: list[pa.Table]) -> MessageContent:
    changes = pa.concat_tables(tables)
    text = encode_changes_json(
        changes,
        as_ndjson=False,
        symbols=symbols_of(page.form),
        names=json_names(page.form, page.vocabulary),
    )
    return MessageContent(text, changes)
