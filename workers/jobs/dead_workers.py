"""Ends the claims of workers that have ended, so that their work does not wait for their leases."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.core.jobs.values import WorkerEnd
from app.infra.errors import Unavailable

_log = logging.getLogger(__name__)


class JobClaims(Protocol):
    """Claims of jobs, which a heartbeat extends."""

    def end_claims(self, owner: str, end: WorkerEnd) -> None:
        """Frees the jobs that a process holds."""
        ...


class Claims(Protocol):
    """Claims without a heartbeat."""

    def end_claims(self, owner: str) -> None:
        """Frees what a worker holds."""
        ...


class Workers(Protocol):
    """Signs of life of workers."""

    def ended(self, worker_id: str) -> None:
        """Removes a worker."""
        ...

    def silent(self, seconds: float) -> Sequence[str]:
        """The workers that have not polled for that time."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadWorkers:
    """The claims of other workers. Safety does not depend on it: a claim that was ended too early is fenced.

    `others`: the claims of followers, table services and sources. `announce` is called when claims have ended. Read
    leases are not ended: they name a job and no worker, they delay the removal of files by `HEADWATER_LEASE_SECONDS`
    at most, and a worker that is only silent may still read them.
    """

    jobs: JobClaims
    others: Sequence[Claims]
    workers: Workers
    announce: Callable[[], None]

    def died(self, worker_id: str, end: WorkerEnd = WorkerEnd.DIED) -> None:
        """Ends all claims of a process that is known to be dead. Raises Unavailable."""
        _log.warning("the process %s has ended (%s); its claims end", worker_id, end.value)
        self.jobs.end_claims(worker_id, end)
        self._end(worker_id)

    def stopped(self, worker_id: str) -> None:
        """Hands over all claims of a worker that stops in order. If the database is away, its leases run out."""
        try:
            self.jobs.end_claims(worker_id, WorkerEnd.STOPPED)
            self._end(worker_id)
        except Unavailable:
            _log.warning("could not hand over the claims of this worker: the database is out of reach")

    def end_silent(self, seconds: float) -> None:
        """Ends the claims that have no heartbeat of processes that have not polled for that time."""
        for worker_id in self.workers.silent(seconds):
            _log.warning(
                "the process %s is silent; its followers, table services and sources are taken over",
                worker_id,
            )
            self._end(worker_id)

    def _end(self, worker_id: str) -> None:
        for claims in self.others:
            claims.end_claims(worker_id)
        self.workers.ended(worker_id)
        self.announce()
