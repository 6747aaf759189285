"""The HTTP statuses of the errors of exports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.features.exports.errors import ExportEnded
from app.kernel.format.errors import HeadwaterError

PROBLEMS: Final[Mapping[type[HeadwaterError], int]] = {
    ExportEnded: 409,
}
