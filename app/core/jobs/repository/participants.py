"""What other rooms do in the transactions of jobs."""

from __future__ import annotations

from typing import Protocol

from sqlalchemy import Connection

from app.core.jobs.kinds.kind import JobKind
from app.kernel.format.errors import Fault


class FailureParticipant(Protocol):
    """Takes part in the transactions in which jobs fail or are cancelled. `JobStore` calls them in order."""

    def job_failed(self, connection: Connection, job_id: str, kind: JobKind, fault: Fault) -> None:
        """Called once for each job, after the job has ended. The job's row is locked."""
        ...

    def job_cancelled(self, connection: Connection, job_id: str, kind: JobKind) -> None:
        """Called once for each job that a request has cancelled, but not for those that end with their dataset."""
        ...
