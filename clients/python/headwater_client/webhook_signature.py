"""The signatures of webhook messages, for receivers: those of Standard Webhooks (symmetric, version 1)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

TOLERANCE_SECONDS: Final = 300.0
_PREFIX: Final = "whsec_"
_NEW_SECRET_BYTES: Final = 32
_VERSION: Final = "v1,"
# For a day after a rotation the service signs with two secrets; other senders might use some more.
_SIGNATURES_MAX: Final = 16


class InvalidSignature(ValueError):
    """A message is not one that the service has signed for this receiver just now. The message says why."""


def verify_webhook(
    secret: str | Iterable[str],
    headers: Mapping[str, str],
    body: bytes,
    *,
    tolerance_seconds: float = TOLERANCE_SECONDS,
) -> dict[str, Any]:
    """The message of a webhook, once its signature is verified.

    `secret`: that of the webhook (`whsec_…`), or several, of which one has to match. `headers`: of the request, in any
    case. `body`: as it was received, byte for byte. `tolerance_seconds`: how much the clocks of the sender and of this
    machine may differ, which bounds how late a copied message is accepted. Signatures are compared in constant time.

    Raises InvalidSignature, ValueError for a malformed secret, TypeError for a body that is not bytes.
    """
    if not isinstance(body, (bytes, bytearray, memoryview)):
        raise TypeError("the body must be the received bytes: a decoded one may differ from what was signed")
    keys = [key_of(each) for each in ((secret,) if isinstance(secret, str) else secret)]
    received = {name.lower(): value for name, value in headers.items()}
    message_id, sent_at, signatures = (
        _header(received, f"webhook-{name}") for name in ("id", "timestamp", "signature")
    )
    _check_time(sent_at, tolerance_seconds)
    expected = [signature(key, message_id, sent_at, bytes(body)).encode() for key in keys]
    sent = [each.encode() for each in signatures.split(" ")[:_SIGNATURES_MAX]]
    # All pairs are compared, so that the time does not depend on which of them match.
    matches = [hmac.compare_digest(one, other) for one in expected for other in sent]
    if not any(matches):
        raise InvalidSignature("no signature is one of this body, id and time with the secret")
    try:
        message = msgspec.json.decode(bytes(body))
    except msgspec.DecodeError as error:
        raise InvalidSignature(f"the body is no JSON: {error}") from error
    if not isinstance(message, dict):
        raise InvalidSignature("the body is no JSON object")
    return message


def signature(key: bytes, message_id: str, sent_at: str, body: bytes) -> str:
    """The signature of a body with its id and the time of the attempt, in seconds since 1970."""
    content = f"{message_id}.{sent_at}.".encode() + body
    return _VERSION + base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()


def new_secret() -> str:
    """A random secret in the form in which it is shared."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(_NEW_SECRET_BYTES)).decode()


def key_of(secret: str) -> bytes:
    """The bytes of a secret. Raises ValueError."""
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(_PREFIX) or not key:
        raise ValueError(f"expected a secret of a webhook: {_PREFIX} and base64")
    return key


def _header(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name)
    if not value:
        raise InvalidSignature(f"the header {name} is missing")
    return value


def _check_time(sent_at: str, tolerance_seconds: float) -> None:
    if not (sent_at.isascii() and sent_at.isdecimal() and len(sent_at) <= 12):
        raise InvalidSignature("the header webhook-timestamp is no number of seconds")
    age = time.time() - int(sent_at)
    if abs(age) > tolerance_seconds:
        when = f"{age:.0f} s old" if age > 0 else f"{-age:.0f} s ahead of this machine's clock"
        raise InvalidSignature(f"the message is {when}; at most {tolerance_seconds:g} s are accepted")
