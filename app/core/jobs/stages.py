"""What the stages of work at jobs take."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

from app.core.jobs.ends import ENDS
from app.core.jobs.values import Job, JobState
from app.infra.instruments import FINISHED, STAGES

_MILLISECONDS: Final = 1_000


class Stages:
    """The times of one attempt at jobs, by stage. Used by one thread."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Adds what is done in the context to the stage, also if it raises."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - began)

    def add(self, name: str, seconds: float) -> None:
        """Adds to a stage."""
        self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    def milliseconds(self) -> dict[str, int]:
        """The stages so far, in whole milliseconds."""
        return {name: round(seconds * _MILLISECONDS) for name, seconds in self._seconds.items()}

    def observe(self, jobs: Collection[Job], state: JobState) -> None:
        """Counts jobs that have ended just now in the metrics of this process, and notes their ends."""
        now = datetime.now(UTC)
        ENDS.add(jobs)
        for job in jobs:
            kind = job.kind.value
            FINISHED.labels(kind, state.value).inc()
            waits = {} if job.started_at is None else {"wait": _seconds(job.created_at, job.started_at)}
            for stage, seconds in {**self._seconds, **waits, "total": _seconds(job.created_at, now)}.items():
                STAGES.labels(stage, kind).observe(seconds)


def _seconds(began: datetime, ended: datetime) -> float:
    # The clocks of the database and of this process may differ.
    return max(0.0, (ended - began).total_seconds())


def timings(job: Job) -> dict[str, int]:
    """What the stages of a job took in milliseconds, as far as it is known."""
    times = dict(job.timings or {})
    if job.started_at is not None:
        times["wait"] = round(_seconds(job.created_at, job.started_at) * _MILLISECONDS)
    if job.finished_at is not None:
        times["total"] = round(_seconds(job.created_at, job.finished_at) * _MILLISECONDS)
    return times
