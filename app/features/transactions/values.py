"""Values of transactions that the use cases and their ports exchange."""

from __future__ import annotations

from datetime import datetime

import msgspec

from app.core.jobs.errors import TransactionFailed
from app.core.jobs.values import Job, JobState, NewJob
from app.kernel.format.errors import Fault


class NewTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """Writes to several datasets to accept, all or none. Its jobs have no idempotency keys of their own."""

    id: str
    jobs: tuple[NewJob, ...]
    idempotency_key: str | None = None
    request_hash: str = ""


class Transaction(msgspec.Struct, frozen=True, kw_only=True):
    """Writes to several datasets, all or nothing. `jobs`: in the order of the request."""

    id: str
    jobs: tuple[Job, ...]
    created_at: datetime

    @property
    def state(self) -> JobState:
        """The common state of its jobs. They end together, so once one has ended it is the state of each."""
        states = {job.state for job in self.jobs}
        order = (JobState.FAILED, JobState.CANCELLED, JobState.SUCCEEDED, JobState.RUNNING)
        return next((state for state in order if state in states), JobState.QUEUED)

    @property
    def failed_job(self) -> Job | None:
        """The job that failed first, and with it the others."""
        causes = [job for job in self.jobs if job.error and job.error.code != TransactionFailed.code]
        return causes[0] if causes else None

    @property
    def error(self) -> Fault | None:
        """The fault of the failed job."""
        return None if self.failed_job is None else self.failed_job.error


class AcceptedTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """The transaction of a request; `is_replay` if an earlier request with the same idempotency key made it."""

    transaction: Transaction
    is_replay: bool
