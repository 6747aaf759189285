"""The reconciler of the policy of any table service: starts its jobs when they are due.

One job of a kind runs at a time for a dataset, and pauses grow while they fail.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

import msgspec
from msgspec import structs

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.feature.reconcilers import Observation, ReconcileResult
from app.core.jobs.kinds.declared import TableServiceTask
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.values import Accepted, Job, JobState
from app.features.maintenance.service.table_service import Measured, TableService

# A job that makes no version ends without an event, so its state is polled.
_UNDER_WAY_SECONDS: Final = 5.0
_AFTER_A_FAILURE_SECONDS: Final = 30.0
_AFTER_A_FAILURE_SECONDS_MAX: Final = 3_600.0


class StartsTableServices(Protocol):
    """Accepts tasks of table services."""

    def start(
        self, dataset: Dataset, task: TableServiceTask, idempotency_key: str | None, actor: str | None
    ) -> Accepted:
        """Raises NotFound (dataset gone)."""
        ...


class TableServiceJobs(Protocol):
    """The state of jobs."""

    def get(self, tenant_id: str, job_id: str) -> Job:
        """Raises NotFound."""
        ...

    def is_under_way(self, tenant_id: str, dataset_id: str, kind: JobKind) -> bool:
        """Whether a job of the kind waits or runs for the dataset."""
        ...


class _Attempts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The job that runs, the number of failures in a row, and the end of the pause after a failure."""

    job_id: str | None = None
    failures: int = 0
    not_before: datetime | None = None


class _State(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`then`: what is measured once the last job has succeeded. `next_at`: when all is measured again."""

    policy: Any = None
    measured: Measured = msgspec.field(name="place", default=Measured())
    then: Measured | None = None
    next_at: datetime | None = None
    attempts: _Attempts = _Attempts()


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyReconciler:
    """The reconciler of one service. What has been measured is measured again only when it was written to."""

    service: TableService[Any]
    requests: StartsTableServices
    jobs: TableServiceJobs

    def reconcile(self, observation: Observation) -> ReconcileResult:
        """Starts a job if the policy requires one and none runs. See `Reconciler`."""
        policy = self.service.policy(observation.dataset.definition.services)
        if policy is None:
            return ReconcileResult()
        state = msgspec.convert(observation.memory, _State, strict=False)
        stored_policy = msgspec.to_builtins(policy)
        if state.policy != stored_policy:
            # What was not due under the earlier policy may be due under this one.
            state = _State(policy=stored_policy, attempts=state.attempts)
        state, wake_after_seconds = self._next(observation, self._end(observation, state))
        return ReconcileResult(memory=msgspec.to_builtins(state), wake_after_seconds=wake_after_seconds)

    def _next(self, observation: Observation, state: _State) -> tuple[_State, float | None]:
        """Starts the next job if one is due. Returns the state, and after how many seconds to run again."""
        pause = self._pause(observation, state.attempts)
        if pause is not None:
            return state, pause
        if state.next_at is not None and state.next_at <= observation.now:
            state = structs.replace(state, measured=Measured(), next_at=None)
        due = self.service.due(observation, state.measured)
        next_at = min((at for at in (state.next_at, due.next_at) if at is not None), default=None)
        if due.task is not None:
            accepted = self.requests.start(observation.dataset, due.task, None, None)
            attempts = structs.replace(state.attempts, job_id=accepted.job.id, not_before=None)
            started = structs.replace(state, then=due.measured, next_at=next_at, attempts=attempts)
            return started, _UNDER_WAY_SECONDS
        state = structs.replace(state, measured=due.measured, next_at=next_at)
        if due.measured.after is not None or due.measured.since < observation.dataset.version:
            return state, 0.0
        return state, None if next_at is None else max(0.0, (next_at - observation.now).total_seconds())

    def _pause(self, observation: Observation, attempts: _Attempts) -> float | None:
        """How many seconds to wait before a job may be started; None if it may be now."""
        if attempts.not_before is not None and attempts.not_before > observation.now:
            return (attempts.not_before - observation.now).total_seconds()
        dataset = observation.dataset
        if self.jobs.is_under_way(dataset.tenant_id, dataset.id, self.service.kind.name):
            return _UNDER_WAY_SECONDS
        return None

    def _end(self, observation: Observation, state: _State) -> _State:
        """Advances if the last job has succeeded. What a failed job was for is measured again."""
        job_state = self._ended(observation, state.attempts)
        if job_state is None:
            return state
        if job_state is JobState.SUCCEEDED:
            return structs.replace(
                state, measured=state.then or state.measured, then=None, attempts=_Attempts()
            )
        failures = state.attempts.failures
        pause = min(_AFTER_A_FAILURE_SECONDS * 2.0 ** min(failures, 16), _AFTER_A_FAILURE_SECONDS_MAX)
        not_before = observation.now + timedelta(seconds=pause)
        return structs.replace(
            state, then=None, attempts=_Attempts(failures=failures + 1, not_before=not_before)
        )

    def _ended(self, observation: Observation, attempts: _Attempts) -> JobState | None:
        """The state in which the last job has ended; None if none has."""
        if attempts.job_id is None:
            return None
        try:
            state = self.jobs.get(observation.dataset.tenant_id, attempts.job_id).state
        except NotFound:
            return JobState.SUCCEEDED
        return state if state.final else None
