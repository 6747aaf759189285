"""The JSON forms of what the API answers with."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec

from app.api.problems import fault_document
from app.lake.dataset import Aggregate, Bucket, Changelog, IndexType, MergeMode, SequenceGroup, TableType
from app.lake.instant import Action, InstantState, RowCounts
from app.lake.operation import Operation
from app.lake.schema import Field
from app.lake.table_services import TableServices
from app.services.model import Dataset, Job, JobKind, JobState, Progress, SchemaVersion, Upload, WriteRequest
from app.services.read_model import InstantRecord
from app.services.transaction_model import Transaction


class ColumnView(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a dataset."""

    name: str
    type: str
    nullable: bool
    doc: str | None


class ColumnsView(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of a dataset, in order."""

    fields: list[ColumnView]


class DatasetLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """Where a dataset's resources are."""

    self_: str
    writes: str
    uploads: str
    changes: str
    rows: str
    timeline: str
    files: str
    partitions: str
    statistics: str


class IndexView(msgspec.Struct, frozen=True, kw_only=True, rename={"type_": "type"}):
    """How keys are found among the files of a file group."""

    type_: IndexType


class DatasetView(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset. `version` is that of its last commit, `next_offset` the number of changes so far.

    Changes before `earliest_offset`, and versions before `earliest_version`, are kept no longer.
    """

    id: str
    name: str
    schema: ColumnsView
    record_key: list[str]
    ordering_field: str | None
    event_time_field: str | None
    partition_by: list[str]
    table_type: TableType
    bucket: Bucket
    index: IndexView | None
    merge_mode: MergeMode
    sequence_groups: list[SequenceGroup]
    aggregates: dict[str, Aggregate]
    delete_marker: str | None
    changelog: Changelog
    target_bytes: int
    services: TableServices
    version: int
    next_offset: int
    earliest_offset: int
    earliest_version: int
    created_at: datetime
    committed_at: datetime | None
    links: DatasetLinks


class DatasetPage(msgspec.Struct, frozen=True, kw_only=True):
    """Datasets by name."""

    items: list[DatasetView]
    next_page_token: str | None


class SchemaView(msgspec.Struct, frozen=True, kw_only=True):
    """A schema with the ids that its fields keep for ever. `id` counts the dataset's schemas from 1."""

    id: int
    fields: list[Field]
    created_at: datetime


class SchemaPage(msgspec.Struct, frozen=True, kw_only=True):
    """Schemas of a dataset, the latest first."""

    items: list[SchemaView]
    next_page_token: str | None


class UploadView(msgspec.Struct, frozen=True, kw_only=True):
    """An upload, to be named by a write. `checksum` is XXH3-128, hexadecimal."""

    id: str
    size_bytes: int
    checksum: str
    created_at: datetime


class JobLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """Where a job's resources are."""

    self_: str
    events: str
    dataset: str
    transaction: str | None


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """RFC 9457. `type` is `/problems/<code>`; further members carry the facts."""

    type: str
    title: str
    status: int
    detail: str
    instance: str | msgspec.UnsetType = msgspec.UNSET


PROBLEM = msgspec.Meta(extra_json_schema={"$ref": "#/components/schemas/Problem"})


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """A job. `first_offset`–`last_offset` are the changes of its commit, which it may share with writes accepted
    at the same time; `error` says why it failed. Exports and verifications have no `operation`, but a `result`.
    `actor` is the id of the API key that asked for it, null for what the service does by itself.
    """

    id: str
    kind: JobKind
    state: JobState
    operation: Operation | None
    progress: Progress
    attempts: int
    committed_version: int | None
    first_offset: int | None
    last_offset: int | None
    rows: RowCounts
    result: dict[str, Any] | None
    error: Annotated[dict[str, Any], PROBLEM] | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    actor: str | None
    links: JobLinks


class TransactionLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """Where a transaction is."""

    self_: str


class TransactionView(msgspec.Struct, frozen=True, kw_only=True):
    """Writes to several datasets that happen together or not at all.

    `jobs`: in the order of the request; they end together. `error`: what made the one fail that failed them all.
    """

    id: str
    state: JobState
    jobs: list[JobView]
    error: Annotated[dict[str, Any], PROBLEM] | None
    created_at: datetime
    links: TransactionLinks


class InstantView(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a timeline: an attempt to change the dataset.

    `actor` is the id of the API key that asked for it, null for what the service does by itself; `parameters` what the
    request said beside its operation; `error` why it failed. Files and bytes are those of its version, which instants
    that were committed together share.
    """

    id: str
    action: Action
    operation: str
    state: InstantState
    job_id: str | None
    transaction_id: str | None
    actor: str | None
    actor_name: str | None
    writer_id: str | None
    batch_id: int | None
    parameters: dict[str, Any]
    version: int | None
    schema_id: int | None
    requested_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    rows: RowCounts
    files_added: int
    files_removed: int
    bytes_added: int
    bytes_removed: int
    first_offset: int | None
    last_offset: int | None
    error: Annotated[dict[str, Any], PROBLEM] | None


class InstantPage(msgspec.Struct, frozen=True, kw_only=True):
    """Instants, the latest request first."""

    items: list[InstantView]
    next_page_token: str | None


def dataset_path(dataset: Dataset) -> str:
    """The path of a dataset's resource."""
    return f"/datasets/{dataset.id}"


def job_path(job: Job) -> str:
    """The path of a job's resource."""
    return f"/jobs/{job.id}"


def transaction_path(transaction_id: str) -> str:
    """The path of a transaction's resource."""
    return f"/transactions/{transaction_id}"


def transaction_view(transaction: Transaction) -> TransactionView:
    """The JSON form of a transaction."""
    return TransactionView(
        id=transaction.id,
        state=transaction.state,
        jobs=[job_view(job) for job in transaction.jobs],
        error=None if transaction.error is None else fault_document(transaction.error),
        created_at=transaction.created_at,
        links=TransactionLinks(self_=transaction_path(transaction.id)),
    )


def dataset_view(dataset: Dataset) -> DatasetView:
    """The JSON form of a dataset."""
    definition = dataset.definition
    path = dataset_path(dataset)
    columns = [
        ColumnView(name=field.name, type=field.type, nullable=field.nullable, doc=field.doc)
        for field in definition.schema.fields
    ]
    return DatasetView(
        id=dataset.id,
        name=definition.name,
        schema=ColumnsView(fields=columns),
        record_key=list(definition.record_key),
        ordering_field=definition.ordering_field,
        event_time_field=definition.event_time_field,
        partition_by=list(definition.partition_by),
        table_type=definition.table_type,
        bucket=definition.bucket,
        index=None if definition.index is None else IndexView(type_=definition.index),
        merge_mode=definition.merge_mode,
        sequence_groups=list(definition.sequence_groups),
        aggregates=definition.aggregates,
        delete_marker=definition.delete_marker,
        changelog=definition.changelog,
        target_bytes=definition.target_bytes,
        services=definition.services,
        version=dataset.version,
        next_offset=dataset.next_offset,
        earliest_offset=dataset.earliest_offset,
        earliest_version=dataset.earliest_version,
        created_at=dataset.created_at,
        committed_at=dataset.committed_at,
        links=DatasetLinks(
            self_=path,
            writes=f"{path}/writes",
            uploads=f"{path}/uploads",
            changes=f"{path}/changes",
            rows=f"{path}/rows",
            timeline=f"{path}/timeline",
            files=f"{path}/files",
            partitions=f"{path}/partitions",
            statistics=f"{path}/statistics",
        ),
    )


def schema_view(version: SchemaVersion) -> SchemaView:
    """The JSON form of a schema."""
    schema = version.schema
    return SchemaView(id=schema.id, fields=list(schema.fields), created_at=version.created_at)


def upload_view(upload: Upload) -> UploadView:
    """The JSON form of an upload."""
    return UploadView(
        id=upload.id, size_bytes=upload.size_bytes, checksum=upload.checksum, created_at=upload.created_at
    )


def job_view(job: Job) -> JobView:
    """The JSON form of a job."""
    path = job_path(job)
    return JobView(
        id=job.id,
        kind=job.kind,
        state=job.state,
        operation=job.request.operation if isinstance(job.request, WriteRequest) else None,
        progress=job.progress,
        attempts=job.attempts,
        committed_version=job.committed_version,
        first_offset=job.first_offset,
        last_offset=job.last_offset,
        rows=job.rows,
        result=job.result,
        error=None if job.error is None else fault_document(job.error),
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        actor=job.actor,
        links=JobLinks(
            self_=path,
            events=f"{path}/events",
            dataset=f"/datasets/{job.dataset_id}",
            transaction=None if job.transaction_id is None else transaction_path(job.transaction_id),
        ),
    )


def instant_view(record: InstantRecord) -> InstantView:
    """The JSON form of a timeline entry."""
    values = msgspec.structs.asdict(record)
    return InstantView(**values | {"error": None if record.error is None else fault_document(record.error)})


def encode(view: Any) -> bytes:
    """The JSON text of a view; what JSON has no form for (in the facts of an error) as its text."""
    return msgspec.json.encode(view, enc_hook=str)
