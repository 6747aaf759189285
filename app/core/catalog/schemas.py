"""The JSON of datasets, schemas and uploads, and the options of their lists."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Annotated, Final

import msgspec

from app.core.catalog.impact import BrokenReader, ColumnReader, ReaderKind
from app.core.catalog.values import Dataset, DatasetFilter, ReadingExample, SchemaVersion, Upload
from app.http.parameters.page_options import PageOptions
from app.kernel.format.dataset import (
    Aggregate,
    Bucket,
    Changelog,
    Deletes,
    IndexType,
    MergeMode,
    SequenceGroup,
    TableType,
    Watermark,
)
from app.kernel.format.definition.settings import (
    LABEL_KEY,
    LABEL_VALUE,
    NOTES,
    DatasetSettings,
    table_settings,
)
from app.kernel.format.identifiers import PATTERN_END
from app.kernel.format.member_errors import EXPECTED
from app.kernel.format.policies import TableServices
from app.kernel.format.schema.schema import Field

_LABELS_MAX: Final = 16
_NAME_MAX: Final = 256
_Label = Annotated[
    str,
    msgspec.Meta(
        pattern=rf"^{LABEL_KEY}:{LABEL_VALUE}{PATTERN_END}",
        examples=["team:ops"],
        extra_json_schema={EXPECTED: "a label in the form `key:value`"},
    ),
]


class ListDatasetsOptions(PageOptions, frozen=True, kw_only=True):
    """The options of `list_datasets`."""

    label: Annotated[list[_Label], msgspec.Meta(max_length=_LABELS_MAX)] | None = None
    """Labels in the form `key:value`; repeated: datasets that have all of them."""
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=_NAME_MAX)] | None = None
    """Datasets with this name: `*` stands for any characters, every other character for itself."""

    @property
    def selection(self) -> DatasetFilter:
        """The filter of the list."""
        pairs = [text.partition(":") for text in self.label or ()]
        return DatasetFilter(name=self.name, labels=tuple((key, value) for key, _, value in pairs))


class ListSchemasOptions(PageOptions, frozen=True, kw_only=True):
    """The options of `list_dataset_schemas`."""


class Cascade(str, Enum):
    """What a change of the schema does to what it breaks."""

    PAUSE = "pause"


class ChangeDatasetOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `change_dataset`."""

    cascade: Cascade | None = None
    """`pause`: views, sources, exports and webhooks that a change of the schema breaks pause. Without it such a change
    is refused.
    """
    dry_run: bool = False
    """Changes nothing: the response is the dataset as the change would make it, with what it would break, or the
    problem for which the change would be refused.
    """


class ColumnResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a dataset."""

    name: str
    """Its name."""
    type: str
    """Its type."""
    nullable: bool
    """Whether it may contain nulls."""
    doc: str | None
    """Its description."""


class ColumnsResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of a dataset, in order."""

    fields: list[ColumnResponse]
    """The columns."""


class DatasetLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """The paths of a dataset's resources."""

    self_: Annotated[str, msgspec.Meta(examples=["/datasets/01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2"])]
    """The dataset."""
    writes: str
    """Its writes."""
    uploads: str
    """Its uploads."""
    changes: str
    """Its feed of changes."""
    rows: str
    """Its rows."""
    timeline: str
    """Its timeline."""
    files: str
    """Its data files."""
    partitions: str
    """Its partitions."""
    statistics: str
    """The statistics of its columns."""


class IndexResponse(msgspec.Struct, frozen=True, kw_only=True, rename={"type_": "type"}):
    """How keys are found among the files of a file group."""

    type_: IndexType
    """The kind of index."""


class DatasetResponse(DatasetSettings, frozen=True, kw_only=True):
    """A dataset."""

    id: str
    """Its id, which it keeps when it is renamed."""
    schema: ColumnsResponse
    """Its columns."""
    record_key: list[str]
    """The fields that identify a row; empty for an append-only dataset."""
    ordering_field: str | None
    """Of two rows with one key, the one with the larger value of this field wins; null for the one written last."""
    event_time_field: str | None
    """The field with the event time of a row; null for none."""
    partition_by: list[str]
    """The fields, with their transforms, that the table is partitioned by."""
    table_type: TableType
    """How updates are stored."""
    bucket: Bucket
    """How rows are distributed to file groups."""
    index: IndexResponse | None
    """How keys are found among the files of a file group; null without a key."""
    merge_mode: MergeMode
    """How rows with the same key are merged."""
    sequence_groups: list[SequenceGroup]
    """Groups of fields of a partial merge, each with an ordering field of its own."""
    aggregates: dict[str, Aggregate]
    """How the values of each field are aggregated."""
    delete_marker: str | None
    """A boolean field: an upserted row in which it is true deletes its key; null for none."""
    deletes: Deletes
    """What deletes leave."""
    changelog: Changelog
    """Settings of the change feed."""
    services: TableServices
    """The maintenance policies of the dataset."""
    watermark: Watermark | None
    """What the watermark of the feed is made of; null for none."""
    watermark_at: datetime | None
    """The watermark: rows with earlier event times are late. Null before the first event time, and without one."""
    version: int
    """The version of its last commit; its ETag."""
    next_offset: int
    """The number of changes so far: the offset of the next one."""
    earliest_offset: int
    """The first change that is kept."""
    earliest_version: int
    """The first version that is kept."""
    created_at: datetime
    """When it was registered."""
    committed_at: datetime | None
    """When its last commit was made; null before the first."""
    links: DatasetLinks
    """The paths of its resources."""
    broken: list[BrokenReader] | msgspec.UnsetType = msgspec.UNSET
    """In the response to a change: what the change of the schema has broken, and paused if it can pause. Absent if it
    has broken nothing.
    """
    read_with: list[ReadingExample] | msgspec.UnsetType = msgspec.UNSET
    """In the response to a request for one dataset: how engines read it as an Iceberg table."""


