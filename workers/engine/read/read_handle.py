"""The tasks of read jobs: read rows of a table, or changed rows, and write them. They run in Spark's processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from app.files.export_file import ExportSink
from app.files.parquet_file import unique_columns
from app.files.slices.row_scan import base_rows, merged_rows
from app.files.slices.sorted_runs import RunWriter, range_rows
from app.reads.tasks import (
    BaseRows,
    ChangedRows,
    MergedRows,
    RangeRows,
    ReadPart,
    ReadPartResult,
    ReadSource,
    ReadSpec,
)
from app.sql.conditions.bound_access import BoundAccess
from workers.engine.read.export_handle import changed_rows, rows_schema
from workers.engine.read.text_forms import rows_text
from workers.engine.task_files import TaskResources

_STEP_ROWS = 64 * 1024


def read(part: ReadPart, resources: TaskResources) -> ReadPartResult:
    """Runs one part of a read. Raises InvalidRequest, InvalidFilter, CorruptFile, StorageFull."""
    tables = (rows for source in part.sources for rows in _rows(part.spec, source, resources))
    ordered = all(isinstance(source, RangeRows) for source in part.sources)
    if part.spec.order_by and not ordered:
        return _sorted(part, tables, resources)
    return _written(part, tables, resources)


def _rows(spec: ReadSpec, source: ReadSource, resources: TaskResources) -> Iterator[pa.Table]:
    """The rows of a source with the returned columns, and those of the order, as the reader may see them."""
    access = BoundAccess(masked=frozenset(spec.masked))
    return map(access.shown, _stored_rows(spec, source, resources))


def _stored_rows(spec: ReadSpec, source: ReadSource, resources: TaskResources) -> Iterator[pa.Table]:
    schema = _read_schema(spec)
    match source:
        case BaseRows(file=file, first=first, end=end):
            yield from base_rows(resources.slices, spec.dataset, file, schema, spec.where, first, end)
        case MergedRows(files=files):
            yield from merged_rows(
                resources.slices, spec.dataset, files, schema, spec.where, spec.partitions, resources.memory
            )
        case ChangedRows(part=part):
            yield from changed_rows(part, resources.slices.reader, resources.memory)
        case RangeRows(range=wanted):
            yield from range_rows(resources.storage, wanted, spec.order_by)


def _read_schema(spec: ReadSpec) -> pa.Schema:
    return rows_schema(spec.dataset.schema.select(spec.read_columns))


def _sorted(part: ReadPart, tables: Iterable[pa.Table], resources: TaskResources) -> ReadPartResult:
    with RunWriter(
        resources.storage,
        f"{part.prefix}-run",
        part.spec.order_by,
        memory_bytes=resources.memory.bytes_max,
        limit=part.limit,
    ) as writer:
        for rows in tables:
            writer.add(rows)
        if part.alone and (rows := writer.rows()) is not None:
            return _written(part, [rows], resources)
        return ReadPartResult(runs=writer.finish())


def _written(part: ReadPart, tables: Iterable[pa.Table], resources: TaskResources) -> ReadPartResult:
    """Writes rows in the order of their arrival, up to the limit."""
    schema = rows_schema(part.spec.dataset.schema.select(part.spec.columns))
    room = part.limit
    with ExportSink(
        resources.storage,
        part.prefix,
        part.spec.format,
        schema,
        target_bytes=part.spec.target_bytes,
        unique_columns=unique_columns(part.spec.dataset),
        texts=rows_text(part.spec.format, schema),
    ) as sink:
        for rows in tables:
            if room is not None:
                if room == 0:
                    break
                rows = rows.slice(0, room)
                room -= rows.num_rows
            shown = rows.select(schema.names)
            for start in range(0, shown.num_rows, _STEP_ROWS):
                sink.write(shown.slice(start, _STEP_ROWS), 0)
        return ReadPartResult(files=sink.finish())
