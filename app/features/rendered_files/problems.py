"""The HTTP statuses of the errors of rendered files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.features.rendered_files.errors import RenderingFailed, RenderingUnderWay
from app.kernel.format.errors import HeadwaterError

PROBLEMS: Final[Mapping[type[HeadwaterError], int]] = {
    RenderingUnderWay: 503,
    RenderingFailed: 500,
}
