"""The HTTP statuses of the errors of savepoints, tags and rollbacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.features.versions.errors import NameTaken, NotEnoughWrites
from app.kernel.format.errors import HeadwaterError

PROBLEMS: Final[Mapping[type[HeadwaterError], int]] = {
    NotEnoughWrites: 409,
    NameTaken: 409,
}
