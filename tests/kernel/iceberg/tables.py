"""Datasets and files that tests of Iceberg's form share."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import fastavro

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.format.file_group import ColumnStatistics
from app.kernel.iceberg.manifests import DataEntry, DeleteEntry, ManifestForm

LOCATION = "s3://hw-tables/0190163d-8694-739b-aea5-966c26f8ad91/v3"


def dataset(
    columns: dict[str, str], partition_by: Sequence[str] = (), record_key: Sequence[str] = ()
) -> DatasetDefinition:
    """A dataset with columns of these types, by name."""
    fields = tuple(
        CreateField(name=name, type=kind, nullable=name not in record_key) for name, kind in columns.items()
    )
    return define_dataset(
        CreateDataset(
            name="table",
            schema=CreateSchema(fields=fields),
            record_key=tuple(record_key),
            partition_by=tuple(partition_by),
        )
    )


def form_of(definition: DatasetDefinition, format_version: int = 3) -> ManifestForm:
    """The form of manifests of a dataset that has had one schema."""
    return ManifestForm(
        definition=definition,
        schemas={definition.schema.id: definition.schema},
        format_version=format_version,
    )


def data_entry(
    number: int,
    *,
    partition: str = "",
    version: int = 1,
    rows: int = 10,
    statistics: dict[str, ColumnStatistics] | None = None,
    schema_id: int = 1,
) -> DataEntry:
    """A data file with a path of its own."""
    return DataEntry(
        path=f"{LOCATION}/data/0/{partition}/{number}.parquet",
        size_bytes=1_000 + number,
        row_count=rows,
        partition_path=partition,
        schema_id=schema_id,
        statistics=statistics or {},
        written_version=version,
    )


def delete_entry(
    data: DataEntry, *, version: int, vector_bytes: int | None, cardinality: int = 3
) -> DeleteEntry:
    """The deleted rows of a data file since a version."""
    return DeleteEntry(
        path=f"{data.path}.deletes",
        size_bytes=400,
        data_path=data.path,
        partition_path=data.partition_path,
        cardinality=cardinality,
        added_version=version,
        vector_bytes=vector_bytes,
    )


def avro_records(content: bytes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The metadata and the records of an Avro file, as fastavro reads them."""
    reader = fastavro.reader(BytesIO(content))
    records: list[Any] = list(reader)
    return dict(reader.metadata), records
