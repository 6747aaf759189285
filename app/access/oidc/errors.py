"""The error of a token."""

from __future__ import annotations

from app.access.errors import Unauthorized


class TokenRefused(Unauthorized):
    """The token fails a check. Fact: `reason`, a word for the check."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail, reason=reason)
