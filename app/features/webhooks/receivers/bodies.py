"""The bodies of posted messages. The same delivery has the same bytes whenever it is sent."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec

from app.core.changes.position_parameters import position_value
from app.features.webhooks.values import (
    AlertEvent,
    AlertEventState,
    FormattedDelivery,
    Webhook,
    WebhookEvents,
    alert_members,
)

CHANGES_TYPE: Final = "dataset.changes"
PARTITIONS_TYPE: Final = "dataset.partitions"
ALERT_TYPES: Final = {AlertEventState.FIRING: "alert.fired", AlertEventState.RESOLVED: "alert.resolved"}
TEST_TYPE: Final = "webhook.test"


def changes_body(webhook: Webhook, delivery: FormattedDelivery, changes: bytes) -> bytes:
    """The body of a message with changes, with events, or with an alert."""
    if webhook.definition.events is WebhookEvents.ALERTS:
        return _alert_body(webhook, delivery, msgspec.json.decode(changes, type=AlertEvent))
    whose = {"webhook_id": webhook.id, "dataset_id": webhook.dataset_id, "dataset": webhook.dataset}
    if webhook.definition.events is WebhookEvents.PARTITIONS:
        events = {
            "since": delivery.since.offset,
            "next_since": delivery.until.offset,
            "events": msgspec.Raw(changes),
        }
        return _body(PARTITIONS_TYPE, delivery.created_at, {**whose, **events})
    data = {
        **whose,
        "form": delivery.delivery_format.form,
        "since": position_value(delivery.since.position),
        "next_since": position_value(delivery.until.position),
        "schema_id": delivery.delivery_format.schema_id,
        "changes": msgspec.Raw(changes),
    }
    return _body(CHANGES_TYPE, delivery.created_at, data)


def _alert_body(webhook: Webhook, delivery: FormattedDelivery, alert: AlertEvent) -> bytes:
    """The body of a message with an alert, with the members that alerts for operators have."""
    data = alert_members(webhook.id, delivery.since.offset, delivery.until.offset, alert)
    return _body(ALERT_TYPES[alert.state], alert.resolved_at or alert.fired_at, data)


def test_body(webhook: Webhook, now: datetime) -> bytes:
    """The body of a message that only shows whether messages arrive."""
    data = {"webhook_id": webhook.id, "dataset_id": webhook.dataset_id, "dataset": webhook.dataset}
    return _body(TEST_TYPE, now, data)


def _body(type_: str, moment: datetime, data: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"type": type_, "timestamp": moment, "data": data})
