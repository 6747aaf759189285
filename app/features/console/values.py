"""Sessions of the console, and links that begin one."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from datetime import datetime
from typing import Final

import msgspec

from app.access.tenants.values import Grant, KeyScope

SESSION_SECONDS: Final = 12 * 3600
"""How long a session lasts, unless its key or token ends before."""
LINK_SECONDS: Final = 600
"""How long a link can be used to sign in."""
SESSIONS_MAX: Final = 1_000
"""Sessions of a tenant; the oldest ends when there would be more."""
_SECRET: Final = re.compile(r"hws_[A-Za-z0-9_-]{43}")


class SessionClaims(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the token gave with which a session began, as it is stored."""

    issuer: str
    subject: str
    expires_at: datetime
    scopes: tuple[KeyScope, ...]
    grants: tuple[Grant, ...] | None


class NewSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session that has begun. `secret`: the value of its cookie."""

    secret: str
    ends_at: datetime

    def __repr__(self) -> str:
        return "NewSession()"


class NewLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link that signs in once. `secret`: the token in its address."""

    secret: str
    ends_at: datetime

    def __repr__(self) -> str:
        return "NewLink()"


def new_secret() -> str:
    """256 random bits behind a prefix that scanners for leaked secrets can recognise."""
    return f"hws_{secrets.token_urlsafe(32)}"


def has_form_of_secret(text: str) -> bool:
    """Whether the text may be the secret of a session or a link."""
    return _SECRET.fullmatch(text) is not None


def secret_digest(secret: str) -> bytes:
    """The stored form of a secret, 32 bytes."""
    return hashlib.sha256(secret.encode()).digest()


def form_token(secret: str) -> str:
    """The token that each form of a session carries: no other site knows it."""
    return hmac.new(secret.encode(), b"form", hashlib.sha256).hexdigest()
