"""Writes: each task of Spark uploads its rows as a Parquet file, and the driver commits all uploads in one write."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from headwater_client.client import Headwater
from headwater_client.models import Dataset, Operation, Upload
from headwater_client.problem import Problem
from headwater_client.spark.arrow_types import arrow_schema, as_stored, spark_schema
from headwater_client.spark.new_table import create_dataset, fields_of
from headwater_client.spark.options import InvalidOption, WriteSettings
from headwater_client.write_options import WriteOptions

UPLOADS_MAX = 1_000
_QUERY_ID = "sql.streaming.queryId"


@dataclass
class UploadMessage(WriterCommitMessage):
    """The upload of a task, None without rows. `query_id`: that of the streaming query."""

    upload: Upload | None
    query_id: str | None = None


class _Uploads:
    """A write in parts: uploads, which it commits together."""

    def __init__(self, settings: WriteSettings, schema: StructType, *, overwrite: bool) -> None:
        with settings.connect() as headwater:
            dataset = _dataset(headwater, settings, schema)
            self.operation, self.options = settings.resolved(
                overwrite=overwrite, keyed=bool(dataset.record_key)
            )
            self._narrowed = _narrowed(headwater, dataset)
        self.settings = settings
        self._schema = arrow_schema(schema)
        # By its id: a dataset of the same name that is registered meanwhile is another one.
        self._dataset_id = dataset.id

    def upload(self, batches: Iterator[pa.RecordBatch]) -> Upload | None:
        """Uploads the rows of a task; None without rows. Raises Problem, pyarrow.ArrowInvalid."""
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return None
        with TemporaryDirectory(prefix="headwater-") as folder, self.settings.connect() as headwater:
            path = Path(folder) / "rows.parquet"
            first = self._fitting(first)
            with pq.ParquetWriter(path, first.schema, compression="zstd") as file:
                file.write_batch(first)
                for batch in batches:
                    file.write_batch(self._fitting(batch))
            return headwater.upload(self._dataset_id, path)

    def commit(
        self,
        uploads: Sequence[Upload],
        operation: Operation,
        options: WriteOptions,
        idempotency_key: str | None,
    ) -> None:
        """Commits uploads in one write. Raises Problem, JobUnfinished, InvalidOption."""
        if len(uploads) > UPLOADS_MAX:
            raise InvalidOption(
                f"the data frame has {len(uploads)} partitions with rows, over the limit of {UPLOADS_MAX}: coalesce it"
            )
        with self.settings.connect() as headwater:
            if uploads:
                headwater.write_upload(
                    self._dataset_id,
                    uploads,
                    "parquet",
                    operation=operation,
                    options=options,
                    idempotency_key=idempotency_key,
                    wait=self.settings.wait_seconds,
                )
            elif operation in ("overwrite", "snapshot"):
                # Without rows, they remove what there is; other operations change nothing.
                headwater.write_arrow(
                    self._dataset_id,
                    self._schema.empty_table(),
                    operation=operation,
                    options=options,
                    idempotency_key=idempotency_key,
                    wait=self.settings.wait_seconds,
                )

    def _fitting(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the dataset's types where Spark has none of them. Raises pyarrow.ArrowInvalid."""
        for name, (read_as, stored) in self._narrowed.items():
            index = batch.schema.get_field_index(name)
            if index >= 0 and batch.column(index).type == read_as:
                batch = batch.set_column(index, name, as_stored(batch.column(index), stored))
        return batch


class BatchWriter(DataSourceArrowWriter):
    """Writes a data frame in one commit."""

    def __init__(self, settings: WriteSettings, schema: StructType, *, overwrite: bool) -> None:
        self._uploads = _Uploads(settings, schema, overwrite=overwrite)
        self._idempotency_key = str(uuid.uuid4())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> UploadMessage:
        """Uploads the rows of a task. An upload of a task that is repeated is never committed, and expires."""
        return UploadMessage(self._uploads.upload(iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Raises Problem, JobUnfinished, InvalidOption."""
        uploads = self._uploads
        uploads.commit(_uploaded(messages), uploads.operation, uploads.options, self._idempotency_key)


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes each micro-batch in one commit, once: the service knows its query and its number."""

    def __init__(self, settings: WriteSettings, schema: StructType, *, overwrite: bool) -> None:
        self._uploads = _Uploads(settings, schema, overwrite=overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> UploadMessage:
        """Uploads the rows of a task."""
        context = TaskContext.get()
        query_id = None if context is None else context.getLocalProperty(_QUERY_ID)
        return UploadMessage(self._uploads.upload(iterator), query_id)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Raises Problem, JobUnfinished, InvalidOption."""
        uploads = self._uploads
        known = {message.query_id for message in messages if isinstance(message, UploadMessage)} - {None}
        writer_id = uploads.settings.writer_id or next(iter(known), None)
        if writer_id is None:
            if any(_uploaded(messages)):
                raise InvalidOption("the id of the streaming query is unknown: set option writer_id")
            return
        numbered = msgspec.structs.replace(uploads.options, writer_id=writer_id, batch_id=batchId)
        uploads.commit(_uploaded(messages), uploads.operation, numbered, None)


def _uploaded(messages: Sequence[WriterCommitMessage | None]) -> list[Upload]:
    return [
        message.upload
        for message in messages
        if isinstance(message, UploadMessage) and message.upload is not None
    ]


def _dataset(headwater: Headwater, settings: WriteSettings, schema: StructType) -> Dataset:
    try:
        return headwater.get_dataset(settings.path)
    except Problem as problem:
        if not settings.create or problem.status != 404:
            raise
    return create_dataset(headwater, settings, fields_of(schema))


def _narrowed(headwater: Headwater, dataset: Dataset) -> dict[str, tuple[pa.DataType, pa.DataType]]:
    """The type as which Spark reads a column, and its own, where they differ: unsigned integers, milliseconds,
    UUIDs.
    """
    own = next(headwater.row_tables(dataset, where="FALSE", limit=1)).to_arrow().schema
    read = arrow_schema(spark_schema(own))
    return {
        field.name: (read.field(field.name).type, field.type)
        for field in own
        if read.field(field.name).type != field.type
    }
