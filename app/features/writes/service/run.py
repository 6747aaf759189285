"""Runs waiting writes: claims a group, and moves it from state to state until each of its writes has ended."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from app.access.errors import NotFound
from app.core.catalog.ports import DatasetLookup
from app.core.feature.stagers import InputStager
from app.core.jobs.engine import merge
from app.core.jobs.errors import EngineStopped, TimeLimitExceeded
from app.core.jobs.kinds.declared import KINDS
from app.core.jobs.kinds.kind import JobKind, WriteProcess
from app.core.jobs.repository.jobs import JobStore
from app.core.jobs.service.give_back import fault_of_imports, give_back
from app.core.jobs.service.lease import LeaseHeartbeat
from app.core.jobs.service.time_limit import ADVICE_OF_READING, ADVICE_OF_WRITING, TimeLimit
from app.core.jobs.service.time_slice import SliceUsed, TimeSlice
from app.core.jobs.stages import Stages
from app.core.jobs.values import ClaimRules, Job, JobState, Progress
from app.core.timeline.errors import VersionExpired
from app.core.timeline.repository.timeline import TimelineStore
from app.core.timeline.service.name_winner import NameWinner
from app.core.timeline.service.publish import Publish
from app.core.timeline.service.version_pins import KeptVersions, expired_if_missing
from app.core.timeline.values import Fenced, Overtaken
from app.features.writes.attempt import (
    Claimed,
    Committed,
    Decoded,
    Merged,
    Planned,
    Refused,
    Replan,
    WriteGroup,
)
from app.features.writes.engine import WriteEngine
from app.features.writes.service.plan import PlanWrites
from app.features.writes.service.read_input import ReadInput
from app.infra.errors import NotStorable, Unavailable
from app.infra.files.ports import ObjectStorage
from app.infra.logs import facts
from app.infra.outages import awaited
from app.kernel.commit.conflict import FILE_GROUPS_NAMED_MAX, Conflicted
from app.kernel.format.errors import CommitConflict, Fault, HeadwaterError

_log = logging.getLogger(__name__)
# With as many lost races, a group is the next to commit: beside it, only groups run that ran before.
_RACES_LOST_MAX: Final = 3
_JOBS_NAMED_MAX: Final = 5


class _Reached:
    """The latest state of a group, for the thread that reports its progress and for what ends its jobs early, and what
    its stages took.
    """

    def __init__(self, group: WriteGroup, stages: Stages) -> None:
        self._group = group
        self.stages = stages
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """The time since the group was claimed."""
        return time.monotonic() - self._began

    @property
    def group(self) -> WriteGroup:
        return self._group

    def reach(self, group: WriteGroup) -> None:
        """Records the state of the group."""
        self._group = group


@dataclass(frozen=True, kw_only=True, slots=True)
class RunWrites:
    """The worker's use case. `owner` names this worker process; `announce` is called when jobs have ended.

    `deletion_hold`: whether a backup runs, so that no file may be deleted.

    `stagers`: make the rows of refreshes and restores. `replans_max`: how often a group may conflict before it fails.
    `hand_over` is called for a dataset whose next write is not one of `rules.process`, with where it runs.
    `after_round` is called after a round of a source: its next one may be due at once.
    `seconds_max`: the time limit of a tenant's job in seconds, for the kinds whose time is limited.
    `write_seconds_max`: that of a group of other writes. `slice_seconds`: the time after which a group makes room for
    others; None for no bound.
    """

    catalog: DatasetLookup
    storage: ObjectStorage
    jobs: JobStore
    timeline: TimelineStore
    deletion_hold: Callable[[], bool]
    kept_versions: KeptVersions
    engine: WriteEngine
    stagers: Mapping[JobKind, InputStager]
    announce: Callable[[], None]
    owner: str
    rules: ClaimRules
    heartbeat_seconds: float
    replans_max: int
    hand_over: Callable[[WriteProcess, str, str], None]
    after_round: Callable[[], None]
    seconds_max: Callable[[str], float]
    write_seconds_max: Callable[[str], float]
    slice_seconds: float | None = None

    def run(self, tenant_id: str, dataset_id: str) -> bool:
        """Claims and runs one group of writes; False if the dataset is known to have no more of them."""
        stages = Stages()
        with stages.stage("claim"):
            jobs = self.jobs.claim(tenant_id, dataset_id, self.owner, self.rules)
        if not jobs:
            self._pass_on(tenant_id, dataset_id)
            return False
        latest = _Reached(WriteGroup.of(jobs), stages)
        tag = latest.group.tag
        try:
            with self._time_limit(latest.group), self._time_slice(latest.group), self._lease(latest):
                return self._run(latest)
        except EngineStopped:
            _log.info("group %s was stopped: its jobs are no longer ours", tag)
        except NotFound:
            _log.info("a dataset of group %s is gone; its jobs were cancelled with it", tag)
        except Exception as error:
            if not give_back(self.jobs, tenant_id, latest.group.claims, error):
                self._end(latest.group, error)
        finally:
            self.announce()
            if any(job.kind is JobKind.SOURCE_ROUND for job in jobs):
                self.after_round()
        return True

    def _pass_on(self, tenant_id: str, dataset_id: str) -> None:
        """Leaves the dataset to another process, if a write of that is next."""
        if self.rules.process is None:
            return
        process = self.jobs.next_write(tenant_id, dataset_id)
        if process is not None and process is not self.rules.process:
            self.hand_over(process, tenant_id, dataset_id)

    def _end(self, group: WriteGroup, error: Exception) -> None:
        """Ends the writes that the error concerns. Raises an unexpected error."""
        match fault_of_imports(error) or error:
            case SliceUsed():
                _log.info("group %s has used up its time slice: it runs again with slow ones", group.tag)
                self.jobs.slow_down(group.tenant_id, group.claims)
            case NotStorable() | TimeLimitExceeded() as fault:
                self._fail_alone(group, fault)
            case HeadwaterError() as fault:
                if fault is not error:
                    _log.error("a module is missing for group %s", group.tag, exc_info=error)
                self._fail_affected(group, fault)
            case _:
                _log.error("group %s died; its jobs go back into the queue", group.tag, exc_info=error)
                self.jobs.release(group.tenant_id, group.claims)
                raise error

    def _lease(self, latest: _Reached) -> LeaseHeartbeat:
        tag = latest.group.tag
        return LeaseHeartbeat(
            self.jobs,
            latest.group.tenant_id,
            latest.group.claims,
            lease_seconds=self.rules.lease_seconds,
            heartbeat_seconds=self.heartbeat_seconds,
            progress=lambda: self._progress(latest.group),
            on_loss=lambda: self.engine.cancel(tag),
        )

    def _time_limit(self, group: WriteGroup) -> TimeLimit:
        """Stops what the engine runs for the group. What is merged by then is published: a commit is never stopped."""
        reading = any(KINDS[job.kind].time_limited for job in group.jobs)
        seconds_max = self.seconds_max if reading else self.write_seconds_max
        return TimeLimit(
            seconds_max(group.tenant_id),
            lambda: self.engine.cancel(group.tag),
            advice=ADVICE_OF_READING if reading else ADVICE_OF_WRITING,
        )

    def _time_slice(self, group: WriteGroup) -> TimeSlice:
        return TimeSlice(
            self.slice_seconds,
            lambda: self.engine.cancel(group.tag),
            waits=lambda: self.engine.waits(group.tag),
        )

    def _progress(self, group: WriteGroup) -> Progress:
        finished_tasks, total = self.engine.progress(group.tag)
        return Progress(stage=group.stage, done=finished_tasks, total=total)

    def _run(self, latest: _Reached) -> bool:
        """Applies the rule of the state that the group is in, until it is committed or no write is left of it.

        False if no more writes wait.
        """
        while latest.group.parts:
            group, stages = latest.group, latest.stages
            match group.next:
                case Claimed() as part:
                    with stages.stage("decode"):
                        after = self._decode(group, part)
                case Decoded() | Replan() as part:
                    with stages.stage("plan"):
                        after = self._plan(group, part)
                case Planned() as part:
                    with stages.stage("merge"):
                        after = self._merge(group, part, stages)
                case _:
                    with stages.stage("commit"):
                        state = self._commit(group, stages)
                    if isinstance(state, Committed):
                        _log_commit(group, state, latest.seconds)
                        stages.observe(state.jobs, JobState.SUCCEEDED)
                        self._remove(group.staged_paths)
                        return state.more
                    after = state
            latest.reach(after)
        return True

    def _decode(self, group: WriteGroup, part: Claimed) -> WriteGroup:
        """A write that cannot be read fails alone."""
        job = part.unread
        read = ReadInput(catalog=self.catalog, engine=self.engine, stagers=self.stagers)
        try:
            return group.moved(part.read(read.run(job, number=group.round, tag=group.tag)))
        except NotFound:
            raise
        except HeadwaterError as error:
            if isinstance(error, Unavailable) or awaited(error) is not None:
                raise
            self._fail(job, error)
            return group.without(job)

    def _plan(self, group: WriteGroup, part: Decoded | Replan) -> WriteGroup:
        """Plans a part. If its version has expired it starts over; if the schema has changed it is read again."""
        plan = PlanWrites(catalog=self.catalog, timeline=self.timeline)
        return group.moved(plan.run(group.tenant_id, part, group.attempt))

    def _merge(self, group: WriteGroup, part: Planned, stages: Stages) -> WriteGroup:
        """Merges a part. A write that conflicts with existing rows fails alone, and the others are merged again."""
        try:
            with expired_if_missing(
                self.kept_versions, group.tenant_id, [(part.dataset_id, part.plan.version)]
            ):
                messages = merge(self.engine, part.tasks, group.tag, partial(stages.add, "lookup"))
        except VersionExpired:
            # Later commits and a clean have removed the version.
            return group.moved(part.decoded.from_the_head())
        state = part.merged(messages)
        if not isinstance(state, Refused):
            return group.moved(state)
        for job, error in state.errors:
            self._fail(job, error)
        return group.without(*(job for job, _ in state.errors))

    def _commit(self, group: WriteGroup, stages: Stages) -> WriteGroup | Committed:
        """Commits the group. After lost claims it continues with the other jobs, after a conflict with the changed
        parts.
        """
        outcome = Publish(timeline=self.timeline).run(group.tenant_id, group.commits(stages.milliseconds()))
        match outcome:
            case Fenced():
                return group.fenced(outcome)
            case Conflicted() | Overtaken():
                if group.replans == self.replans_max:
                    raise _lost(outcome, group.replans + 1)
                if group.replans + 1 == _RACES_LOST_MAX:
                    self.jobs.contend(group.tenant_id, group.claims)
                return group.replan(outcome)
            case _:
                return group.committed(outcome)

    def _remove(self, paths: Sequence[str]) -> None:
        """Removes the staged rows of a commit. What cannot be removed now is left to the reaper.

        A backup that runs may have copied the jobs as they waited, and their rows not yet.
        """
        if not paths:
            return
        try:
            if not self.deletion_hold():
                self.storage.delete(paths)
        except Exception as error:
            _log.warning("%d files of staged rows stay until they are reaped: %s", len(paths), error)

    def _fail_affected(self, group: WriteGroup, error: HeadwaterError) -> None:
        """Fails the writes that the error concerns, if that is known, otherwise all. The others run again.

        All writes of a transaction fail with one of them; the store ends the others.
        """
        failing_jobs = group.affected(error) or group.jobs
        for job in failing_jobs:
            self._fail(job, error)
        self.jobs.release(group.tenant_id, [job.claim for job in group.jobs if job not in failing_jobs])

    def _fail_alone(self, group: WriteGroup, error: NotStorable | TimeLimitExceeded) -> None:
        """Fails a write that cannot be stored, or takes too long.

        Which of several it is becomes known once each has run by itself.
        """
        if len(group.jobs) == 1 or group.together:
            self._fail_affected(group, error)
        else:
            self.jobs.release(group.tenant_id, group.claims)

    def _fail(self, job: Job, error: HeadwaterError) -> None:
        full_error = NameWinner(timeline=self.timeline).named(job.tenant_id, job.dataset_id, error)
        if self.jobs.fail(job.tenant_id, job.claim, Fault.of(full_error)):
            Stages().observe([job], JobState.FAILED)
        # The others of the group may run for long.
        self.announce()


def _log_commit(group: WriteGroup, committed: Committed, seconds: float) -> None:
    """A line for each dataset. `group`: as it was merged."""
    for part in group.parts:
        assert isinstance(part, Merged), "a group is committed once all of its parts are merged"
        _log.info(
            "committed version %d",
            committed.versions[part.dataset_id],
            extra=facts(
                dataset=part.plan.dataset.definition.name,
                operation=part.jobs[0].write.operation.value,
                rows=sum(file.rows for each in part.inputs for file in each.files),
                milliseconds=seconds * 1000,
                job=",".join(job.id for job in part.jobs[:_JOBS_NAMED_MAX]),
                jobs=len(part.jobs),
            ),
        )


def _lost(race: Conflicted | Overtaken, times: int) -> CommitConflict:
    """The error of a group that has conflicted too often."""
    match race:
        case Conflicted():
            return CommitConflict(
                f"{times} commits in a row changed the same data first; send the write again",
                winner=race.winner,
                file_groups=list(race.file_groups[:FILE_GROUPS_NAMED_MAX]),
                file_group_count=len(race.file_groups),
                dataset_id=race.dataset_id,
                retryable=True,
            )
        case Overtaken():
            return CommitConflict(
                f"another commit took in the changes from {race.since} on first, or the schema of the input changed",
                dataset_id=race.dataset_id,
                retryable=True,
            )
