"""The states of a group of writes, from its claim to its commit. All are values; a transition returns the next one.

    Claimed ──> Decoded ──> Planned ──> Merged ──> Committed
       ^           ^           ^           │
       │           │           │           ├─ Conflicted ──> Replan, and from there Planned
       └───────────┴───────────┴───────────┴─ Fenced: the writes that are still held start over

A group has a part for each of its datasets, and each part is in a state of its own. A conflict is a transition and
not an error: the part goes back as far as the other commit requires, and everything that is still valid is kept.
"""

from __future__ import annotations

import time
from collections.abc import Container, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from app.core.catalog.values import Dataset
from app.core.feature.stagers import RestoredVersion, StagedInput
from app.core.jobs.engine import engine_tag
from app.core.jobs.kinds.declared import KINDS, instant_action
from app.core.jobs.values import Claim, Job
from app.core.timeline.values import Advance, Checkpoint, Fenced, JobOutcome, NewCommit, Overtaken, Published
from app.features.writes.errors import AggregateOverflow, DuplicateKey, RetractedRowMissing
from app.infra.files.errors import CorruptFile
from app.kernel.commit.commit_message import CommitMessage, KeyConflict, changelog_of, failed_writes
from app.kernel.commit.conflict import Conflicted
from app.kernel.commit.watermarks import watermark_text
from app.kernel.commit.write_plan import MergeTask, WriteScope
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.errors import HeadwaterError
from app.kernel.format.instant import Action, RowCounts
from app.kernel.format.operation import matches_equal_rows
from app.kernel.format.paths import attempt_name
from app.kernel.format.quarantine import QuarantineFile

_KEYS_NAMED_MAX: Final = 10


class Claimed(msgspec.Struct, frozen=True, kw_only=True):
    """The writes of a group to one dataset, in order of acceptance. `inputs`: those of the first few, read already."""

    dataset_id: str
    jobs: tuple[Job, ...]
    inputs: tuple[StagedInput, ...] = ()

    @property
    def unread(self) -> Job:
        """The next write to read."""
        return self.jobs[len(self.inputs)]

    def read(self, staged_input: StagedInput) -> Claimed | Decoded:
        """The next write has been read."""
        return _decoded_so_far(replace(self, inputs=(*self.inputs, staged_input)))

    def retained(self, job_ids: Container[str]) -> Claimed | Decoded | None:
        """Continues with these jobs only; None if none of them is here."""
        jobs = tuple(job for job in self.jobs if job.id in job_ids)
        inputs = tuple(staged_input for staged_input in self.inputs if staged_input.job.id in job_ids)
        return _decoded_so_far(replace(self, jobs=jobs, inputs=inputs)) if jobs else None


class Decoded(msgspec.Struct, frozen=True, kw_only=True):
    """All writes of the dataset are staged input."""

    dataset_id: str
    inputs: tuple[StagedInput, ...]

    @property
    def jobs(self) -> tuple[Job, ...]:
        return tuple(staged_input.job for staged_input in self.inputs)

    @property
    def evolved(self) -> DatasetDefinition | None:
        """The dataset under the schema that a write brings, the next after the one that it was read under."""
        return next(
            (staged_input.definition for staged_input in self.inputs if staged_input.definition is not None),
            None,
        )

    @property
    def restored(self) -> RestoredVersion | None:
        """The version that a restore goes back to; None for other writes. A restore is a group of its own."""
        return self.inputs[0].restored_version

    @property
    def advances(self) -> tuple[Advance, ...]:
        """The positions that the commit of a refresh moves. A refresh is a group of its own."""
        return self.inputs[0].advances

    @property
    def checkpoint(self) -> Checkpoint | None:
        """How far the commit of a round reads its source. A round is a group of its own."""
        return self.inputs[0].checkpoint

    def read_again(self) -> Claimed:
        """Discards the input, whose sources have changed."""
        return Claimed(dataset_id=self.dataset_id, jobs=self.jobs)

    def from_the_head(self) -> Claimed | Decoded:
        """Starts over at the head. A restore is read again, since it was computed against an earlier version."""
        return self if self.restored is None else self.read_again()

    def retained(self, job_ids: Container[str]) -> Decoded | None:
        """Continues with these jobs only; None if none of them is here."""
        inputs = tuple(staged_input for staged_input in self.inputs if staged_input.job.id in job_ids)
        return replace(self, inputs=inputs) if inputs else None


