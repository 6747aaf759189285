"""Reads of tables: each task of Spark fetches files of the table, or rows that the service merges, and decodes them.

Where a scan cannot read what is wanted, a read job writes the rows to files, and the tasks fetch these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from headwater_client.calls.reading.read_jobs import ReadOptions
from headwater_client.client import Headwater
from headwater_client.models import ResultFile, ScanPart
from headwater_client.spark.arrow_types import arrow_schema, conforming
from headwater_client.spark.conditions import conjunction, split
from headwater_client.spark.options import ReadSettings
from headwater_client.spark.part_file import PartFile

_BATCH_ROWS: Final = 64 * 1024
_META_PREFIX: Final = "_hw_"
# What a task reads at least, where there is as much: small parts are read by one task together.
_TASK_BYTES: Final = 16 * 1024 * 1024
# Smaller files are fetched whole, whichever columns are read, so that their checksums are verified.
_RANGED_BYTES_MIN: Final = 1024 * 1024


@dataclass
class FilePartition(InputPartition):
    """A file of a result."""

    file: ResultFile


@dataclass
class ScanPartition(InputPartition):
    """Parts of a scan."""

    parts: tuple[ScanPart, ...]


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
        """Plans the scan, or runs the read job. Raises Problem, JobUnfinished."""
        settings = self._settings
        with settings.connect() as headwater:
            request = self._request()
            scan = headwater.scan_unless_job(settings.path, self._scan_options(request))
            if scan is not None:
                return [ScanPartition(parts) for parts in _packed(scan.parts)]
            job = headwater.start_read(
                settings.path,
                format="parquet",
                disposition="files",
                wait=settings.wait_seconds,
                **request,
            )
            return [FilePartition(file) for file in headwater.result_files(job).files if file.rows]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition."""
        schema = arrow_schema(self._schema)
        if isinstance(partition, FilePartition):
            return self._downloaded(partition.file, schema)
        if isinstance(partition, ScanPartition):
            return self._scanned(partition.parts, schema)
        # Spark's own partition of a read without any.
        return iter(())

    def _request(self) -> ReadOptions:
        settings = self._settings
        request: ReadOptions = {
            "query": "incremental" if settings.query == "incremental" else settings.query_type
        }
        request["columns"] = [name for name in self._schema.fieldNames() if not name.startswith(_META_PREFIX)]
        if settings.meta:
            request["meta"] = True
        if settings.corrected_since:
            request["corrected_since"] = True
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

    def _scan_options(self, request: ReadOptions) -> dict[str, Any]:
        # All columns need no names, which would be in the link of each part.
        named = {
            name: value for name, value in request.items() if name != "columns" or self._settings.columns
        }
        return {**named, "keep_seconds": self._settings.keep_seconds}

    def _scanned(self, parts: Iterable[ScanPart], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with TemporaryDirectory(prefix="headwater-") as folder, self._settings.connect() as headwater:
            path = Path(folder) / "part"
            for part in parts:
                ranged = self._settings.columns is not None and (part.size_bytes or 0) > _RANGED_BYTES_MIN
                if ranged and part.format == "parquet":
                    rows = _of_ranges(headwater, part, schema.names)
                else:
                    rows = _batches(headwater, part, path, schema.names)
                yield from conforming(rows, schema)

    def _downloaded(self, file: ResultFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with TemporaryDirectory(prefix="headwater-") as folder, self._settings.connect() as headwater:
            path = headwater.download_result_file(file, Path(folder) / file.name)
            yield from conforming(_of_parquet(path, schema.names), schema)


def _packed(parts: Iterable[ScanPart]) -> Iterator[tuple[ScanPart, ...]]:
    pack: list[ScanPart] = []
    size = 0
    for part in parts:
        pack.append(part)
        size += _TASK_BYTES if part.size_bytes is None else part.size_bytes
        if size >= _TASK_BYTES:
            yield tuple(pack)
            pack, size = [], 0
    if pack:
        yield tuple(pack)


def _batches(headwater: Headwater, part: ScanPart, path: Path, columns: list[str]) -> Iterator[Any]:
    """The rows of a part, which is downloaded to the path."""
    headwater.download_scan_part(part, path)
    if part.format == "parquet":
        yield from _of_parquet(path, columns)
        return
    with pa.memory_map(str(path)) as opened, ipc.open_stream(opened) as stream:
        yield from stream


def _of_ranges(headwater: Headwater, part: ScanPart, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet part, of which only these columns are fetched, those of a row group together."""
    opened = pa.PythonFile(PartFile(headwater, part), mode="r")
    with pq.ParquetFile(opened, pre_buffer=True) as content:
        yield from content.iter_batches(batch_size=_BATCH_ROWS, columns=columns)


def _of_parquet(path: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path, memory_map=True) as content:
        yield from content.iter_batches(batch_size=_BATCH_ROWS, columns=columns)


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
