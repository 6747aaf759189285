"""Reads of tables: a read job writes the rows to files, and each task of Spark downloads and decodes one of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from headwater_client.calls.read_jobs import ReadOptions
from headwater_client.models import ResultFile
from headwater_client.spark.arrow_types import arrow_schema, conforming
from headwater_client.spark.conditions import conjunction, split
from headwater_client.spark.options import ReadSettings

_BATCH_ROWS = 64 * 1024
_META_PREFIX = "_hw_"


@dataclass
class FilePartition(InputPartition):
    """A file of a result."""

    file: ResultFile


class TableReader(DataSourceReader):
    """Reads a table, or the rows that changed in it.

    `version`: that of the data frame, so that all of its actions read the same rows; None for the latest of each.
    """

    def __init__(self, settings: ReadSettings, schema: StructType, version: int | None) -> None:
        self._settings = settings
        self._schema = schema
        self._version = version
        self._conditions = [settings.where] if settings.where is not None else []

    def partitions(self) -> list[InputPartition]:
        """Runs the read job. Raises Problem, JobUnfinished."""
        settings = self._settings
        with settings.connect() as headwater:
            job = headwater.start_read(
                settings.path,
                format="parquet",
                disposition="files",
                wait=settings.wait_seconds,
                **self._request(),
            )
            return [FilePartition(file) for file in headwater.result_files(job).files if file.rows]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition."""
        if isinstance(partition, FilePartition):
            return self._downloaded(partition.file, arrow_schema(self._schema))
        # Spark's own partition of a read without any.
        return iter(())

    def _request(self) -> ReadOptions:
        settings = self._settings
        request: ReadOptions = {
            "query": "incremental" if settings.query == "incremental" else settings.query_type
        }
        request["columns"] = [name for name in self._schema.fieldNames() if not name.startswith(_META_PREFIX)]
        request |= {"meta": settings.meta, "corrected_since": settings.corrected_since}
        if (where := conjunction(self._conditions)) is not None:
            request["where"] = where
        request |= settings.given("partitions", "begin", "begin_time", "end", "end_time")  # type: ignore[typeddict-item]
        if settings.query == "incremental":
            if self._version is not None and not settings.given("end", "end_time"):
                request["end"] = self._version
        elif self._version is not None:
            request["version"] = self._version
        else:
            request |= settings.given("version", "as_of", "tag")  # type: ignore[typeddict-item]
        return request

    def _downloaded(self, file: ResultFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with TemporaryDirectory(prefix="headwater-") as folder, self._settings.connect() as headwater:
            path = headwater.download_result_file(file, Path(folder) / file.name)
            with pq.ParquetFile(path, memory_map=True) as content:
                yield from conforming(content.iter_batches(batch_size=_BATCH_ROWS), schema)


class FilteringTableReader(TableReader):
    """Has the service evaluate filters of Spark. Only for a data frame that one query uses, in one place.

    Spark 4.3 keeps the plan of a read with its data frame, whichever query made it. A second query with other filters,
    or without any, would get the rows of the first.
    """

    def pushFilters(self, filters: list[Filter]) -> list[Filter]:  # noqa: N802 - PySpark's name
        """Keeps the filters that the service evaluates; returns the others."""
        if self._settings.meta or self._settings.corrected_since:
            # The service filters by columns of the dataset, which these are not.
            return filters
        conditions, others = split(filters)
        self._conditions += conditions
        return others