def _decoded_so_far(part: Claimed) -> Claimed | Decoded:
    if len(part.inputs) < len(part.jobs):
        return part
    return Decoded(dataset_id=part.dataset_id, inputs=part.inputs)


class _Input(msgspec.Struct, frozen=True, kw_only=True):
    """A state in which the input is known."""

    decoded: Decoded

    @property
    def dataset_id(self) -> str:
        return self.decoded.dataset_id

    @property
    def jobs(self) -> tuple[Job, ...]:
        return self.decoded.jobs

    @property
    def inputs(self) -> tuple[StagedInput, ...]:
        return self.decoded.inputs

    def retained(self, job_ids: Container[str]) -> Decoded | None:
        """Continues with these jobs only, from their input; None if none of them is here."""
        return self.decoded.retained(job_ids)


class Replan(_Input, frozen=True, kw_only=True):
    """Another commit changed some file groups. `messages`: of the others, which are unchanged at `version`.

    `schema_id`: the schema of the messages.
    """

    version: int
    schema_id: int
    messages: Mapping[str, CommitMessage]


class Basis(msgspec.Struct, frozen=True, kw_only=True):
    """The basis of a plan. `dataset`: under the schema after the commit. `messages`: those that are still valid."""

    decoded: Decoded
    dataset: Dataset
    version: int
    messages: Mapping[str, CommitMessage] = {}


