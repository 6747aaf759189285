"""The HTTP statuses of the errors of reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.features.reads.errors import JobNotFinished, NoCommits, ResultExpired, RowNotFound, ScanTooLarge
from app.infra.files.errors import OrderTooLarge
from app.kernel.format.errors import HeadwaterError

PROBLEMS: Final[Mapping[type[HeadwaterError], int]] = {
    RowNotFound: 404,
    ScanTooLarge: 409,
    OrderTooLarge: 409,
    JobNotFinished: 409,
    ResultExpired: 410,
    NoCommits: 409,
}
