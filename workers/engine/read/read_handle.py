"""The tasks of read jobs: read rows of a table, or changed rows, and write them. They run in Spark's processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from app.features.reads.tasks import ChangedRows, RangeRows, ReadPart, ReadPartResult, ReadSource, ReadSpec
from app.infra.files.export_file import ExportSink
from app.infra.files.slices.row_scan import RowChoice, base_rows, merged_rows
from app.infra.files.slices.sorted_runs import RunWriter, range_rows
from app.kernel.commit.table_rows import BaseRows, MergedRows
from app.kernel.sql.conditions.bound_access import BoundAccess
from workers.engine.read.export_handle import changed_rows, rows_of_table
from workers.engine.read.meta_rows import MetaRows, rows_schema, with_meta_fields
from workers.engine.read.text_forms import rows_text
from workers.engine.task_files import TaskResources

_STEP_ROWS = 64 * 1024


def read(part: ReadPart, resources: TaskResources) -> ReadPartResult:
    """Runs one part of a read. Raises InvalidRequest, InvalidFilter, CorruptFile, StorageFull."""
    meta = _meta_rows(part.spec, resources)
    tables = (rows for source in part.sources for rows in _rows(part.spec, source, meta, resources))
    in_order = all(isinstance(source, RangeRows) for source in part.sources)
    if part.spec.order_by and not in_order:
        return _sorted(part, tables, resources)
    return _written(part, tables, resources)


def _meta_rows(spec: ReadSpec, resources: TaskResources) -> MetaRows | None:
    return MetaRows.of(
        spec.dataset,
        spec.read_columns,
        _access(spec),
        spec.commit_times,
        spec.corrections,
        resources.slices.reader,
    )


def _access(spec: ReadSpec) -> BoundAccess:
    return BoundAccess(masked=frozenset(spec.masked))


def _rows(
    spec: ReadSpec, source: ReadSource, meta: MetaRows | None, resources: TaskResources
) -> Iterator[pa.Table]:
    """The rows of a source with the returned columns, and those of the order, as the reader may see them.

    Texts may be dictionaries.
    """
    if meta is None or isinstance(source, RangeRows):
        yield from map(_access(spec).shown, _stored_rows(spec, source, _read_schema(spec), resources))
    else:
        yield from map(meta.shown, _stored_rows(spec, source, meta.sources, resources))


def _stored_rows(
    spec: ReadSpec, source: ReadSource, schema: pa.Schema, resources: TaskResources
) -> Iterator[pa.Table]:
    choice = RowChoice(where=spec.where)
    match source:
        case BaseRows(file=file, first=first, end=end):
            yield from base_rows(resources.slices, spec.dataset, file, schema, choice, first, end)
        case MergedRows(files=files):
            yield from merged_rows(
                resources.slices, spec.dataset, files, schema, choice, spec.partitions, resources.memory
            )
        case ChangedRows(part=part) if spec.with_sources:
            yield from rows_of_table(part, resources.slices, resources.memory, schema)
        case ChangedRows(part=part):
            yield from changed_rows(part, resources.slices, resources.memory)
        case RangeRows(range=run_range):
            yield from range_rows(resources.storage, run_range, spec.order_by)


def _read_schema(spec: ReadSpec) -> pa.Schema:
    return _with_meta(spec, spec.read_columns)


def _with_meta(spec: ReadSpec, columns: tuple[str, ...]) -> pa.Schema:
    """These columns, and the meta columns where rows have them."""
    fields = rows_schema(spec.dataset.schema.select(columns))
    return with_meta_fields(fields, spec.commit_times, spec.corrections)


def _sorted(part: ReadPart, tables: Iterable[pa.Table], resources: TaskResources) -> ReadPartResult:
    with RunWriter(
        resources.storage,
        f"{part.prefix}-run",
        part.spec.order_by,
        memory_bytes=resources.memory.bytes_max,
        limit=part.limit,
    ) as writer:
        schema = _read_schema(part.spec)
        for rows in tables:
            writer.add(rows.select(schema.names).cast(schema))
        if part.alone and (rows := writer.rows()) is not None:
            return _written(part, [rows], resources)
        return ReadPartResult(runs=writer.finish())


def _written(part: ReadPart, tables: Iterable[pa.Table], resources: TaskResources) -> ReadPartResult:
    """Writes rows in the order of their arrival, up to the limit."""
    schema = _with_meta(part.spec, part.spec.columns)
    room = part.limit
    with ExportSink(
        resources.storage,
        part.prefix,
        part.spec.format,
        schema,
        target_bytes=part.spec.target_bytes,
        texts=rows_text(part.spec.format, schema),
    ) as sink:
        for rows in tables:
            if room is not None:
                if room == 0:
                    break
                rows = rows.slice(0, room)
                room -= rows.num_rows
            output_rows = rows.select(schema.names)
            for start in range(0, output_rows.num_rows, _STEP_ROWS):
                sink.write(output_rows.slice(start, _STEP_ROWS).cast(schema), 0)
        return ReadPartResult(files=sink.finish())