def basis_of(part: Decoded | Replan, current: Dataset) -> Basis | Claimed:
    """The basis for planning the part at the current dataset; Claimed if its input must be read again."""
    decoded = part if isinstance(part, Decoded) else part.decoded
    new_definition, schema_id = decoded.evolved, current.definition.schema.id
    if new_definition is not None and new_definition.schema.id <= schema_id:
        # Another write has merged this schema, or the schema of the dataset has changed since.
        return decoded.read_again()
    dataset = current if new_definition is None else replace(current, definition=new_definition)
    if decoded.restored is not None:
        # The rows were computed against that version.
        return Basis(decoded=decoded, dataset=dataset, version=decoded.restored.read_version)
    if isinstance(part, Replan) and part.schema_id >= schema_id:
        return Basis(decoded=decoded, dataset=dataset, version=part.version, messages=part.messages)
    return Basis(decoded=decoded, dataset=dataset, version=current.version)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a commit is planned on: the dataset as it is found, at a version.

    `scope`: the rows that the write removes. `read_scope`: the rows that must not have changed since. `noop`: the write
    has no effect.
    """

    dataset: Dataset
    version: int
    scope: WriteScope | None = None
    read_scope: WriteScope | None = None
    noop: bool = False


class Planned(_Input, frozen=True, kw_only=True):
    """`tasks`: of the file groups to merge. `messages`: of those that were merged before and are still valid."""

    plan: Plan
    tasks: tuple[MergeTask, ...]
    messages: Mapping[str, CommitMessage] = {}

    def merged(self, messages: Sequence[CommitMessage]) -> Merged | Refused:
        """The tasks have ended with these messages."""
        all_messages = {**self.messages, **{message.file_group: message for message in messages}}
        conflicts = failed_writes(list(all_messages.values()))
        if conflicts:
            jobs = self.jobs
            errors = [
                (jobs[number], _refusal(jobs[number], conflicts[number])) for number in sorted(conflicts)
            ]
            return Refused(decoded=self.decoded, errors=tuple(errors))
        return Merged(decoded=self.decoded, plan=self.plan, messages=all_messages)


class Refused(_Input, frozen=True, kw_only=True):
    """Some of the writes fail: their rows conflict with those of the table or of earlier writes of the group."""

    errors: tuple[tuple[Job, HeadwaterError], ...]


class Merged(_Input, frozen=True, kw_only=True):
    """Every file group has its message."""

    plan: Plan
    messages: Mapping[str, CommitMessage]

    def conflicted(self, file_groups: Container[str], head_version: int) -> Replan | Decoded | Claimed:
        """These file groups were changed up to `head_version`. With a scope all of it is read again."""
        if self.plan.read_scope is not None:
            return self.decoded.from_the_head()
        return Replan(
            decoded=self.decoded,
            version=head_version,
            schema_id=self.plan.dataset.definition.schema.id,
            messages=self._without(file_groups),
        )

    def _without(self, file_groups: Container[str]) -> dict[str, CommitMessage]:
        """The messages of the other file groups, except for those that share a changelog file with one of these."""
        void = changelog_of(message for group, message in self.messages.items() if group in file_groups)
        return {
            group: message
            for group, message in self.messages.items()
            if group not in file_groups and not any(file in void for file in message.changelog)
        }

    def commit(self) -> NewCommit:
        """The commit to publish. Raises HeadwaterError unless every input row is accounted for."""
        new_definition, restore = self.decoded.evolved, self.decoded.restored
        messages = [self.messages[name] for name in sorted(self.messages)]
        if restore is not None:
            messages = restore.plan.with_listings(self.messages)
        expected_versions = [job.write.options.expected_version for job in self.jobs]
        return NewCommit(
            dataset_id=self.dataset_id,
            action=instant_action(self.jobs[0].write) or Action.COMMIT,
            read_version=self.plan.version,
            schema_id=self.plan.dataset.definition.schema.id - (new_definition is not None),
            # A write without effect on the table does not change the schema either.
            definition=None if self.plan.noop else new_definition,
            outcomes=tuple(
                self._outcome(number, staged_input) for number, staged_input in enumerate(self.inputs)
            ),
            messages=tuple(messages),
            scope=self.plan.read_scope,
            expected_version=next((version for version in expected_versions if version is not None), None),
            advances=self.decoded.advances,
            checkpoint=self.decoded.checkpoint,
            ends_partitions=any(job.write.options.partition_done for job in self.jobs),
            batch_tags=self._batch_tags(),
        )

    def _batch_tags(self) -> int | None:
        policy = self.plan.dataset.definition.services.batch_tags
        if policy is None or all(job.write.options.writer_id is None for job in self.jobs):
            return None
        return policy.keep

    def _outcome(self, number: int, staged_input: StagedInput) -> JobOutcome:
        input_rows = sum(file.rows for file in staged_input.files)
        counts = RowCounts(unchanged=input_rows if self.plan.noop else 0)
        task_files: list[QuarantineFile] = []
        for message in self.messages.values():
            counts += message.counts.get(number, RowCounts())
            task_files += message.quarantined.get(number, ())
        by_value = matches_equal_rows(staged_input.job.write.operation, self.plan.dataset.definition)
        _check_sum(
            staged_input.job,
            input_rows,
            counts,
            sum(file.row_count for file in task_files),
            has_scope=self.plan.scope is not None and not by_value,
        )
        quarantine_files = (*staged_input.quarantine_files, *task_files)
        return JobOutcome(
            claim=staged_input.job.claim,
            instant_id=staged_input.job.instant,
            counts=replace(counts, quarantined=sum(file.row_count for file in quarantine_files)),
            quarantine_files=quarantine_files,
            result=self._result(number, staged_input),
            metadata=staged_input.job.write.options.metadata,
            timings=staged_input.job.timings,
        )

    def _result(self, number: int, staged_input: StagedInput) -> dict[str, Any] | None:
        """The result of a write: that of its input, the fields that it ignored, and its late rows where the dataset
        has a watermark.
        """
        if staged_input.restored_version is not None:
            return staged_input.restored_version.result
        result = {**(staged_input.result or {})}
        if staged_input.ignored_fields:
            result["ignored_fields"] = list(staged_input.ignored_fields)
        lateness = [message.lateness for message in self.messages.values() if message.lateness is not None]
        if not lateness:
            return result or None
        # All are the same in a commit that is published.
        before = lateness[0].before
        late = {
            "rows": sum(each.rows.get(number, 0) for each in lateness),
            "watermark": None if before is None else watermark_text(before),
        }
        return {**result, "late": late}


Part = Claimed | Decoded | Replan | Planned | Merged


class Committed(msgspec.Struct, frozen=True, kw_only=True):
    """The writes are durable: `versions` of their datasets. `more`: other writes of these wait."""

    jobs: tuple[Job, ...]
    versions: Mapping[str, int]
    more: bool


class WriteGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The writes of one claim: of one dataset, or of a transaction, with one write for each of its datasets.

    `tag`: identifies the tasks of the group in the engine. `together`: its writes are one transaction. `round`: counts
    how often a part went back. `replans`: counts the conflicts. `winners`: the version that won the last one, by
    dataset.
    """

    tenant_id: str
    tag: str
    together: bool
    parts: tuple[Part, ...]
    round: int = 0
    replans: int = 0
    winners: dict[str, int] = {}

    @classmethod
    def of(cls, jobs: Sequence[Job]) -> WriteGroup:
        """`jobs`: in order of acceptance."""
        leader = jobs[0]
        jobs_by_dataset: dict[str, list[Job]] = {}
        for job in jobs:
            jobs_by_dataset.setdefault(job.dataset_id, []).append(job)
        return cls(
            tenant_id=leader.tenant_id,
            tag=engine_tag(leader),
            together=leader.transaction_id is not None,
            parts=tuple(
                Claimed(dataset_id=dataset, jobs=tuple(each)) for dataset, each in jobs_by_dataset.items()
            ),
        )

    @property
    def jobs(self) -> tuple[Job, ...]:
        return tuple(job for part in self.parts for job in part.jobs)

    @property
    def claims(self) -> list[Claim]:
        return [job.claim for job in self.jobs]

    @property
    def staged_paths(self) -> list[str]:
        """The files of the staged rows of its writes, which nothing reads but its tasks."""
        files = (file for part in self.parts for staged_input in part.inputs for file in staged_input.files)
        return [file.path for file in files if file.content is None]

    @property
    def attempt(self) -> str:
        """A part of file names: another instant, epoch or round never writes the same path."""
        # The instant of a write that has not ended: files of ended instants are removed.
        leader = self.jobs[0]
        return attempt_name(leader.instant, leader.epoch, self.round)

    @property
    def next(self) -> Part | None:
        """The part to work on next; None once all are merged. All parts are decoded before the first is merged."""
        unread_parts = (part for part in self.parts if isinstance(part, Claimed))
        unmerged_parts = (part for part in self.parts if not isinstance(part, Merged))
        return next(unread_parts, None) or next(unmerged_parts, None)

    @property
    def stage(self) -> str:
        """The stage of the group for the progress of its jobs."""
        match self.next:
            case Claimed() as part:
                return KINDS[part.unread.write.kind].input_stage
            case None:
                return "commit"
            case _:
                return "merge"

    def moved(self, part: Part) -> WriteGroup:
        """Replaces a part by its next state."""
        [before] = [each for each in self.parts if each.dataset_id == part.dataset_id]
        back = _RANKS[type(part)] < _RANKS[type(before)]
        parts = tuple(part if each is before else each for each in self.parts)
        return replace(self, parts=parts, round=self.round + back)

    def fenced(self, fence: Fenced) -> WriteGroup:
        """The claims of the other jobs are void. A transaction is left as a whole to the worker that claims it next."""
        return self._retained(set() if self.together else fence.valid_ids)

    def _retained(self, job_ids: Container[str]) -> WriteGroup:
        """Keeps these jobs only. Nothing that was merged stays valid, since it includes rows of the others."""
        states = [part.retained(job_ids) for part in self.parts]
        parts = tuple(part for part in states if part is not None)
        return replace(self, parts=parts, round=self.round + 1)

    def without(self, *ended_jobs: Job) -> WriteGroup:
        """Removes jobs that have ended; with a job of a transaction all of its jobs."""
        job_ids = set() if self.together else {job.id for job in self.jobs} - {job.id for job in ended_jobs}
        return self._retained(job_ids)

    def commits(self, timings: dict[str, int] | None = None) -> list[NewCommit]:
        """The commits to publish together, once all parts are merged. `timings`: milliseconds by earlier stage."""
        began = time.perf_counter()
        return [
            replace(
                part.commit(),
                timings=timings or {},
                began=began,
                replans=self.replans,
                winner_version=self.winners.get(part.dataset_id),
            )
            for part in self.parts
            if isinstance(part, Merged)
        ]

    def committed(self, commits: Sequence[Published]) -> Committed:
        """The commits have been published, in the order of the parts."""
        return Committed(
            jobs=self.jobs,
            versions={part.dataset_id: each.version for part, each in zip(self.parts, commits, strict=True)},
            more=any(each.more for each in commits),
        )

    def replan(self, race: Conflicted | Overtaken) -> WriteGroup:
        """Goes back after a conflict. What the other commit did not change is kept."""
        [part] = [each for each in self.parts if each.dataset_id == race.dataset_id]
        if not isinstance(part, Merged):
            raise TypeError(f"a commit of {part.dataset_id} was lost that was not merged")
        winners = self.winners
        match race:
            case Conflicted(file_groups=file_groups, head_version=head):
                back = part.conflicted(file_groups, head)
                winners = winners | {race.dataset_id: race.winner_version}
            case Overtaken():
                # The inputs may have more changes by now.
                back = part.decoded.read_again()
        return replace(self.moved(back), replans=self.replans + 1, winners=winners)

    def affected(self, error: HeadwaterError) -> list[Job]:
        """The writes that the error concerns, if known: the one with the damaged file, or that of the dataset."""
        damaged_path = error.facts.get("path") if isinstance(error, CorruptFile) else None
        reading = [
            staged_input.job
            for part in self.parts
            for staged_input in part.inputs
            if damaged_path is not None and damaged_path in [file.path for file in staged_input.files]
        ]
        if reading or not self.together:
            return reading
        dataset_id = error.facts.get("dataset_id") if self.next is None else self.next.dataset_id
        return [job for job in self.jobs if job.dataset_id == dataset_id]


