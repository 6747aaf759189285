"""The HTTP statuses of the errors of an Idempotency-Key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.core.idempotency.errors import IdempotencyMismatch
from app.kernel.format.errors import HeadwaterError

PROBLEMS: Final[Mapping[type[HeadwaterError], int]] = {
    IdempotencyMismatch: 422,
}
