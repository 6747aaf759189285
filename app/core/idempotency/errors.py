"""The error of an Idempotency-Key."""

from __future__ import annotations

from typing import Any

from app.kernel.format.errors import HeadwaterError


class IdempotencyMismatch(HeadwaterError):
    """The Idempotency-Key was used before with another payload. Facts: what that request made, where it has an id."""

    code = "idempotency-mismatch"
    title = "The Idempotency-Key belongs to another request"

    def __init__(self, detail: str | None = None, **facts: Any) -> None:
        default_detail = (
            "this Idempotency-Key was sent with another request before; send a new key with a new request"
        )
        super().__init__(detail or default_detail, **facts)
