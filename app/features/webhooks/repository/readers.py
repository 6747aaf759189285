"""Webhooks that name columns of their dataset."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from app.core.catalog.impact import ColumnReader, ReaderKind, SchemaStep, delivery_reader, paused_by
from app.features.webhooks.repository.webhook_row import pause_webhook
from app.features.webhooks.tables import webhooks
from app.features.webhooks.values import WebhookDefinition, WebhookEvents


class WebhookReaders:
    """See `SchemaReaders`."""

    def readers(self, connection: Connection, dataset_id: str, step: SchemaStep) -> Sequence[ColumnReader]:
        """The webhooks of changes of the dataset, the earliest first."""
        query = (
            select(webhooks.c.id, webhooks.c.definition)
            .where(webhooks.c.dataset_id == dataset_id)
            .order_by(webhooks.c.id)
        )
        rows = connection.execute(query)
        return [
            _reader(row.id, row.definition, step)
            for row in rows
            if row.definition.events is WebhookEvents.CHANGES
        ]

    def pause(self, connection: Connection, readers: Sequence[ColumnReader]) -> None:
        """They send nothing more, and keep their positions."""
        for reader in readers:
            if reader.kind is ReaderKind.WEBHOOK:
                pause_webhook(connection, reader.id, paused_by(reader))


def _reader(webhook_id: str, definition: WebhookDefinition, step: SchemaStep) -> ColumnReader:
    delivery_format = definition.delivery_format
    return delivery_reader(
        ReaderKind.WEBHOOK,
        webhook_id,
        definition.name,
        step,
        columns=delivery_format.columns,
        where=delivery_format.where,
        access=delivery_format.access,
    )
