"""Secrets that sign messages to receivers, in the form in which they are shared: `whsec_` and base64."""

from __future__ import annotations

import base64
import secrets
from typing import Final

_PREFIX: Final = "whsec_"
_BYTES_MIN: Final = 24
_BYTES_MAX: Final = 64
_NEW_BYTES: Final = 32
SECRET_FORM: Final = f"{_PREFIX} and the base64 of {_BYTES_MIN}–{_BYTES_MAX} random bytes"
"""What a secret is, for the errors of texts that are not secrets."""


def new_secret() -> str:
    """A random secret."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(_NEW_BYTES)).decode()


def key_of(secret: str) -> bytes:
    """The bytes of a secret. Raises ValueError with what is expected; the text omits the secret."""
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except ValueError:
        key = b""
    if not secret.startswith(_PREFIX) or not _BYTES_MIN <= len(key) <= _BYTES_MAX:
        raise ValueError(f"expected {SECRET_FORM}")
    return key
