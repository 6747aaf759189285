"""Jobs that have ended in this process, for those that report them elsewhere."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from app.core.jobs.values import Job

WAITING_MAX: Final = 10_000
"""The most jobs that wait to be reported; of more, the earliest are left out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EndOfJob:
    """A job that has ended."""

    tenant_id: str
    job_id: str


class JobEnds:
    """The ends of jobs since they were last taken. Nothing waits unless something takes them. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[EndOfJob] | None = None
        self._lost = 0

    def start(self) -> None:
        """Keeps ends from now on."""
        with self._lock:
            self._waiting = deque(maxlen=WAITING_MAX)

    def add(self, jobs: Iterable[Job]) -> None:
        """Notes jobs that have ended just now."""
        if self._waiting is None:
            return
        with self._lock:
            for job in jobs:
                self._lost += len(self._waiting) == WAITING_MAX
                self._waiting.append(EndOfJob(tenant_id=job.tenant_id, job_id=job.id))

    def take(self, limit: int) -> tuple[list[EndOfJob], int]:
        """Up to `limit` ends, the earliest first, and how many were left out since the last call."""
        with self._lock:
            waiting = self._waiting or deque()
            lost, self._lost = self._lost, 0
            return [waiting.popleft() for _ in range(min(limit, len(waiting)))], lost


ENDS: Final = JobEnds()
"""Those of this process."""
