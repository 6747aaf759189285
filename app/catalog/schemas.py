"""The JSON forms of what the API answers with."""

from __future__ import annotations

from datetime import datetime

import msgspec

from app.catalog.values import Dataset, SchemaVersion, Upload
from app.format.dataset import Aggregate, Bucket, Changelog, IndexType, MergeMode, SequenceGroup, TableType
from app.format.policies import TableServices
from app.format.schema.schema import Field


class ColumnResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a dataset."""

    name: str
    type: str
    nullable: bool
    doc: str | None


class ColumnsResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of a dataset, in order."""

    fields: list[ColumnResponse]


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


class IndexResponse(msgspec.Struct, frozen=True, kw_only=True, rename={"type_": "type"}):
    """How keys are found among the files of a file group."""

    type_: IndexType


class DatasetResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset. `version` is that of its last commit, `next_offset` the number of changes so far.

    Changes before `earliest_offset`, and versions before `earliest_version`, are kept no longer.
    """

    id: str
    name: str
    schema: ColumnsResponse
    record_key: list[str]
    ordering_field: str | None
    event_time_field: str | None
    partition_by: list[str]
    table_type: TableType
    bucket: Bucket
    index: IndexResponse | None
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

    items: list[DatasetResponse]
    next_page_token: str | None


class SchemaResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A schema with the ids that its fields keep for ever. `id` counts the dataset's schemas from 1."""

    id: int
    fields: list[Field]
    created_at: datetime


class SchemaPage(msgspec.Struct, frozen=True, kw_only=True):
    """Schemas of a dataset, the latest first."""

    items: list[SchemaResponse]
    next_page_token: str | None


class UploadResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An upload, to be named by a write. `checksum` is XXH3-128, hexadecimal."""

    id: str
    size_bytes: int
    checksum: str
    created_at: datetime


def dataset_path(dataset: Dataset) -> str:
    """The path of a dataset's resource."""
    return f"/datasets/{dataset.id}"


def dataset_response(dataset: Dataset) -> DatasetResponse:
    """The JSON form of a dataset."""
    definition = dataset.definition
    path = dataset_path(dataset)
    columns = [
        ColumnResponse(name=field.name, type=field.type, nullable=field.nullable, doc=field.doc)
        for field in definition.schema.fields
    ]
    return DatasetResponse(
        id=dataset.id,
        name=definition.name,
        schema=ColumnsResponse(fields=columns),
        record_key=list(definition.record_key),
        ordering_field=definition.ordering_field,
        event_time_field=definition.event_time_field,
        partition_by=list(definition.partition_by),
        table_type=definition.table_type,
        bucket=definition.bucket,
        index=None if definition.index is None else IndexResponse(type_=definition.index),
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


def schema_response(version: SchemaVersion) -> SchemaResponse:
    """The JSON form of a schema."""
    schema = version.schema
    return SchemaResponse(id=schema.id, fields=list(schema.fields), created_at=version.created_at)


def upload_response(upload: Upload) -> UploadResponse:
    """The JSON form of an upload."""
    return UploadResponse(
        id=upload.id, size_bytes=upload.size_bytes, checksum=upload.checksum, created_at=upload.created_at
    )
