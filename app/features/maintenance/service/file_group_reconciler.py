"""The reconciler of compaction and clustering policies: measures file groups after writes and starts jobs for some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

import msgspec
from msgspec import structs

from app.core.feature.reconcilers import Observation, ReconcileResult
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.kinds.rewrite import ClusteringTask, CompactionTask
from app.features.maintenance.service.policy_jobs import Attempts, PolicyJobs
from app.kernel.format.policies import TableServices

# The approximate number of groups of one job: their names are in its request.
_JOB_GROUPS: Final = 1_000
# Measured by one query. A partition of a dataset without a key has as many groups as it has had writes.
_PAGE_GROUPS: Final = 1_000
_PAGE_PARTITIONS: Final = 50
# The rest is measured by the next run.
_PAGES_MAX: Final = 20


class DueGroups(msgspec.Struct, frozen=True, kw_only=True):
    """The groups that are due, and when the next one will be due without a write (None: never)."""

    file_groups: Sequence[str] = ()
    next_at: datetime | None = None


class GroupService(Protocol):
    """A table service that works on single file groups."""

    @property
    def kind(self) -> JobKind:
        """The kind of its jobs."""
        ...

    def policy(self, services: TableServices) -> msgspec.Struct | None:
        """The dataset's policy for this service; None if it has none."""
        ...

    def due(self, observation: Observation, names: Sequence[str]) -> DueGroups:
        """The groups among these, or among those of these partitions, that the policy requires."""
        ...

    def task(self, services: TableServices, file_groups: Sequence[str]) -> CompactionTask | ClusteringTask:
        """The task that works on these groups."""
        ...


class TouchedGroups(Protocol):
    """The file groups that commits have written to."""

    def touched(
        self,
        tenant_id: str,
        dataset_id: str,
        *,
        keyed: bool,
        since_version: int,
        after: str | None,
        limit: int,
    ) -> Sequence[str]:
        """Names of file groups that commits after the version added files to, in order, after the name `after`.

        Without a key: paths of their partitions.
        """
        ...


class _Progress(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far groups are measured: all written up to version `since`; up to `until`, those with names up to `after`."""

    since: int = 0
    until: int = 0
    after: str | None = None


class _State(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`then`: the progress once the last job has succeeded. `next_at`: when all groups are measured again."""

    policy: Any = None
    place: _Progress = _Progress()
    then: _Progress | None = None
    next_at: datetime | None = None
    attempts: Attempts = Attempts()


@dataclass(frozen=True, kw_only=True, slots=True)
class FileGroupReconciler:
    """The reconciler of one service. It measures only groups that were written to, since no other has changed."""

    service: GroupService
    groups: TouchedGroups
    jobs: PolicyJobs

    def reconcile(self, observation: Observation) -> ReconcileResult:
        policy = self.service.policy(observation.dataset.definition.services)
        if policy is None:
            return ReconcileResult()
        memory = msgspec.convert(observation.memory, _State, strict=False)
        stored_policy = msgspec.to_builtins(policy)
        if memory.policy != stored_policy:
            # A group that was not due under the earlier policy may be due under this one.
            memory = _State(policy=stored_policy, attempts=memory.attempts)
        memory, wake_after_seconds = self._next(observation, self._end(observation, memory))
        return ReconcileResult(memory=msgspec.to_builtins(memory), wake_after_seconds=wake_after_seconds)

    def _end(self, observation: Observation, memory: _State) -> _State:
        """Advances if the last job has succeeded. The groups of a failed job are measured again."""
        attempts, succeeded = self.jobs.ended(observation, memory.attempts)
        place = memory.then if succeeded and memory.then is not None else memory.place
        then = memory.then if succeeded is None else None
        return structs.replace(memory, attempts=attempts, place=place, then=then)

    def _next(self, observation: Observation, memory: _State) -> tuple[_State, float | None]:
        """Starts the next job if groups are due. Returns the state, and after how many seconds to run again."""
        pause = self.jobs.pause(observation, self.service.kind, memory.attempts)
        if pause is not None:
            return memory, pause
        if memory.next_at is not None and memory.next_at <= observation.now:
            memory = structs.replace(memory, place=_Progress(), next_at=None)
        due, then = self._measure(observation, memory.place)
        times = [at for at in (memory.next_at, due.next_at) if at is not None]
        next_at = min(times, default=None)
        if due.file_groups:
            task = self.service.task(observation.dataset.definition.services, due.file_groups)
            attempts, wake = self.jobs.start(observation, task, memory.attempts)
            return structs.replace(memory, then=then, next_at=next_at, attempts=attempts), wake
        if then.after is not None or then.since < observation.dataset.version:
            return structs.replace(memory, place=then, next_at=next_at), 0.0
        wake_after = None if next_at is None else max(0.0, (next_at - observation.now).total_seconds())
        return structs.replace(memory, place=then, next_at=next_at), wake_after

    def _measure(self, observation: Observation, place: _Progress) -> tuple[DueGroups, _Progress]:
        """Measures the next groups; returns those that are due, and the progress."""
        dataset = observation.dataset
        keyed = dataset.definition.keyed
        until = dataset.version if place.after is None else place.until
        limit = _PAGE_GROUPS if keyed else _PAGE_PARTITIONS
        found, next_at, after = list[str](), None, place.after
        for _ in range(_PAGES_MAX):
            names = self.groups.touched(
                dataset.tenant_id,
                dataset.id,
                keyed=keyed,
                since_version=place.since,
                after=after,
                limit=limit,
            )
            due = self.service.due(observation, names) if names else DueGroups()
            found += due.file_groups
            next_at = min((at for at in (next_at, due.next_at) if at is not None), default=None)
            if len(names) < limit:
                # Groups that were written after `until` are measured twice.
                after, place = None, _Progress(since=until, until=until)
                break
            after = names[-1]
            if len(found) >= _JOB_GROUPS:
                break
        done = place if after is None else _Progress(since=place.since, until=until, after=after)
        return DueGroups(file_groups=found, next_at=next_at), done
