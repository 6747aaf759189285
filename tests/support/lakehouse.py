"""Small values of the table format, for tests that care what is done with them, not what is in them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import msgspec

from app.core.jobs.kinds.write import WriteRequest
from app.core.jobs.values import Claim, ClaimRules, Job, NewJob
from app.core.timeline.repository.timeline import TimelineStore
from app.core.timeline.values import Fenced, JobOutcome, NewCommit, Overtaken, Published
from app.infra.identifiers import new_id, new_instant_id
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.conflict import Conflicted
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateBucket, CreateDataset, CreateField, CreateSchema
from app.kernel.format.file_group import ChangelogFile, ColumnStatistics, DataFile, Slot, bucket_file_group
from app.kernel.format.instant import Action, RowCounts
from app.kernel.format.operation import Operation


class OneByOne(TimelineStore):
    """The timeline, with commits of one dataset published as they mostly are: by themselves."""

    def publish_one(self, tenant_id: str, commit: NewCommit) -> Published | Conflicted | Overtaken | Fenced:
        outcome = self.publish(tenant_id, [commit])
        return outcome[0] if isinstance(outcome, tuple) else outcome

    def outcome_of_one(self, tenant_id: str, dataset_id: str, job_ids: Sequence[str]) -> Published | None:
        found = self.outcome_of(tenant_id, {dataset_id: job_ids})
        return None if found is None else found[0]


RULES = ClaimRules(lease_seconds=30, group_jobs_max=10, dataset_writers_max=1, attempts_max=3)
_numbers = count(1)


def definition(name: str = "orders") -> DatasetDefinition:
    """A keyed dataset of two columns, in four buckets."""
    fields = [
        CreateField(name="id", type="int64"),
        CreateField(name="note", type="string", doc="näïve \0 text"),
    ]
    return define_dataset(
        CreateDataset(
            name=name, schema=CreateSchema(fields=fields), record_key=["id"], bucket=CreateBucket(count=4)
        )
    )


def new_job(
    dataset_id: str,
    *,
    key: str | None = None,
    request_hash: str = "hash",
    request: WriteRequest = WriteRequest(operation=Operation.UPSERT),  # noqa: B008
) -> NewJob:
    """A write to accept, an upsert by default, with new ids."""
    return NewJob(
        id=new_id(),
        instant_id=new_instant_id(),
        dataset_id=dataset_id,
        request=request,
        idempotency_key=key,
        request_hash=request_hash,
    )


def claim_of(job: Job) -> Claim:
    """The hold that a claimed job stands for."""
    return Claim(job_id=job.id, epoch=job.epoch)


def data_file(bucket: int = 0, *, rows: int = 1) -> DataFile:
    """A base file of a bucket, with a path of its own."""
    slot = Slot(partition_path="day=2024-01-01", bucket=bucket)
    return DataFile(
        path=f"data/{next(_numbers):09d}.parquet",
        size_bytes=100 * rows,
        checksum="xxh3:0123",
        row_count=rows,
        schema_id=1,
        file_group=bucket_file_group(slot),
        slot=slot,
        statistics={
            "1": ColumnStatistics(minimum=1, maximum=rows, null_count=0),
            "2": ColumnStatistics(minimum="\0"),
        },
    )


def message(
    bucket: int = 0,
    *,
    removed: Sequence[DataFile] = (),
    rows: int = 1,
    changes: int = 1,
    clustered_by: str | None = None,
) -> CommitMessage:
    """A task's result: one new base file, and `changes` rows of changelog in one file."""
    added = msgspec.structs.replace(data_file(bucket, rows=rows), clustered_by=clustered_by)
    changelog = ChangelogFile(
        path=f"changelog/{next(_numbers):09d}.parquet",
        size_bytes=50,
        checksum="xxh3:4567",
        row_count=changes,
        schema_id=1,
        file_group=added.file_group,
    )
    return CommitMessage(
        file_group=added.file_group,
        removed=tuple(file.path for file in removed),
        added=(added,),
        changelog=(changelog,) if changes else (),
    )


def written_once(bucket: int = 0, *, rows: int = 1, files: int = 1) -> CommitMessage:
    """A task's result: new base files of `rows` rows each, which are the changelog files of these rows."""
    added = [data_file(bucket, rows=rows) for _ in range(files)]
    changelog = [
        ChangelogFile(
            path=file.path,
            size_bytes=file.size_bytes,
            checksum=file.checksum,
            row_count=file.row_count,
            schema_id=file.schema_id,
            file_group=file.file_group,
        )
        for file in added
    ]
    return CommitMessage(file_group=added[0].file_group, added=tuple(added), changelog=tuple(changelog))


def commit_of(
    jobs: Sequence[Job],
    messages: Sequence[CommitMessage],
    *,
    read_version: int = 0,
    counts: Sequence[RowCounts] = (),
) -> NewCommit:
    """A commit for these jobs; each has inserted one row unless `counts` says otherwise."""
    counts = counts or [RowCounts(inserted=1)] * len(jobs)
    return NewCommit(
        dataset_id=jobs[0].dataset_id,
        action=Action.COMMIT,
        read_version=read_version,
        schema_id=1,
        outcomes=tuple(
            JobOutcome(claim=claim_of(job), instant_id=job.instant_id, counts=each)
            for job, each in zip(jobs, counts, strict=True)
        ),
        messages=tuple(messages),
    )
