"""Accepts jobs that read a version, or the changes after one: these are kept from the acceptance of the job to its
end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from app.core.catalog.values import Dataset
from app.core.jobs.kinds.declared import JobRequest
from app.core.jobs.service.request_job import RequestIdentity, RequestJob
from app.core.jobs.values import Accepted
from app.core.timeline.repository.kept_versions import OF_JOB
from app.core.timeline.repository.read_leases import ReadLeaseStore
from app.infra.identifiers import new_id

# A job that has not ended by then may find its version expired.
_SECONDS: Final = 24 * 3600.0


@contextmanager
def lease_for_job(leases: ReadLeaseStore, dataset: Dataset, version: int, job_id: str) -> Iterator[None]:
    """Keeps a version from before a job is accepted to the end of the job, if it is accepted in this context.

    Raises VersionExpired, NotFound (dataset gone).
    """
    reader = f"{OF_JOB}{job_id}"
    try:
        leases.acquire(dataset.tenant_id, dataset.id, version, reader, _SECONDS)
        yield
    except BaseException:
        leases.release(dataset.tenant_id, dataset.id, reader)
        raise


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceptPinned:
    """Leases what a job reads before it accepts the job. The lease ends with the job."""

    requests: RequestJob
    leases: ReadLeaseStore

    def accept(
        self,
        dataset: Dataset,
        version: int,
        request: JobRequest,
        identity: RequestIdentity,
        *,
        feed: bool = False,
    ) -> Accepted:
        """A job that reads the version; with `feed`, also the changes after it.

        Raises VersionExpired, OffsetExpired, IdempotencyMismatch, NotFound (dataset gone).
        """
        leases = (self.leases.acquire, self.leases.acquire_feed) if feed else (self.leases.acquire,)
        return self._accept(leases, dataset, version, request, identity)

    def accept_changes(
        self, dataset: Dataset, begin: int, request: JobRequest, identity: RequestIdentity
    ) -> Accepted:
        """A job that reads the feed after version `begin`. Raises OffsetExpired, IdempotencyMismatch, NotFound."""
        return self._accept((self.leases.acquire_feed,), dataset, begin, request, identity)

    def _accept(
        self,
        leases: Sequence[Callable[[str, str, int, str, float], None]],
        dataset: Dataset,
        version: int,
        request: JobRequest,
        identity: RequestIdentity,
    ) -> Accepted:
        job_id = new_id()
        reader = f"{OF_JOB}{job_id}"
        in_use = False
        try:
            for acquire in leases:
                acquire(dataset.tenant_id, dataset.id, version, reader, _SECONDS)
            outcome = self.requests.accept(dataset, request, identity, job_id=job_id)
            in_use = not outcome.is_replay
        finally:
            if not in_use:
                self.leases.release(dataset.tenant_id, dataset.id, reader)
        return outcome
