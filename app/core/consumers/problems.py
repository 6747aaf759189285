"""The HTTP statuses of the errors of positions in feeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.core.consumers.errors import ConsumerLeased, ConsumerManaged, LeaseLost
from app.kernel.format.errors import HeadwaterError

PROBLEMS: Final[Mapping[type[HeadwaterError], int]] = {
    ConsumerLeased: 409,
    LeaseLost: 409,
    ConsumerManaged: 409,
}
