"""Messages with changes and with alerts, in the form and with the signatures that webhooks of the service have."""

from __future__ import annotations

import time
import uuid
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from headwater_client.webhook_signature import signature

_ALERT_TYPES: Final = {"firing": "alert.fired", "resolved": "alert.resolved"}


class _Alert(msgspec.Struct, frozen=True, kw_only=True):
    webhook_id: str
    id: str
    state: str
    fired_at: datetime
    resolved_at: datetime | None


class Message(NamedTuple):
    """A message: every attempt has the same id and the same body."""

    id: str
    body: bytes

    def headers(self, key: bytes) -> dict[str, str]:
        """The headers of an attempt that is made now, as Standard Webhooks has them."""
        sent_at = str(int(time.time()))
        return {
            "Content-Type": "application/json",
            "User-Agent": "Headwater-Webhooks/1",
            "webhook-id": self.id,
            "webhook-timestamp": sent_at,
            "webhook-signature": signature(key, self.id, sent_at, self.body),
        }


def alert_message(data: bytes) -> Message:
    """The message with an alert, byte for byte as the service makes it. `data`: an item of its list."""
    alert = msgspec.json.decode(data, type=_Alert)
    body = msgspec.json.encode(
        {
            "type": _ALERT_TYPES[alert.state],
            "timestamp": alert.resolved_at or alert.fired_at,
            "data": msgspec.Raw(data),
        }
    )
    return Message(str(uuid.uuid5(uuid.NAMESPACE_OID, f"{alert.webhook_id} {alert.id}")), body)


def message(now: datetime, data: dict[str, Any]) -> Message:
    """The message with these changes. The same changes have the same id, also if the command starts again."""
    place = f"{data['webhook_id']} {data['dataset_id']} {data['since']} {data['next_since']}"
    body = msgspec.json.encode({"type": "dataset.changes", "timestamp": now, "data": data})
    return Message(str(uuid.uuid5(uuid.NAMESPACE_OID, place)), body)
