"""Accepts jobs that read a version: the version is kept from the acceptance of the job to its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.catalog.values import Dataset
from app.format.identifiers import new_id
from app.jobs.service.request_job import RequestIdentity, RequestJob
from app.jobs.values import Accepted, JobRequest
from app.timeline.ports import ReadLeases
from app.timeline.repository.kept_versions import OF_JOB

# A job that has not ended by then may find its version expired.
_SECONDS: Final = 24 * 3600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceptPinned:
    """Leases the version that a job reads before it accepts the job. The lease ends with the job."""

    requests: RequestJob
    leases: ReadLeases

    def accept(
        self, dataset: Dataset, version: int, request: JobRequest, identity: RequestIdentity
    ) -> Accepted:
        """Raises VersionExpired, IdempotencyMismatch, NotFound (dataset gone)."""
        job_id = new_id()
        reader = f"{OF_JOB}{job_id}"
        self.leases.acquire(dataset.tenant_id, dataset.id, version, reader, _SECONDS)
        used = False
        try:
            accepted = self.requests.accept(dataset, request, identity, job_id=job_id)
            used = not accepted.replayed
        finally:
            if not used:
                self.leases.release(dataset.tenant_id, dataset.id, reader)
        return accepted