class DatasetPage(msgspec.Struct, frozen=True, kw_only=True):
    """Datasets by name."""

    items: list[DatasetResponse]
    """The datasets of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class ColumnReaderResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Something that names columns of the dataset."""

    kind: ReaderKind
    """What it is. A `key` names columns in its grants."""
    id: str
    """Its id."""
    name: Annotated[str, msgspec.Meta(examples=["totals"])] | None
    """Its name; of a webhook its description, or the host of its URL; null for one without."""
    columns: Annotated[list[str], msgspec.Meta(examples=[["note"]])]
    """The columns that it names, in alphabetical order."""
    every_column: bool
    """Whether it has all other columns, too, whichever there are."""


class DatasetSchemaResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A schema with the permanent ids of its fields."""

    id: Annotated[int, msgspec.Meta(examples=[1])]
    """Its id: the schemas of a dataset are counted from 1."""
    fields: list[Field]
    """The columns, in order."""
    created_at: datetime
    """When it became the schema of the dataset."""
    readers: list[ColumnReaderResponse] | msgspec.UnsetType = msgspec.UNSET
    """What names columns of the dataset, as far as the key may see it. Absent of an earlier schema, and in lists."""


class SchemaPage(msgspec.Struct, frozen=True, kw_only=True):
    """Schemas of a dataset, the latest first."""

    items: list[DatasetSchemaResponse]
    """The schemas of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class UploadResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Stored bytes that a write can refer to."""

    id: str
    """Its id."""
    size_bytes: int
    """The number of bytes."""
    checksum: str
    """The XXH3-128 of the bytes, hexadecimal."""
    created_at: datetime
    """When it was stored."""


def dataset_path(dataset: Dataset) -> str:
    """The path of a dataset's resource."""
    return f"/datasets/{dataset.id}"


def dataset_response(
    dataset: Dataset, broken: Sequence[BrokenReader] = (), read_with: Sequence[ReadingExample] = ()
) -> DatasetResponse:
    """The JSON form of a dataset. `broken`: what the change of the request has broken."""
    definition = dataset.definition
    path = dataset_path(dataset)
    columns = [
        ColumnResponse(name=field.name, type=field.type, nullable=field.nullable, doc=field.doc)
        for field in definition.schema.fields
    ]
    return DatasetResponse(
        id=dataset.id,
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
        deletes=definition.deletes,
        changelog=definition.changelog,
        services=definition.services,
        watermark=definition.watermark,
        watermark_at=dataset.watermark,
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
        broken=list(broken) if broken else msgspec.UNSET,
        read_with=list(read_with) if read_with else msgspec.UNSET,
        **{name: getattr(dataset, name) for name in NOTES},
        **table_settings(definition),
    )


def schema_response(
    version: SchemaVersion, readers: Sequence[ColumnReader] | None = None
) -> DatasetSchemaResponse:
    """The JSON form of a schema. `readers`: what names its columns; None if it is not shown."""
    schema = version.schema
    return DatasetSchemaResponse(
        id=schema.id,
        fields=list(schema.fields),
        created_at=version.created_at,
        readers=msgspec.UNSET if readers is None else [_reader_response(each) for each in readers],
    )


def _reader_response(reader: ColumnReader) -> ColumnReaderResponse:
    return ColumnReaderResponse(
        kind=reader.kind,
        id=reader.id,
        name=reader.name,
        columns=list(reader.columns),
        every_column=reader.every_column,
    )


def upload_response(upload: Upload) -> UploadResponse:
    """The JSON form of an upload."""
    return UploadResponse(
        id=upload.id, size_bytes=upload.size_bytes, checksum=upload.checksum, created_at=upload.created_at
    )
