"""Messages with changes, in the form and with the signatures that webhooks of the service have."""

from __future__ import annotations

import time
import uuid
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from headwater_client.webhook_signature import signature


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


def message(now: datetime, data: dict[str, Any]) -> Message:
    """The message with these changes. The same changes have the same id, also if the command starts again."""
    place = f"{data['webhook_id']} {data['dataset_id']} {data['since']} {data['next_since']}"
    body = msgspec.json.encode({"type": "dataset.changes", "timestamp": now, "data": data})
    return Message(str(uuid.uuid5(uuid.NAMESPACE_OID, place)), body)
