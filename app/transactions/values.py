"""Values of transactions that the use cases and their ports exchange."""

from __future__ import annotations

from datetime import datetime

import msgspec

from app.format.errors import Fault, TransactionFailed
from app.jobs.values import Job, JobState, NewJob


class NewTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """Writes to several datasets to accept, all or none. Its jobs have no idempotency keys of their own."""

    id: str
    jobs: tuple[NewJob, ...]
    idempotency_key: str | None = None
    request_hash: str = ""


class Transaction(msgspec.Struct, frozen=True, kw_only=True):
    """Writes to several datasets that happen together or not at all; `jobs` in the order of the request."""

    id: str
    jobs: tuple[Job, ...]
    created_at: datetime

    @property
    def state(self) -> JobState:
        """What all its jobs have in common. They end together, so this is the state of any once one has ended."""
        states = {job.state for job in self.jobs}
        order = (JobState.FAILED, JobState.CANCELLED, JobState.SUCCEEDED, JobState.RUNNING)
        return next((state for state in order if state in states), JobState.QUEUED)

    @property
    def failed_job(self) -> Job | None:
        """The one that failed by itself, and failed the others."""
        failed = [job for job in self.jobs if job.error and job.error.code != TransactionFailed.code]
        return failed[0] if failed else None

    @property
    def error(self) -> Fault | None:
        """What made the guilty one fail."""
        return None if self.failed_job is None else self.failed_job.error


class AcceptedTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """The transaction of a request; `replayed` if an earlier request with the same idempotency key made it."""

    transaction: Transaction
    replayed: bool
