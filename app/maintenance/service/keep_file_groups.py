"""Compacting and clustering by themselves: file groups that were written to are measured, and jobs started for some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

import msgspec
from msgspec import structs

from app.format.policies import TableServices
from app.jobs.tasks import ClusteringTask, CompactionTask
from app.jobs.values import JobKind
from app.maintenance.service.policy_jobs import Attempts, PolicyJobs
from app.maintenance.values import Kept, Look

# Of one job, about: so many names go into its request.
_GROUPS_OF_A_JOB: Final = 1_000
# Measured at once; of partitions each has as many groups as it has had writes.
_GROUPS_OF_A_PAGE: Final = 1_000
_PARTITIONS_OF_A_PAGE: Final = 50
# What is left is measured with the next look.
_PAGES_OF_A_LOOK: Final = 20


class DueGroups(msgspec.Struct, frozen=True, kw_only=True):
    """Which groups are to be done, and when the next will be though nothing is written to it (None: never)."""

    file_groups: Sequence[str] = ()
    next_at: datetime | None = None


class GroupService(Protocol):
    """A table service that does one file group or another."""

    @property
    def kind(self) -> JobKind:
        """That of its jobs."""
        ...

    def policy(self, services: TableServices) -> msgspec.Struct | None:
        """When it is to be done without being asked for; None if it is not."""
        ...

    def due(self, look: Look, names: Sequence[str]) -> DueGroups:
        """Which of these groups, or of the groups of these partitions, the policy wants to be done."""
        ...

    def task(self, services: TableServices, file_groups: Sequence[str]) -> CompactionTask | ClusteringTask:
        """Does these groups."""
        ...


class TouchedGroups(Protocol):
    """Where a table was written to."""

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
        """Names of file groups that commits after the version added files to, in order, from behind `after`.

        Without a key: paths of their partitions.
        """
        ...


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    """What has been measured: all up to version `since`, and up to `until` the names up to `after`."""

    since: int = 0
    until: int = 0
    after: str | None = None


class _Memory(msgspec.Struct, frozen=True, kw_only=True):
    """`then`: where to go on once the last job has succeeded. `next_at`: when all are measured again."""

    policy: Any = None
    place: _Place = _Place()
    then: _Place | None = None
    next_at: datetime | None = None
    attempts: Attempts = Attempts()


@dataclass(frozen=True, kw_only=True, slots=True)
class KeepFileGroups:
    """The keeper of one such service. Only groups that were written to are looked at, since no other has changed."""

    service: GroupService
    groups: TouchedGroups
    jobs: PolicyJobs

    def keep(self, look: Look) -> Kept:
        policy = self.service.policy(look.dataset.definition.services)
        if policy is None:
            return Kept()
        memory = msgspec.convert(look.memory, _Memory, strict=False)
        said = msgspec.to_builtins(policy)
        if memory.policy != said:
            # What was well under another policy may not be under this one.
            memory = _Memory(policy=said, attempts=memory.attempts)
        memory, wake_after_seconds = self._next(look, self._end(look, memory))
        return Kept(memory=msgspec.to_builtins(memory), wake_after_seconds=wake_after_seconds)

    def _end(self, look: Look, memory: _Memory) -> _Memory:
        """Goes on if the last job has succeeded. What one that failed was started for is measured again."""
        attempts, succeeded = self.jobs.ended(look, memory.attempts)
        place = memory.then if succeeded and memory.then is not None else memory.place
        then = memory.then if succeeded is None else None
        return structs.replace(memory, attempts=attempts, place=place, then=then)

    def _next(self, look: Look, memory: _Memory) -> tuple[_Memory, float | None]:
        """Starts the next job if there is one to start; returns when to look again."""
        pause = self.jobs.pause(look, self.service.kind, memory.attempts)
        if pause is not None:
            return memory, pause
        if memory.next_at is not None and memory.next_at <= look.now:
            memory = structs.replace(memory, place=_Place(), next_at=None)
        due, then = self._measure(look, memory.place)
        times = [at for at in (memory.next_at, due.next_at) if at is not None]
        next_at = min(times, default=None)
        if due.file_groups:
            task = self.service.task(look.dataset.definition.services, due.file_groups)
            attempts, wake = self.jobs.start(look, task, memory.attempts)
            return structs.replace(memory, then=then, next_at=next_at, attempts=attempts), wake
        if then.after is not None or then.since < look.dataset.version:
            return structs.replace(memory, place=then, next_at=next_at), 0.0
        wake_after = None if next_at is None else max(0.0, (next_at - look.now).total_seconds())
        return structs.replace(memory, place=then, next_at=next_at), wake_after

    def _measure(self, look: Look, place: _Place) -> tuple[DueGroups, _Place]:
        """Measures what follows; returns which groups are due, and how far that went."""
        dataset = look.dataset
        keyed = dataset.definition.keyed
        until = dataset.version if place.after is None else place.until
        limit = _GROUPS_OF_A_PAGE if keyed else _PARTITIONS_OF_A_PAGE
        found, next_at, after = list[str](), None, place.after
        for _ in range(_PAGES_OF_A_LOOK):
            names = self.groups.touched(
                dataset.tenant_id,
                dataset.id,
                keyed=keyed,
                since_version=place.since,
                after=after,
                limit=limit,
            )
            due = self.service.due(look, names) if names else DueGroups()
            found += due.file_groups
            next_at = min((at for at in (next_at, due.next_at) if at is not None), default=None)
            if len(names) < limit:
                # Those that came behind `until` meanwhile are measured twice.
                after, place = None, _Place(since=until, until=until)
                break
            after = names[-1]
            if len(found) >= _GROUPS_OF_A_JOB:
                break
        done = place if after is None else _Place(since=place.since, until=until, after=after)
        return DueGroups(file_groups=found, next_at=next_at), done
