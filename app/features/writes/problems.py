"""The HTTP statuses of the errors of writes and uploads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.features.writes.errors import (
    AggregateOverflow,
    DuplicateKey,
    LinksUnavailable,
    RetractedRowMissing,
    UploadIncomplete,
)
from app.kernel.format.errors import HeadwaterError

PROBLEMS: Final[Mapping[type[HeadwaterError], int]] = {
    DuplicateKey: 422,
    AggregateOverflow: 422,
    RetractedRowMissing: 422,
    LinksUnavailable: 409,
    UploadIncomplete: 409,
}
