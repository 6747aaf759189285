"""The HTTP statuses of the errors of bad records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.features.quarantine.errors import AlreadyRedriven
from app.kernel.format.errors import HeadwaterError

PROBLEMS: Final[Mapping[type[HeadwaterError], int]] = {
    AlreadyRedriven: 409,
}
