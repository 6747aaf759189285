"""The HTTP statuses of the errors of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.core.jobs.errors import (
    AttemptsExhausted,
    BatchMismatch,
    BatchOutOfOrder,
    JobCancelled,
    JobNotCancellable,
    ProcessKilled,
    TimeLimitExceeded,
    TransactionFailed,
)
from app.kernel.format.errors import HeadwaterError

PROBLEMS: Final[Mapping[type[HeadwaterError], int]] = {
    BatchOutOfOrder: 409,
    BatchMismatch: 422,
    TransactionFailed: 409,
    JobNotCancellable: 409,
    AttemptsExhausted: 500,
    ProcessKilled: 422,
    TimeLimitExceeded: 422,
    JobCancelled: 409,
}
