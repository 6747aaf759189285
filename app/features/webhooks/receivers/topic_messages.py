"""The messages of a topic: one for each change, with the record key of its row as key."""

from __future__ import annotations

from typing import Final

from app.features.webhooks.receivers.avro_messages import avro_messages
from app.features.webhooks.receivers.json_messages import json_messages
from app.features.webhooks.values import (
    Register,
    TopicAddress,
    TopicFormat,
    TopicOptions,
    Webhook,
    WebhookMessage,
)
from app.infra.kafka.errors import SourceFailed
from app.infra.kafka.writer import OutMessage
from app.kernel.codecs.messages.reading import UnsupportedSchema

DELIVERY_HEADER: Final = "headwater-delivery"
VERSION_HEADER: Final = "headwater-version"
OFFSET_HEADER: Final = "headwater-offset"


def topic_messages(webhook: Webhook, message: WebhookMessage, register: Register) -> list[OutMessage]:
    """The messages of a delivery's changes, in their order. Rows without a record key have messages without key.

    The form `delta` has no offsets, so its messages have no header with one. Raises SourceUnavailable, and SourceFailed
    if the changes cannot be messages.
    """
    options = webhook.definition.kafka or TopicOptions()
    delivery, content, record_key = message
    delivery_format = delivery.delivery_format
    if options.format is TopicFormat.JSON or content.changes is None:
        change_messages = json_messages(content.json, delivery_format, record_key, options.value)
    else:
        topic = TopicAddress.of(webhook.definition.url).topic
        change_messages = avro_messages(
            content.changes, delivery_format, record_key, options.value, topic, register
        )
    messages = []
    try:
        for number, change_message in enumerate(change_messages):
            headers = [(DELIVERY_HEADER, f"{delivery.id}/{number}".encode())]
            for header, fact in (
                (VERSION_HEADER, change_message.version),
                (OFFSET_HEADER, change_message.offset),
            ):
                if fact is not None:
                    headers.append((header, fact))
            messages.append(
                OutMessage(key=change_message.key, value=change_message.value, headers=tuple(headers))
            )
    except UnsupportedSchema as error:
        raise SourceFailed(f"its rows have no Avro schema: {error}") from None
    return messages
