"""Parts of a group of writes in each of their states."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from app.core.catalog.values import Dataset
from app.core.feature.stagers import RestoredVersion, StagedInput
from app.core.jobs.kinds.write import WriteRequest
from app.core.jobs.values import Job, JobState, Progress
from app.features.writes.attempt import Claimed, Decoded, Merged, Plan, Planned
from app.infra.identifiers import new_id, new_instant_id
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.restore_plan import plan_restore
from app.kernel.commit.write_options import WriteOptions
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.new_dataset import CreateField
from app.kernel.format.definition.schema_change import AddField
from app.kernel.format.instant import RowCounts
from app.kernel.format.operation import Operation
from app.kernel.format.rows.staged import StagedBatch, StagedFile
from tests.support.lakehouse import definition

NOW: Final = datetime(2026, 11, 21, tzinfo=UTC)
HEAD: Final = 7
DATASET: Final = Dataset(
    id="d",
    tenant_id="t",
    definition=definition(),
    version=HEAD,
    next_offset=0,
    created_at=NOW,
    committed_at=None,
)
EVOLVED: Final = evolve(definition(), [AddField(field=CreateField(name="more", type="string"))])
RESTORED: Final = RestoredVersion(plan=plan_restore([], []), read_version=3, result={"to_version": 1})


def write_job(
    dataset_id: str = "d",
    *,
    operation: Operation = Operation.UPSERT,
    transaction_id: str | None = None,
    options: WriteOptions | None = None,
    **request: Any,
) -> Job:
    made = WriteRequest(operation=operation, options=options or WriteOptions(), **request)
    return Job(
        id=new_id(), tenant_id="t", dataset_id=dataset_id, dataset_name="orders",
        instant_id=new_instant_id(), kind=made.kind, state=JobState.RUNNING, request=made,
        progress=Progress(stage="claimed"), attempts=1, epoch=1,
        committed_version=None, first_offset=None, last_offset=None, rows=RowCounts(), error=None, created_at=NOW,
        started_at=None, finished_at=None, transaction_id=transaction_id,
    )  # fmt: skip


def staged(rows: int, path: str = "s", batches: Sequence[StagedBatch] = ()) -> StagedFile:
    return StagedFile(path=path, size_bytes=1, checksum="c", rows=rows, batches=tuple(batches))


def written(job: Job, rows: int = 1, **more: Any) -> StagedInput:
    """The input of a write of this number of rows."""
    return StagedInput(job=job, files=(staged(rows, f"{job.id}.arrow"),), **more)


def claimed(*jobs: Job, dataset_id: str = "d") -> Claimed:
    return Claimed(dataset_id=dataset_id, jobs=jobs)


def decoded(*inputs: StagedInput, dataset_id: str = "d") -> Decoded:
    return Decoded(dataset_id=dataset_id, inputs=inputs)


def planned(before: Decoded, messages: Sequence[CommitMessage] = (), **plan: Any) -> Planned:
    """Planned at the head, with these messages from before."""
    return Planned(
        decoded=before,
        plan=Plan(**{"dataset": DATASET, "version": HEAD} | plan),
        tasks=(),
        messages={message.file_group: message for message in messages},
    )


def merged(before: Decoded, *messages: CommitMessage, **plan: Any) -> Merged:
    after = planned(before, **plan).merged(messages)
    assert isinstance(after, Merged)
    return after


def message(file_group: str, *counts: RowCounts, **more: Any) -> CommitMessage:
    """Of a file group; `counts` are those of the writes, from the first one on."""
    return CommitMessage(file_group=file_group, counts=dict(enumerate(counts)), **more)
