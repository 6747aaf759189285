"""Running the waiting writes of a dataset as one group: claim, plan, merge on Spark, commit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from app.lake.commit_message import CommitMessage, KeyConflict, failed_writes
from app.lake.conflict import Conflicted
from app.lake.errors import (
    CommitConflict,
    CorruptFile,
    DuplicateKey,
    EngineStopped,
    HeadwaterError,
    NotFound,
    Unavailable,
)
from app.lake.instant import Action, RowCounts
from app.lake.paths import attempt_name, dataset_prefix, decoded_prefix, quarantine_prefix
from app.lake.quarantine import QuarantineFile
from app.lake.staging import StagedFile
from app.lake.write_options import OnError
from app.lake.write_plan import WriteIntent, file_group, plan_merge, touched_slots
from app.services.commit import Publish
from app.services.lease import Lease
from app.services.model import (
    Claim,
    ClaimRules,
    Dataset,
    Fault,
    Fenced,
    Job,
    JobOutcome,
    NewCommit,
    Progress,
    Published,
)
from app.services.ports import Catalog, Jobs, Timeline, WriteEngine

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunWrites:
    """The worker's use case. `owner` names this worker process; `announce` is called when jobs have ended."""

    catalog: Catalog
    jobs: Jobs
    timeline: Timeline
    engine: WriteEngine
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
        group = _Group(jobs=list(claimed))
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
                self._decode(tenant_id, dataset_id, group)
                self._merge_and_commit(tenant_id, dataset_id, group)
        except EngineStopped:
            _log.info("group %s was stopped: its jobs are no longer ours", group.tag)
        except NotFound:
            _log.info("dataset %s is gone; its jobs were cancelled with it", dataset_id)
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

    def _progress(self, group: _Group) -> Progress:
        done, total = self.engine.progress(group.tag)
        return Progress(stage=group.stage, done=done, total=total)

    def _fail(self, tenant_id: str, job: Job, error: HeadwaterError) -> None:
        fault = Fault(code=error.code, title=error.title, detail=error.detail, facts=error.facts)
        self.jobs.fail(tenant_id, job.claim, fault)

    def _fail_all(self, tenant_id: str, group: _Group, error: HeadwaterError) -> None:
        """Fails the writes that the error concerns: one whose staged file is damaged alone, otherwise all."""
        damaged = error.facts.get("path") if isinstance(error, CorruptFile) else None
        guilty = [
            job for job in group.jobs if damaged in [file.path for file in group.staged.get(job.id, ())]
        ]
        for job in guilty or group.jobs:
            self._fail(tenant_id, job, error)
        innocent = [job for job in group.jobs if guilty and job not in guilty]
        self.jobs.release(tenant_id, [job.claim for job in innocent])

    def _decode(self, tenant_id: str, dataset_id: str, group: _Group) -> None:
        """Brings every write of the group to staged input; one that cannot be read fails alone."""
        group.staged = {job.id: job.request.staged for job in group.jobs}
        group.quarantined = {job.id: job.request.quarantined for job in group.jobs}
        encoded = [(job, job.request.raw) for job in group.jobs if job.request.raw is not None]
        if not encoded:
            return
        definition = self.catalog.get(tenant_id, dataset_id).definition
        group.stage = "decode"
        for job, raw in encoded:
            place = dataset_prefix(tenant_id, dataset_id)
            aside = job.request.options.on_error is OnError.QUARANTINE
            try:
                decoded = self.engine.decode(
                    raw,
                    definition,
                    job.request.operation,
                    prefix=decoded_prefix(place, job.id, job.epoch),
                    quarantine=quarantine_prefix(place, job.id, job.epoch) if aside else None,
                    tag=group.tag,
                )
                group.staged[job.id] = decoded.staged
                group.quarantined[job.id] = decoded.quarantined
            except HeadwaterError as error:
                self._fail(tenant_id, job, error)
                group.jobs.remove(job)

    def _merge_and_commit(self, tenant_id: str, dataset_id: str, group: _Group) -> None:
        replans = 0
        read_version: int | None = None
        messages: dict[str, CommitMessage] = {}
        while group.jobs:
            dataset = self.catalog.get(tenant_id, dataset_id)
            version = dataset.version if read_version is None else read_version
            self._merge(dataset, version, group, messages)
            failed = failed_writes(list(messages.values()))
            if failed:
                self._fail_duplicates(tenant_id, group, failed)
                read_version, messages = None, {}
                continue
            group.stage = "commit"
            outcome = Publish(timeline=self.timeline).run(
                tenant_id, _commit(dataset, version, group, messages)
            )
            match outcome:
                case Published(version=published):
                    _log.info("dataset %s: %d write(s) at version %d", dataset_id, len(group.jobs), published)
                    return
                case Fenced(held=held):
                    group.jobs = [job for job in group.jobs if job.id in held]
                    read_version, messages = None, {}
                case Conflicted(file_groups=file_groups, winner=winner, head_version=head):
                    replans += 1
                    if replans > self.replans_max:
                        raise CommitConflict(
                            f"{replans} commits in a row changed the same data first; send the write again",
                            winner=winner,
                            file_groups=list(file_groups),
                            retryable=True,
                        )
                    read_version = head
                    messages = {name: kept for name, kept in messages.items() if name not in file_groups}

    def _merge(
        self, dataset: Dataset, version: int, group: _Group, messages: dict[str, CommitMessage]
    ) -> None:
        """Adds the commit messages of the file groups that have none yet."""
        group.stage = "merge"
        group.rounds += 1
        writes = {number: group.staged[job.id] for number, job in enumerate(group.jobs)}
        groups = {slot: file_group(dataset.definition, slot, group.attempt) for slot in touched_slots(writes)}
        missing = {slot: name for slot, name in groups.items() if name not in messages}
        live = self.timeline.live_files(dataset.tenant_id, dataset.id, version, list(missing.values()))
        tasks = plan_merge(
            dataset.definition,
            writes,
            {number: WriteIntent(operation=job.request.operation) for number, job in enumerate(group.jobs)},
            live,
            groups=missing,
            attempt=group.attempt,
            data_prefix=dataset_prefix(dataset.tenant_id, dataset.id),
        )
        for message in self.engine.merge(tasks, group.tag):
            messages[message.file_group] = message

    def _fail_duplicates(
        self, tenant_id: str, group: _Group, failed: Mapping[int, Sequence[KeyConflict]]
    ) -> None:
        for number in sorted(failed, reverse=True):
            conflicts = failed[number]
            count = sum(conflict.count for conflict in conflicts)
            keys = [key for conflict in conflicts for key in conflict.keys][:10]
            job = group.jobs.pop(number)
            self._fail(
                tenant_id,
                job,
                DuplicateKey(
                    f"{count} key(s) of the {job.request.operation.value} are in the table already; nothing was "
                    "written. Use upsert to update them",
                    keys=keys,
                    duplicates=count,
                ),
            )


