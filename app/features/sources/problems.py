"""The HTTP statuses of the errors of sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.features.sources.errors import InvalidSource, SourceEmpty, SourceExists
from app.kernel.format.errors import HeadwaterError

PROBLEMS: Final[Mapping[type[HeadwaterError], int]] = {
    InvalidSource: 422,
    SourceExists: 409,
    SourceEmpty: 409,
}
