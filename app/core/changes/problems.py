"""The HTTP statuses of the errors of the feed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.core.changes.errors import NoFeed, OffsetAhead
from app.kernel.format.errors import HeadwaterError

PROBLEMS: Final[Mapping[type[HeadwaterError], int]] = {
    OffsetAhead: 409,
    NoFeed: 422,
}
