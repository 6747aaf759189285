"""Messages with changes, in the form and with the signatures that webhooks of the service have."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
import uuid
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from headwater_client.cli.failure import CommandError, ExitCode

_PREFIX: Final = "whsec_"
_NEW_SECRET_BYTES: Final = 32
_SECRET_BYTES: Final = range(24, 65)


class Message(NamedTuple):
    """A message: every attempt has the same id and the same body."""

    id: str
    body: bytes

    def headers(self, key: bytes) -> dict[str, str]:
        """The headers of an attempt that is made now, as Standard Webhooks has them."""
        sent_at = str(int(time.time()))
        signed = f"{self.id}.{sent_at}.".encode() + self.body
        signature = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
        return {
            "Content-Type": "application/json",
            "User-Agent": "Headwater-Webhooks/1",
            "webhook-id": self.id,
            "webhook-timestamp": sent_at,
            "webhook-signature": f"v1,{signature}",
        }


def message(now: datetime, data: dict[str, Any]) -> Message:
    """The message with these changes. The same changes have the same id, also if the command starts again."""
    place = f"{data['webhook_id']} {data['dataset_id']} {data['since']} {data['next_since']}"
    body = msgspec.json.encode({"type": "dataset.changes", "timestamp": now, "data": data})
    return Message(str(uuid.uuid5(uuid.NAMESPACE_OID, place)), body)


def new_secret() -> str:
    """A random secret in the form in which it is shared."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(_NEW_SECRET_BYTES)).decode()


def key_of(secret: str) -> bytes:
    """The bytes of a secret. Raises CommandError."""
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(_PREFIX) or len(key) not in _SECRET_BYTES:
        raise CommandError(
            f"--secret: expected {_PREFIX} and the base64 of 24–64 random bytes", ExitCode.USAGE
        )
    return key
