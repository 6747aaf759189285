"""The HTTP statuses of the errors of sharing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.features.sharing.errors import InvalidShare, RecipientExists, RecipientExpired, ShareExists
from app.kernel.format.errors import HeadwaterError

PROBLEMS: Final[Mapping[type[HeadwaterError], int]] = {
    InvalidShare: 422,
    ShareExists: 409,
    RecipientExists: 409,
    RecipientExpired: 409,
}
