"""Stored replies that contain a secret, encrypted with the API key of their request.

The database has only a digest of an API key, so what is stored cannot be read without the client. The key of each reply
is derived from the API key with HMAC-SHA-256 and a random nonce, so it is used once. The text is combined with a key
stream of SHAKE-256, and authenticated with HMAC-SHA-256 (encrypt, then authenticate).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final

_NONCE_BYTES: Final = 32
_TAG_BYTES: Final = 32


def seal(text: bytes, api_key: str, context: bytes) -> bytes:
    """The encrypted text. `context` is authenticated with it: what identifies the request."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    hidden = _combined(text, _derived(api_key, nonce, b"stream"))
    return nonce + _tag(api_key, nonce, hidden, context) + hidden


def unseal(sealed: bytes, api_key: str, context: bytes) -> bytes | None:
    """The text; None with another API key or context than it was encrypted with."""
    nonce, rest = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
    tag, hidden = rest[:_TAG_BYTES], rest[_TAG_BYTES:]
    if not hmac.compare_digest(tag, _tag(api_key, nonce, hidden, context)):
        return None
    return _combined(hidden, _derived(api_key, nonce, b"stream"))


def _derived(api_key: str, nonce: bytes, purpose: bytes) -> bytes:
    return hmac.digest(api_key.encode(), b"headwater stored reply " + purpose + b" " + nonce, "sha256")


def _tag(api_key: str, nonce: bytes, hidden: bytes, context: bytes) -> bytes:
    digest = hashlib.sha256(context).digest()
    return hmac.digest(_derived(api_key, nonce, b"tag"), digest + hidden, "sha256")


def _combined(text: bytes, key: bytes) -> bytes:
    stream = hashlib.shake_256(key).digest(len(text))
    return bytes(one ^ other for one, other in zip(text, stream, strict=True))
