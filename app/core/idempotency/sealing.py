"""Stored replies that contain a secret, encrypted with the API key of their request.

The database has only a digest of an API key, so what is stored cannot be read without the client. Each reply has a key
of its own, which is derived from the API key and a random salt (HKDF with SHA-256), and is encrypted with AES-256-GCM.
"""

from __future__ import annotations

import secrets
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_SALT_BYTES: Final = 32
_KEY_BYTES: Final = 32
# A key encrypts one text, so its nonce need not differ.
_NONCE: Final = bytes(12)


def seal(text: bytes, api_key: str, context: bytes) -> bytes:
    """The encrypted text. `context` is authenticated with it: what identifies the request."""
    salt = secrets.token_bytes(_SALT_BYTES)
    return salt + _cipher(api_key, salt).encrypt(_NONCE, text, context)


def unseal(sealed_text: bytes, api_key: str, context: bytes) -> bytes | None:
    """The text; None with another API key or context than it was encrypted with."""
    salt, ciphertext = sealed_text[:_SALT_BYTES], sealed_text[_SALT_BYTES:]
    try:
        return _cipher(api_key, salt).decrypt(_NONCE, ciphertext, context)
    except InvalidTag:
        return None


def _cipher(api_key: str, salt: bytes) -> AESGCM:
    key = HKDF(SHA256(), _KEY_BYTES, salt, b"headwater stored reply").derive(api_key.encode())
    return AESGCM(key)
