"""The HTTP statuses of the errors of what has expired."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.core.timeline.errors import OffsetExpired, VersionExpired
from app.kernel.format.errors import HeadwaterError

PROBLEMS: Final[Mapping[type[HeadwaterError], int]] = {
    OffsetExpired: 410,
    VersionExpired: 410,
}
