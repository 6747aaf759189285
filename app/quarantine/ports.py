"""What the use cases need of the world. Every port has one test suite, run on each implementation.

The tenant is the first argument of everything that touches a tenant's data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from app.jobs.values import Accepted, NewJob
from app.quarantine.values import QuarantinePart, RecordRange


class QuarantineIndex(Protocol):
    """Which records of a dataset are in quarantine, and which of them were driven again."""

    def parts(
        self, tenant_id: str, dataset_id: str, job_id: str | None, after: tuple[int, int] | None, limit: int
    ) -> list[QuarantinePart]:
        """Up to `limit` records in their order, from the one after `after` (file number, row); of one job, or all."""
        ...

    def named(
        self, tenant_id: str, dataset_id: str, records: Mapping[int, Sequence[int]]
    ) -> list[QuarantinePart]:
        """The files with these numbers, whole, and what is known of the records named of each."""
        ...

    def redrive(self, tenant_id: str, new: NewJob, records: Sequence[RecordRange]) -> Accepted:
        """One transaction: accepts the job and marks the records as driven again by it.

        Raises AlreadyRedriven if another job has some of them, or they are gone; IdempotencyMismatch, NotFound.
        """
        ...

    def discard(self, tenant_id: str, dataset_id: str, job_id: str) -> int:
        """Forgets the bad records of a job, driven again or not; returns how many they were."""
        ...
