"""The time slice of an attempt at a job: what runs longer makes room for others, and runs again as a slow job."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final, Self

from app.core.jobs.errors import EngineStopped

_STEP_SECONDS: Final = 1.0


class SliceUsed(Exception):
    """An attempt has used up its time slice, and was stopped."""


class TimeSlice(AbstractContextManager["TimeSlice"]):
    """Calls `cancel` once the block has run for some seconds. If that ended the block, SliceUsed is raised.

    `seconds`: None for no bound. `waits`: whether the work waits for a core now, which does not count; it is called
    every `step_seconds`.
    """

    def __init__(
        self,
        seconds: float | None,
        cancel: Callable[[], None],
        *,
        waits: Callable[[], bool],
        step_seconds: float = _STEP_SECONDS,
    ) -> None:
        self._seconds = seconds
        self._cancel = cancel
        self._waits = waits
        self._step_seconds = step_seconds
        self._end = threading.Event()
        self._used = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._seconds is not None:
            self._thread = threading.Thread(
                target=self._count, args=(self._seconds,), name="time-slice", daemon=True
            )
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is None:
            return
        self._end.set()
        self._thread.join()
        if self._used.is_set() and isinstance(error, EngineStopped):
            raise SliceUsed from error

    def _count(self, seconds: float) -> None:
        """Waits until the block has run for its slice, unless it ends before."""
        run_seconds = 0.0
        while run_seconds < seconds:
            step = min(self._step_seconds, seconds - run_seconds)
            if self._end.wait(step):
                return
            if not self._waits():
                run_seconds += step
        self._used.set()
        self._cancel()
