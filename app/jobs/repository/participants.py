"""What other rooms do in the transactions of jobs."""

from __future__ import annotations

from typing import Protocol

from sqlalchemy import Connection

from app.format.errors import Fault
from app.jobs.values import JobKind


class FailureParticipant(Protocol):
    """Takes part in the transaction in which jobs fail. `JobStore` calls the participants in order."""

    def job_failed(self, connection: Connection, job_id: str, kind: JobKind, fault: Fault) -> None:
        """Called once for each job, after the job has ended. The job's row is locked."""
        ...
