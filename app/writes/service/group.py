"""Writes that run together: how far they are, and the commits they come to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from app.catalog.values import Dataset
from app.commit.commit_message import CommitMessage
from app.commit.write_plan import WriteScope
from app.format.dataset import DatasetDefinition
from app.format.errors import HeadwaterError
from app.format.instant import Action, RowCounts
from app.format.paths import attempt_name
from app.format.quarantine import QuarantineFile
from app.format.rows.staging import StagedFile
from app.jobs.values import Claim, Job, instant_action
from app.timeline.values import Advance, JobOutcome, NewCommit
from app.writes.ports import RestoredVersion


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What the commit of a part is planned on: the dataset as it is found, at a version.

    `scope` takes rows out, `read_scope` must not have changed since. `noop`: the write has nothing to do.
    """

    dataset: Dataset
    version: int
    scope: WriteScope | None = None
    read_scope: WriteScope | None = None
    noop: bool = False


@dataclass(kw_only=True, slots=True)
class Part:
    """The writes of a group to one dataset, in order of acceptance, and what became of their file groups so far.

    `read_version` is where the messages that there are were read; None for the head, whatever it is. `evolved`: the
    dataset under the schema that a write brings, the next after the one that it was read under. `advances`: how far
    the input of a refresh reaches. `restored`: what a restore goes back to.
    """

    dataset_id: str
    jobs: list[Job]
    staged: dict[str, tuple[StagedFile, ...]] = field(default_factory=dict)
    quarantined: dict[str, tuple[QuarantineFile, ...]] = field(default_factory=dict)
    read_version: int | None = None
    messages: dict[str, CommitMessage] = field(default_factory=dict)
    plan: Plan | None = None
    evolved: DatasetDefinition | None = None
    advances: tuple[Advance, ...] = ()
    restored: RestoredVersion | None = None

    @property
    def writes(self) -> dict[int, tuple[StagedFile, ...]]:
        """The input by the numbers that tasks know the writes by."""
        return {number: self.staged[job.id] for number, job in enumerate(self.jobs)}

    @property
    def planned_at(self) -> int:
        """The version that its plan has read."""
        if self.plan is None:
            raise AssertionError("a part is planned before it is merged")
        return self.plan.version

    def reset(self) -> None:
        """Nothing of what was merged holds any more."""
        self.read_version, self.messages, self.plan = None, {}, None

    def remerge(self, file_groups: tuple[str, ...], head_version: int) -> None:
        """These file groups were changed up to `head_version`; with a scope, all of it is read again."""
        if self.plan is not None and self.plan.read_scope is not None:
            self.reset()
            return
        self.read_version = head_version
        self.messages = {name: kept for name, kept in self.messages.items() if name not in file_groups}

    def commit(self) -> NewCommit:
        """Raises HeadwaterError unless every row that came in is accounted for."""
        if self.plan is None:
            raise AssertionError("a part is merged before it is committed")
        # A write that leaves the table as it is leaves the schema, too.
        evolved = None if self.plan.noop else self.evolved
        planned_on = self.plan.dataset.definition.schema.id - (self.evolved is not None)
        messages = [self.messages[name] for name in sorted(self.messages)]
        if self.restored is not None:
            messages = self.restored.plan.with_postponed(self.messages)
        expected = [job.write.options.expected_version for job in self.jobs]
        return NewCommit(
            dataset_id=self.dataset_id,
            action=instant_action(self.jobs[0].write) or Action.COMMIT,
            read_version=self.plan.version,
            schema_id=planned_on,
            definition=evolved,
            outcomes=tuple(self._outcome(number, job, self.plan) for number, job in enumerate(self.jobs)),
            messages=tuple(messages),
            scope=self.plan.read_scope,
            expected_version=next((version for version in expected if version is not None), None),
            advances=self.advances,
        )

    def _outcome(self, number: int, job: Job, plan: Plan) -> JobOutcome:
        sent = sum(file.rows for file in self.staged[job.id])
        counts = RowCounts(unchanged=sent if plan.noop else 0)
        refused: list[QuarantineFile] = []
        for message in self.messages.values():
            counts += message.counts.get(number, RowCounts())
            refused += message.quarantined.get(number, ())
        _check_sum(job, sent, counts, sum(file.row_count for file in refused), scoped=plan.scope is not None)
        quarantined = (*self.quarantined[job.id], *refused)
        counts = msgspec.structs.replace(counts, quarantined=sum(file.row_count for file in quarantined))
        return JobOutcome(
            claim=job.claim,
            instant_id=job.instant,
            counts=counts,
            quarantined=quarantined,
            result=None if self.restored is None else self.restored.result,
        )


def _check_sum(job: Job, sent: int, counts: RowCounts, refused: int, *, scoped: bool) -> None:
    """Every row that came in is accounted for, or nothing is published. What a scope takes out comes on top."""
    counted = counts.inserted + counts.updated + counts.unchanged + refused
    if not scoped:
        counted += counts.deleted
    if counted != sent:
        raise HeadwaterError(f"job {job.id}: {sent} rows went in, {counted} came out; nothing was published")


@dataclass(kw_only=True, slots=True)
class WriteGroup:
    """What one claim holds: writes of one dataset, or those of a transaction, one in each of its datasets."""

    parts: list[Part]
    stage: str = "plan"
    rounds: int = 0
    current: Part | None = None
    tag: str = field(init=False)
    together: bool = field(init=False)

    def __post_init__(self) -> None:
        leader = self.jobs[0]
        # What the engine knows the group's tasks by, for as long as it runs.
        self.tag = f"{leader.id}-{leader.epoch}"
        # Its writes are one transaction.
        self.together = leader.transaction_id is not None

    @classmethod
    def of(cls, claimed: list[Job]) -> WriteGroup:
        """`claimed`: in order of acceptance."""
        parts: dict[str, Part] = {}
        for job in claimed:
            parts.setdefault(job.dataset_id, Part(dataset_id=job.dataset_id, jobs=[])).jobs.append(job)
        return cls(parts=list(parts.values()))

    @property
    def attempt(self) -> str:
        """Goes into file names: another instant, epoch or round never writes the same path."""
        # Of a write that is still to be committed: files of one that has ended are removed.
        leader = self.jobs[0]
        return attempt_name(leader.instant, leader.epoch, self.rounds)

    @property
    def jobs(self) -> list[Job]:
        return [job for part in self.parts for job in part.jobs]

    def claims(self) -> list[Claim]:
        return [job.claim for job in self.jobs]

    def working(self) -> Iterator[Part]:
        """The parts one after another; `current` is the one being worked on."""
        for part in list(self.parts):
            self.current = part
            yield part
        self.current = None

    def retain(self, held: frozenset[str]) -> None:
        """Goes on with these jobs only, from the beginning."""
        for part in self.parts:
            part.jobs = [job for job in part.jobs if job.id in held]
            part.reset()
        self.parts = [part for part in self.parts if part.jobs]

    def drop(self, job: Job) -> None:
        """The job has ended; with it its whole transaction."""
        left = [] if self.together else [other.id for other in self.jobs if other is not job]
        self.retain(frozenset(left))