@dataclass(kw_only=True, slots=True)
class _Group:
    """The writes that run together, in order of acceptance, and how far they are."""

    jobs: list[Job]
    staged: dict[str, tuple[StagedFile, ...]] = field(default_factory=dict)
    quarantined: dict[str, tuple[QuarantineFile, ...]] = field(default_factory=dict)
    stage: str = "plan"
    rounds: int = 0
    tag: str = field(init=False)

    def __post_init__(self) -> None:
        self.tag = f"{self.jobs[0].id}-{self.jobs[0].epoch}"

    def claims(self) -> list[Claim]:
        return [job.claim for job in self.jobs]

    @property
    def attempt(self) -> str:
        """Goes into file names: another instant, epoch or round never writes the same path."""
        leader = self.jobs[0]
        return attempt_name(leader.instant_id, leader.epoch, self.rounds)


def _commit(
    dataset: Dataset, version: int, group: _Group, messages: Mapping[str, CommitMessage]
) -> NewCommit:
    outcomes = []
    for number, job in enumerate(group.jobs):
        counts = sum((message.counts.get(number, RowCounts()) for message in messages.values()), RowCounts())
        refused = [file for message in messages.values() for file in message.quarantined.get(number, ())]
        _check_sum(job, counts, sum(file.row_count for file in refused), group.staged[job.id])
        quarantined = (*group.quarantined[job.id], *refused)
        counts = msgspec.structs.replace(counts, quarantined=sum(file.row_count for file in quarantined))
        outcomes.append(
            JobOutcome(claim=job.claim, instant_id=job.instant_id, counts=counts, quarantined=quarantined)
        )
    return NewCommit(
        dataset_id=dataset.id,
        action=Action.COMMIT,
        read_version=version,
        schema_id=dataset.definition.schema.id,
        outcomes=tuple(outcomes),
        messages=tuple(messages[name] for name in sorted(messages)),
    )


def _check_sum(job: Job, counts: RowCounts, refused: int, staged: Sequence[StagedFile]) -> None:
    """Every row that came in is accounted for, or nothing is published."""
    expected = sum(file.rows for file in staged)
    counted = counts.inserted + counts.updated + counts.deleted + counts.unchanged + refused
    if counted != expected:
        raise HeadwaterError(
            f"job {job.id}: {expected} rows went in, {counted} came out; nothing was published"
        )
