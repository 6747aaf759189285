"""What a table service is. Each is a module beside this one, and a line in `table_services` of `compose`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from app.core.feature.reconcilers import Observation
from app.core.jobs.kinds.declared import TableServiceTask
from app.core.jobs.kinds.kind import JobDeclaration
from app.core.jobs.values import Job
from app.kernel.format.policies import TableServices

_Task = TypeVar("_Task", bound=TableServiceTask)


class Measured(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much of a dataset a service has measured: all that was written up to version `since`.

    A service that measures file groups in pages has also measured what was written up to `until`, of the groups with
    names up to `after`. It is stored with the state of the policy.
    """

    since: int = 0
    until: int = 0
    after: str | None = None


class Due(msgspec.Struct, Generic[_Task], frozen=True, kw_only=True):
    """What a policy requires now.

    `task`: None if nothing is due. `measured`: what will be measured once the job of the task has succeeded, or is
    now, without one. `next_at`: when the policy requires something without another write; None for never.
    """

    task: _Task | None = None
    measured: Measured
    next_at: datetime | None = None


class TableService(Protocol[_Task]):
    """A table service: its kind of job, what its policy requires, and how its jobs run."""

    @property
    def kind(self) -> JobDeclaration[_Task, Any]:
        """The kind of its jobs. The state of its policy is stored under the name of the kind."""
        ...

    def policy(self, services: TableServices) -> msgspec.Struct | None:
        """The dataset's policy for this service; None if it has none."""
        ...

    def due(self, observation: Observation, measured: Measured) -> Due[_Task]:
        """What the policy of the dataset requires, of what is not measured yet. It takes seconds at most."""
        ...

    def run(self, job: Job, task: _Task, tag: str) -> None:
        """Plans and runs a claimed job under the engine's tag, and ends it with its result. See `TaskHandler`."""
        ...
