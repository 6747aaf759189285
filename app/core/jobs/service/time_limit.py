"""The time limit of an attempt at a job: what the engine still runs for it then is cancelled, and the job fails."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final, Self

from app.core.jobs.errors import EngineStopped, TimeLimitExceeded

ADVICE_OF_READING: Final = "read less at a time, or ask the operator for a higher HEADWATER_JOB_SECONDS_MAX"
ADVICE_OF_WRITING: Final = (
    "send the rows as several writes, or ask the operator for a higher HEADWATER_WRITE_SECONDS_MAX"
)


class TimeLimit(AbstractContextManager["TimeLimit"]):
    """Calls `cancel` after some seconds. If that ended the block, TimeLimitExceeded is raised.

    A block that ends by itself keeps its result, even if the limit has passed by then. `seconds`: None for no limit.
    `advice`: what the user can do, and the setting of the limit.
    """

    def __init__(
        self, seconds: float | None, cancel: Callable[[], None], *, advice: str = ADVICE_OF_READING
    ) -> None:
        self._seconds = seconds
        self._advice = advice
        self._cancel = cancel
        self._passed = threading.Event()
        self._timer = None if seconds is None else threading.Timer(seconds, self._pass)

    def __enter__(self) -> Self:
        if self._timer is not None:
            self._timer.name, self._timer.daemon = "time-limit", True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer.join()
        if self._passed.is_set() and isinstance(error, EngineStopped):
            raise TimeLimitExceeded(
                f"the job was stopped after {self._seconds:g} seconds, the limit for one job: {self._advice}",
                limit_seconds=self._seconds,
            ) from error

    def _pass(self) -> None:
        self._passed.set()
        self._cancel()
