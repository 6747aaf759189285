"""Jobs that policies start: one of a kind at a time for a dataset, with growing pauses while they fail."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

import msgspec
from msgspec import structs

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.feature.reconcilers import Observation
from app.core.jobs.kinds.clean import CleanTask
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.kinds.rewrite import ClusteringTask, CompactionTask
from app.core.jobs.values import Accepted, Job, JobState

ServiceTask = CompactionTask | ClusteringTask | CleanTask

# A job that makes no version ends without an event, so its state is polled.
_UNDER_WAY_SECONDS: Final = 5.0
_AFTER_A_FAILURE_SECONDS: Final = 30.0
_AFTER_A_FAILURE_SECONDS_MAX: Final = 3_600.0


class StartsServices(Protocol):
    """Accepts tasks of table services."""

    def start(
        self, dataset: Dataset, task: ServiceTask, idempotency_key: str | None, actor: str | None
    ) -> Accepted:
        """Raises NotFound (dataset gone)."""
        ...


class ServiceJobs(Protocol):
    """The state of jobs."""

    def get(self, tenant_id: str, job_id: str) -> Job:
        """Raises NotFound."""
        ...

    def is_under_way(self, tenant_id: str, dataset_id: str, kind: JobKind) -> bool:
        """Whether a job of the kind waits or runs for the dataset."""
        ...


class Attempts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A policy's state of its jobs: the one that runs, the number of failures in a row, and the end of the pause after
    a failure.
    """

    job_id: str | None = None
    failures: int = 0
    not_before: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyJobs:
    """Starts the jobs of policies."""

    services: StartsServices
    jobs: ServiceJobs

    def ended(self, observation: Observation, attempts: Attempts) -> tuple[Attempts, bool | None]:
        """The new state, and whether the last job has succeeded; None if none has ended."""
        if attempts.job_id is None:
            return attempts, None
        try:
            state = self.jobs.get(observation.dataset.tenant_id, attempts.job_id).state
        except NotFound:
            state = JobState.SUCCEEDED
        if not state.final:
            return attempts, None
        if state is JobState.SUCCEEDED:
            return Attempts(), True
        pause = min(
            _AFTER_A_FAILURE_SECONDS * 2.0 ** min(attempts.failures, 16), _AFTER_A_FAILURE_SECONDS_MAX
        )
        not_before = observation.now + timedelta(seconds=pause)
        return Attempts(failures=attempts.failures + 1, not_before=not_before), False

    def pause(self, observation: Observation, kind: JobKind, attempts: Attempts) -> float | None:
        """How many seconds to wait before a job of the kind may be started; None if it may be now."""
        if attempts.not_before is not None and attempts.not_before > observation.now:
            return (attempts.not_before - observation.now).total_seconds()
        if self.jobs.is_under_way(observation.dataset.tenant_id, observation.dataset.id, kind):
            return _UNDER_WAY_SECONDS
        return None

    def start(
        self, observation: Observation, task: ServiceTask, attempts: Attempts
    ) -> tuple[Attempts, float]:
        """Starts a job; returns the new state, and after how many seconds to poll the job.

        Raises NotFound (dataset gone).
        """
        accepted = self.services.start(observation.dataset, task, None, None)
        return structs.replace(attempts, job_id=accepted.job.id, not_before=None), _UNDER_WAY_SECONDS
