"""Reads of tables: a read job writes the rows to files, and each task of Spark downloads and decodes one of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
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


@dataclass
class PagesPartition(InputPartition):
    """All rows, in pages: the only way to read the meta columns."""

    version: int | None


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
        if settings.meta:
            return [PagesPartition(self._version)]
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
        schema = arrow_schema(self._schema)
        match partition:
            case FilePartition(file=file):
                return self._downloaded(file, schema)
            case PagesPartition(version=version):
                return self._paged(version, schema)
        # Spark's own partition of a read without any.
        return iter(())

    def _request(self) -> ReadOptions:
        settings = self._settings
        request: ReadOptions = {
            "query": "incremental" if settings.query == "incremental" else settings.query_type
        }
        request["columns"] = self._schema.fieldNames()
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

    def _paged(self, version: int | None, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        settings = self._settings
        selected = {"version": version} if version is not None else settings.given("version", "as_of", "tag")
        with settings.connect() as headwater:
            pages = headwater.row_tables(
                settings.path,
                columns=[name for name in self._schema.fieldNames() if not name.startswith(_META_PREFIX)],
                where=conjunction(self._conditions),
                partitions=settings.partitions,
                meta=True,
                query_type=settings.query_type,
                **selected,
            )
            batches = chain.from_iterable(page.to_arrow().to_batches() for page in pages)
            yield from conforming(batches, schema)


class FilteringTableReader(TableReader):
    """Has the service evaluate filters of Spark. Only for a data frame that one query uses, in one place.

    Spark 4.3 keeps the plan of a read with its data frame, whichever query made it. A second query with other filters,
    or without any, would get the rows of the first.
    """

    def pushFilters(self, filters: list[Filter]) -> list[Filter]:  # noqa: N802 - PySpark's name
        """Keeps the filters that the service evaluates; returns the others."""
        if self._settings.meta:
            # The service filters by columns of the dataset, which the meta columns are not.
            return filters
        conditions, others = split(filters)
        self._conditions += conditions
        return others
