"""Signatures of webhook messages, as the Standard Webhooks specification has them (symmetric, version 1)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Sequence


def signed_headers(
    keys: Sequence[bytes], message_id: str, timestamp_seconds: int, body: bytes
) -> dict[str, str]:
    """The headers that prove the body, its id and the time of the attempt: a signature by each of the keys."""
    content = f"{message_id}.{timestamp_seconds}.".encode() + body
    signatures = [base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode() for key in keys]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp_seconds),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }


def message_headers(keys: list[bytes], message_id: str, body: bytes) -> dict[str, str]:
    """The headers of an attempt that is made now."""
    return {"Content-Type": "application/json", **signed_headers(keys, message_id, int(time.time()), body)}
