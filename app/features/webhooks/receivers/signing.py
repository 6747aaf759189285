"""Signatures of webhook messages, as the Standard Webhooks specification has them (symmetric, version 1)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Sequence
from typing import Final

PREFIX: Final = "whsec_"
SECRET_BYTES_MIN: Final = 24
SECRET_BYTES_MAX: Final = 64
_NEW_SECRET_BYTES: Final = 32


def new_secret() -> str:
    """A random secret in the form in which it is shared: `whsec_` and base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(_NEW_SECRET_BYTES)).decode()


def key_of(secret: str) -> bytes:
    """The bytes of a secret. Raises ValueError, which says what is expected."""
    detail = f"expected {PREFIX} and the base64 of {SECRET_BYTES_MIN}–{SECRET_BYTES_MAX} random bytes"
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(detail) from None
    if not secret.startswith(PREFIX) or not SECRET_BYTES_MIN <= len(key) <= SECRET_BYTES_MAX:
        raise ValueError(detail)
    return key


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
