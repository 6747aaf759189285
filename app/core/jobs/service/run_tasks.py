"""Runs tasks: jobs in a queue of their own, beside the writes of their dataset."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from app.core.jobs.engine import TaskProgress, engine_tag
from app.core.jobs.errors import EngineStopped
from app.core.jobs.kinds.declared import KINDS
from app.core.jobs.kinds.kind import JobDeclaration, JobKind
from app.core.jobs.repository.jobs import JobStore
from app.core.jobs.service.give_back import fault_of_imports, give_back
from app.core.jobs.service.lease import LeaseHeartbeat
from app.core.jobs.service.time_limit import TimeLimit
from app.core.jobs.stages import Stages
from app.core.jobs.values import ClaimRules, Job, JobState, Progress
from app.infra.files.errors import without_path
from app.kernel.format.errors import Fault, HeadwaterError

_log = logging.getLogger(__name__)
_Request = TypeVar("_Request", contravariant=True)
_Task = TypeVar("_Task")


class TaskHandler(Protocol[_Request]):
    """Runs the tasks of one kind."""

    def run(self, job: Job, task: _Request, tag: str) -> None:
        """Runs a claimed task under the engine's tag, and ends the job with its result. `task`: the job's request.

        Raises HeadwaterError if the task fails. A task must be repeatable: it runs again if its worker dies.
        """
        ...


TaskHandlers: TypeAlias = Mapping[JobKind, TaskHandler[Any]]
"""The handlers of a feature, by the kinds of tasks that they run."""


def handled(kind: JobDeclaration[_Task, Any], handler: TaskHandler[_Task]) -> TaskHandlers:
    """The registration of a handler: it takes what the kind declares as its request."""
    return {kind.name: handler}


@dataclass(frozen=True, kw_only=True, slots=True)
class RunTasks:
    """The worker's use case. `owner` names this worker process; `announce` is called when a job has ended.

    `seconds_max`: the time limit of a tenant's job in seconds, for the kinds whose time is limited.
    """

    jobs: JobStore
    handlers: TaskHandlers
    engine: TaskProgress
    announce: Callable[[], None]
    owner: str
    rules: ClaimRules
    heartbeat_seconds: float
    seconds_max: Callable[[str], float]

    def run(self, tenant_id: str, dataset_id: str) -> bool:
        """Claims and runs one task of the dataset; False if there was none to claim."""
        job = self.jobs.claim_task(tenant_id, dataset_id, self.owner, self.rules)
        if job is None:
            return False
        tag = engine_tag(job)
        try:
            with (
                TimeLimit(
                    self.seconds_max(tenant_id) if KINDS[job.kind].time_limited else None,
                    lambda: self.engine.cancel(tag),
                ),
                LeaseHeartbeat(
                    self.jobs,
                    tenant_id,
                    [job.claim],
                    lease_seconds=self.rules.lease_seconds,
                    heartbeat_seconds=self.heartbeat_seconds,
                    progress=lambda: self._progress(job, tag),
                    on_loss=lambda: self.engine.cancel(tag),
                ),
            ):
                # By the request, and not by the column: so a handler always gets its own type.
                self.handlers[job.request.kind].run(job, job.request, tag)
            Stages().observe([job], JobState.SUCCEEDED)
        except EngineStopped:
            _log.info("task %s was stopped: it is no longer ours", tag)
        except Exception as error:
            if not give_back(self.jobs, tenant_id, [job.claim], error):
                self._end(job, error)
        finally:
            self.announce()
        return True

    def _progress(self, job: Job, tag: str) -> Progress:
        ended_tasks, total = self.engine.progress(tag)
        return Progress(stage=job.kind.value, done=ended_tasks, total=total)

    def _end(self, job: Job, error: Exception) -> None:
        """Fails the task. Raises an unexpected error."""
        if (missing := fault_of_imports(error)) is not None:
            _log.error("a module is missing for task %s", job.id, exc_info=error)
            error = missing
        if isinstance(error, HeadwaterError):
            if job.access is not None and job.access.restricted:
                _log.warning("task %s failed: %s", job.id, error.detail)
                error = without_path(error)
            if self.jobs.fail(job.tenant_id, job.claim, Fault.of(error)):
                Stages().observe([job], JobState.FAILED)
            return
        _log.error("task %s died; it goes back into the queue", f"{job.id}-{job.epoch}", exc_info=error)
        self.jobs.release(job.tenant_id, [job.claim])
        raise error