_RANKS: Final = {Claimed: 0, Decoded: 1, Replan: 1, Planned: 2, Merged: 3}


def _check_sum(job: Job, input_rows: int, counts: RowCounts, refused_rows: int, *, has_scope: bool) -> None:
    """Raises HeadwaterError unless every input row is accounted for. Rows that a scope removes are extra."""
    output_rows = counts.inserted + counts.updated + counts.unchanged + counts.late + refused_rows
    if not has_scope:
        output_rows += counts.deleted
    if output_rows != input_rows:
        raise HeadwaterError(
            f"job {job.id}: {input_rows} rows went in, {output_rows} came out; nothing was published"
        )


def _refusal(job: Job, conflicts: Sequence[KeyConflict]) -> HeadwaterError:
    """The error of a write with keys that exist, with sums that overflow, or that retracts rows that are not there."""
    count = sum(conflict.count for conflict in conflicts)
    keys = [key for conflict in conflicts for key in conflict.keys][:_KEYS_NAMED_MAX]
    field = next(
        (conflict.overflow_field for conflict in conflicts if conflict.overflow_field is not None), None
    )
    if field is not None:
        words = "1 key" if count == 1 else f"{count:,} keys"
        return AggregateOverflow(
            f"{words} would have a sum that {field!r} cannot hold; nothing was written",
            field=field,
            keys=keys,
            count=count,
        )
    absent = sorted(row for conflict in conflicts for row in conflict.absent)[:_KEYS_NAMED_MAX]
    if absent:
        words = "row of the write retracts" if count == 1 else "rows of the write retract"
        return RetractedRowMissing(
            f"{count:,} {words} a row that is not in the table, the first of them row {absent[0]}; nothing"
            " was written. A retraction has all values of the row that it removes",
            rows=absent,
            count=count,
        )
    operation = job.write.operation.value
    words = f"1 key of the {operation} is" if count == 1 else f"{count:,} keys of the {operation} are"
    return DuplicateKey(
        f"{words} in the table already; nothing was written. Use upsert to update {'it' if count == 1 else 'them'}",
        keys=keys,
        duplicates=count,
    )
