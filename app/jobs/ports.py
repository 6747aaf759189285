"""Interfaces of jobs to storage. Every port has one test suite, run on each implementation.

The tenant is the first argument of everything that touches a tenant's data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from app.format.errors import Fault, HeadwaterError
from app.jobs.values import (
    Accepted,
    Claim,
    ClaimRules,
    Job,
    JobFilter,
    JobQueue,
    NewJob,
    Progress,
    RunnableDataset,
)
from app.paging import Page


class Jobs(Protocol):
    """Jobs, claims and leases (the clock is the database's)."""

    def accept(self, tenant_id: str, new: NewJob) -> Accepted:
        """One transaction: job QUEUED, instant REQUESTED, idempotency key or batch, outbox row.

        A key or batch that is known returns its job, unless that failed for a reason of the service's own (then the new
        job takes it over). Raises IdempotencyMismatch, BatchOutOfOrder, NotFound (dataset gone).
        """
        ...

    def accept_all(self, tenant_id: str, new: Sequence[NewJob]) -> list[Accepted | HeadwaterError]:
        """`accept` of several jobs in one transaction: one outcome per job, in order; a refused job does not affect
        others.
        """
        ...

    def get(self, tenant_id: str, job_id: str) -> Job:
        """Raises NotFound."""
        ...

    def find(self, tenant_id: str, job_ids: Sequence[str]) -> list[Job]:
        """The jobs with these ids that exist, in any order."""
        ...

    def page(self, tenant_id: str, wanted: JobFilter, *, page_size: int, page_token: str | None) -> Page:
        """Jobs, the newest first. Raises InvalidRequest for a token that is not valid."""
        ...

    def find_by_key(
        self, tenant_id: str, dataset_id: str, idempotency_key: str, request_hash: str
    ) -> Job | None:
        """The job that `accept` would replay. Raises IdempotencyMismatch."""
        ...

    def find_by_batch(self, tenant_id: str, dataset_id: str, writer_id: str, batch_id: int) -> Job | None:
        """The job that `accept` would replay. Raises BatchOutOfOrder."""
        ...

    def cancel(self, tenant_id: str, job_id: str) -> Job:
        """Ends a queued or running job, and with it the others of its transaction.

        A running commit either comes first or is fenced. Raises JobNotCancellable.
        """
        ...

    def claim(self, tenant_id: str, dataset_id: str, owner: str, rules: ClaimRules) -> list[Job]:
        """Claims the dataset's waiting writes, oldest first, as one group: epoch + 1, lease, instants INFLIGHT.

        Empty if none waits or `dataset_writers_max` groups hold live leases. A job whose attempt died before (its
        lease ran out) is claimed alone, so that it cannot take others down; one out of attempts is failed with
        `attempts-exhausted` instead. Writes of a transaction are claimed together, one of each of its datasets, once
        they are next in all of them and nothing runs in any.
        """
        ...

    def claim_task(self, tenant_id: str, dataset_id: str, owner: str, rules: ClaimRules) -> Job | None:
        """Claims the dataset's oldest waiting task; None if there is none. Tasks run beside writes, each by itself."""
        ...

    def succeed(self, tenant_id: str, claim: Claim, result: dict[str, Any]) -> bool:
        """Ends a claimed task with its result. False if the claim is void."""
        ...

    def heartbeat(
        self, tenant_id: str, claims: Sequence[Claim], *, lease_seconds: float, progress: Progress
    ) -> set[str]:
        """Extends the leases of the claims that still hold and returns their job ids."""
        ...

    def fail(self, tenant_id: str, claim: Claim, fault: Fault) -> bool:
        """Ends a claimed job, and with it the others of its transaction. False if the claim is void."""
        ...

    def release(self, tenant_id: str, claims: Sequence[Claim]) -> None:
        """Puts claimed jobs back into the queue after a fault; attempts stay counted. Each is then claimed alone."""
        ...

    def runnable(self, limit: int, queue: JobQueue = JobQueue.WRITES) -> list[RunnableDataset]:
        """Datasets of every tenant with claimable jobs in the queue, longest waiting first. Holds ids only."""
        ...
