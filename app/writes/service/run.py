"""Running waiting writes: claim a group, decode, merge on Spark, commit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.catalog.ports import Catalog
from app.commit.commit_message import KeyConflict, failed_writes
from app.commit.conflict import Conflicted
from app.commit.write_options import OnError
from app.format.errors import (
    AggregateOverflow,
    CommitConflict,
    CorruptFile,
    DuplicateKey,
    EngineStopped,
    Fault,
    HeadwaterError,
    NotFound,
    Unavailable,
    VersionExpired,
)
from app.format.paths import dataset_prefix, decoded_prefix, quarantine_prefix
from app.jobs.ports import Jobs
from app.jobs.service.lease import Lease
from app.jobs.values import ClaimRules, Job, JobKind, Progress
from app.timeline.ports import Timeline
from app.timeline.service.publish import Publish
from app.timeline.service.version_pins import KeptVersions, expired_if_missing
from app.timeline.values import Fenced
from app.writes.engine import WriteEngine
from app.writes.ports import InputStager, StagedInput
from app.writes.service.group import Part, WriteGroup
from app.writes.service.plan import PlanWrites, SchemaMoved

_log = logging.getLogger(__name__)
_KEYS_NAMED_MAX = 10
_STAGES: Final = {JobKind.REFRESH: "derive", JobKind.RESTORE: "restore", JobKind.ROLLBACK: "restore"}


@dataclass(frozen=True, kw_only=True, slots=True)
class RunWrites:
    """The worker's use case. `owner` names this worker process; `announce` is called when jobs have ended.

    `stagers`: who makes the rows of the kinds of writes that come without any.
    """

    catalog: Catalog
    jobs: Jobs
    timeline: Timeline
    kept: KeptVersions
    engine: WriteEngine
    stagers: Mapping[JobKind, InputStager]
    announce: Callable[[], None]
    owner: str
    rules: ClaimRules
    heartbeat_seconds: float
    replans_max: int

    def run(self, tenant_id: str, dataset_id: str) -> bool:
        """Claims and runs one group of writes; False if there was none to claim."""
        claimed = self.jobs.claim(tenant_id, dataset_id, self.owner, self.rules)
        if not claimed:
            return False
        group = WriteGroup.of(claimed)
        try:
            with Lease(
                self.jobs,
                tenant_id,
                group.claims(),
                lease_seconds=self.rules.lease_seconds,
                heartbeat_seconds=self.heartbeat_seconds,
                progress=lambda: self._progress(group),
                lost=lambda: self.engine.cancel(group.tag),
            ):
                self._decode(tenant_id, group)
                self._merge_and_commit(tenant_id, group)
        except EngineStopped:
            _log.info("group %s was stopped: its jobs are no longer ours", group.tag)
        except NotFound:
            _log.info("a dataset of group %s is gone; its jobs were cancelled with it", group.tag)
        except Unavailable:
            _log.warning("the database is out of reach; the leases of group %s will run out", group.tag)
        except HeadwaterError as error:
            self._fail_all(tenant_id, group, error)
        except Exception:
            _log.exception("group %s died; its jobs go back into the queue", group.tag)
            self.jobs.release(tenant_id, group.claims())
            raise
        finally:
            self.announce()
        return True

    def _progress(self, group: WriteGroup) -> Progress:
        done, total = self.engine.progress(group.tag)
        return Progress(stage=group.stage, done=done, total=total)

    def _fail(self, tenant_id: str, job: Job, error: HeadwaterError) -> None:
        self.jobs.fail(tenant_id, job.claim, Fault.of(error))

    def _fail_all(self, tenant_id: str, group: WriteGroup, error: HeadwaterError) -> None:
        """Fails the writes that the error concerns, if it tells which, otherwise all.

        Of a transaction all fail, whichever is named; the store says so to the others.
        """
        affected = _affected_jobs(group, error)
        for job in affected or group.jobs:
            self._fail(tenant_id, job, error)
        unaffected = [job.claim for job in group.jobs if affected and job not in affected]
        self.jobs.release(tenant_id, unaffected)

    def _decode(self, tenant_id: str, group: WriteGroup) -> None:
        """Brings every write of the group to staged input; one that cannot be read fails alone."""
        for part in group.working():
            self._decode_part(tenant_id, group, part)

    def _decode_part(self, tenant_id: str, group: WriteGroup, part: Part) -> None:
        group.stage = "decode"
        place = dataset_prefix(tenant_id, part.dataset_id)
        for job in list(part.jobs):
            part.staged[job.id] = job.write.staged
            part.quarantined[job.id] = job.write.quarantined
            try:
                # Rows that the service makes may have to be made again, and then go to other files.
                prefix = f"{decoded_prefix(place, job.id, job.epoch)}-{group.rounds}"
                kind = job.write.kind
                if kind is JobKind.WRITE:
                    self._decode_one(tenant_id, part, job, place, group.tag)
                else:
                    group.stage = _STAGES[kind]
                    _take_staged(part, job, self.stagers[kind].stage(job, prefix, group.tag))
            except HeadwaterError as error:
                if isinstance(error, NotFound | Unavailable):
                    raise
                self._fail(tenant_id, job, error)
                group.drop(job)

    def _decode_one(self, tenant_id: str, part: Part, job: Job, place: str, tag: str) -> None:
        raw = job.write.raw
        if raw is None:
            return
        aside = job.write.options.on_error is OnError.QUARANTINE
        # Read again only under a schema that came in between, and then to other files.
        suffix = "" if part.evolved is None else f"-{part.evolved.schema.id}"
        decoded = self.engine.decode(
            raw,
            self.catalog.get(tenant_id, part.dataset_id).definition,
            job.write.operation,
            prefix=decoded_prefix(place, job.id, job.epoch) + suffix,
            options=job.write.options,
            quarantine=quarantine_prefix(place, job.id, job.epoch) + suffix if aside else None,
            tag=tag,
        )
        part.staged[job.id] = decoded.staged
        part.quarantined[job.id] = decoded.quarantined
        part.evolved = decoded.definition

    def _merge_and_commit(self, tenant_id: str, group: WriteGroup) -> None:
        replans = 0
        while group.jobs:
            if not self._merge(tenant_id, group):
                continue
            group.stage = "commit"
            try:
                outcome = Publish(timeline=self.timeline).run(
                    tenant_id, [part.commit() for part in group.parts]
                )
            except CommitConflict as error:
                replans += 1
                if replans > self.replans_max or not error.facts["retryable"]:
                    raise
                # Another refresh took in first what this one did: there may be more by now.
                self._decode_again(tenant_id, group)
                continue
            match outcome:
                case Fenced(held=held):
                    group.retain(held)
                case Conflicted(file_groups=file_groups, winner=winner, head_version=head):
                    replans += 1
                    if replans > self.replans_max:
                        raise CommitConflict(
                            f"{replans} commits in a row changed the same data first; send the write again",
                            winner=winner,
                            file_groups=list(file_groups),
                            dataset_id=outcome.dataset_id,
                            retryable=True,
                        )
                    for part in group.parts:
                        if part.restored is not None:
                            # What differs from the earlier version is something else by now.
                            self._decode_again(tenant_id, group)
                        elif part.dataset_id == outcome.dataset_id:
                            part.remerge(file_groups, head)
                case _:
                    versions = {
                        part.dataset_id: each.version for part, each in zip(group.parts, outcome, strict=True)
                    }
                    _log.info("%d write(s) committed: %s", len(group.jobs), versions)
                    return

    def _decode_again(self, tenant_id: str, group: WriteGroup) -> None:
        for part in group.working():
            part.reset()
            self._decode_part(tenant_id, group, part)

    def _merge(self, tenant_id: str, group: WriteGroup) -> bool:
        """Adds the commit messages of the file groups that have none yet; False if that made a write fail."""
        group.stage = "merge"
        group.rounds += 1
        plan = PlanWrites(catalog=self.catalog, timeline=self.timeline)
        for part in group.working():
            try:
                tasks = plan.run(tenant_id, part, group.attempt)
                with expired_if_missing(self.kept, tenant_id, [(part.dataset_id, part.planned_at)]):
                    messages = self.engine.merge(tasks, group.tag)
            except SchemaMoved:
                self._decode_part(tenant_id, group, part)
                return False
            except VersionExpired:
                # Commits and a clean came between.
                part.reset()
                if part.restored is not None:
                    self._decode_part(tenant_id, group, part)
                return False
            for message in messages:
                part.messages[message.file_group] = message
            failed = failed_writes(list(part.messages.values()))
            if failed:
                for job, conflicts in [(part.jobs[number], failed[number]) for number in sorted(failed)]:
                    self._fail(tenant_id, job, _refusal(job, conflicts))
                    group.drop(job)
                return False
        return True


def _take_staged(part: Part, job: Job, made: StagedInput) -> None:
    """The rows that a stager made for a write, which runs by itself."""
    part.jobs = [made.job]
    part.staged[job.id] = made.staged
    part.advances, part.restored = made.advances, made.restored


def _affected_jobs(group: WriteGroup, error: HeadwaterError) -> list[Job]:
    """The writes whose error it is, as far as it tells: by a file of theirs, by their dataset, or by when it came."""
    damaged = error.facts.get("path") if isinstance(error, CorruptFile) else None
    reading = [
        job
        for part in group.parts
        for job in part.jobs
        if damaged is not None and damaged in [file.path for file in part.staged.get(job.id, ())]
    ]
    if reading or not group.together:
        return reading
    named = error.facts.get("dataset_id")
    current = group.current.dataset_id if group.current is not None else named
    return [job for job in group.jobs if job.dataset_id == current]


def _refusal(job: Job, conflicts: Sequence[KeyConflict]) -> HeadwaterError:
    """Why a write fails that met live keys, or whose sums do not fit."""
    count = sum(conflict.count for conflict in conflicts)
    keys = [key for conflict in conflicts for key in conflict.keys][:_KEYS_NAMED_MAX]
    field = next((conflict.overflowed for conflict in conflicts if conflict.overflowed is not None), None)
    if field is not None:
        return AggregateOverflow(
            f"{count} key(s) would have a sum that {field!r} cannot hold; nothing was written",
            field=field,
            keys=keys,
            count=count,
        )
    return DuplicateKey(
        f"{count} key(s) of the {job.write.operation.value} are in the table already; nothing was "
        "written. Use upsert to update them",
        keys=keys,
        duplicates=count,
    )
