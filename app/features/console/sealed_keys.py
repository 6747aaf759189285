"""Sessions without a row, for a database whose disk is full: a cookie that has the API key, encrypted, and its end.

It is encrypted with a secret of the deployment, so only API processes can open it. A copy of the database is not enough
to make one, because it has no API keys. The key is looked up as that of a request of the API is.
"""

from __future__ import annotations

import re
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from app.features.objects.service.secrets import KnownSecrets

SEALED_SECONDS: Final = 900
"""How long such a session lasts, unless its key ends before."""
_PREFIX: Final = "hwe_"
_GENERATION_BYTES: Final = 4
_NONCE_BYTES: Final = 12
_END_BYTES: Final = 8
_KEY_CHARACTERS: Final = 46
_TAG_BYTES: Final = 16
_BYTES: Final = _GENERATION_BYTES + _NONCE_BYTES + _END_BYTES + _KEY_CHARACTERS + _TAG_BYTES
_TEXT: Final = re.compile(rf"{_PREFIX}[A-Za-z0-9_-]{{{-(-_BYTES * 4 // 3)}}}")
_PURPOSE: Final = b"console session"


@dataclass(frozen=True, kw_only=True, slots=True)
class SealedKeys:
    """Seals and opens API keys. May be called by many threads at once. `clock`: seconds of Unix time."""

    secrets: KnownSecrets
    clock: Callable[[], float] = time.time

    def seal(self, api_key: str, ends_at: int) -> str:
        """The text of an API key, which can be opened until this second of Unix time. Raises Unavailable."""
        generation, secret = self.secrets.latest()
        head = generation.to_bytes(_GENERATION_BYTES)
        nonce = secrets.token_bytes(_NONCE_BYTES)
        content = ends_at.to_bytes(_END_BYTES) + api_key.encode()
        envelope = head + nonce + _cipher(secret).encrypt(nonce, content, head)
        return _PREFIX + urlsafe_b64encode(envelope).decode().rstrip("=")

    def open(self, text: str) -> tuple[str, float] | None:
        """The API key of a text, and for how many seconds it can still be opened.

        None for a text that has ended, or that no process of the deployment has made. Raises Unavailable.
        """
        if not is_sealed(text):
            return None
        envelope = urlsafe_b64decode(text.removeprefix(_PREFIX) + "==")
        head, rest = envelope[:_GENERATION_BYTES], envelope[_GENERATION_BYTES:]
        secret = self._known(int.from_bytes(head))
        if secret is None:
            return None
        try:
            content = _cipher(secret).decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], head)
        except InvalidTag:
            return None
        seconds = int.from_bytes(content[:_END_BYTES]) - self.clock()
        return (content[_END_BYTES:].decode(), seconds) if seconds > 0 else None

    def _known(self, generation: int) -> bytes | None:
        secret = self.secrets.known(generation)
        if secret is None:
            self.secrets.refresh()
            secret = self.secrets.known(generation)
        return secret


def is_sealed(text: str) -> bool:
    """Whether the text has the form of a sealed key."""
    return _TEXT.fullmatch(text) is not None


def _cipher(secret: bytes) -> AESGCM:
    return AESGCM(blake2b(_PURPOSE, key=secret[: blake2b.MAX_KEY_SIZE], digest_size=32).digest())
