"""The Python tasks around a view's SQL: they read the rows of its inputs for Spark, and stage its result.

Rows are exchanged with Spark as Arrow batches, with Spark's types for those of datasets (`relation_type`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec
import pyarrow as pa

from app.infra.files.slices.merged_slice import merged_blocks
from app.infra.files.staged_file import StagedFileStore
from app.kernel.codecs.arrow.arrow_casts import cast_lossless
from app.kernel.codecs.arrow.conform import check_columns, conform_step, steps
from app.kernel.codecs.arrow.flat_form import flat_form
from app.kernel.codecs.arrow.parquet_rows import joined
from app.kernel.codecs.record_errors import InputRejection
from app.kernel.derivation.request import DeriveInput, FeedInput, RowsInput, TableInput, has_ops
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.errors import DerivationFailed, RowTooLarge, SchemaMismatch
from app.kernel.format.file_group import ChangelogFile, DataFile, FileKind
from app.kernel.format.operation import Operation, input_schema
from app.kernel.format.rows.changelog import OP_COLUMN, OP_FIELD
from app.kernel.format.rows.row_limits import DEFAULT_LIMITS, RowLimits
from app.kernel.format.rows.staged import StagedFile
from app.kernel.format.schema.types import DataType, to_arrow
from app.kernel.sql.queries.relation_types import relation_type
from workers.engine.decode.decode_handle import DecodedRows
from workers.engine.task_files import TaskResources

_STEP_ROWS: Final = 64 * 1024


class RowsPart(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Live rows of a file group: of one of its base files, or, if it has logs, of all its files together."""

    files: tuple[DataFile, ...]

    @property
    def merged(self) -> bool:
        """Whether the rows are the result of merging the files."""
        return any(file.kind is FileKind.LOG for file in self.files)

    @property
    def size_bytes(self) -> int:
        """The number of bytes to read."""
        return sum(file.size_bytes for file in self.files)


class ChangesPart(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Changes [first_row, first_row + rows) of a changelog file."""

    file: ChangelogFile
    first_row: int
    rows: int

    @property
    def size_bytes(self) -> int:
        """The approximate number of bytes to read."""
        return self.file.size_bytes * self.rows // max(self.file.row_count, 1)


class StagedPart(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The rows of a staged file of a write with `operation`, in order."""

    file: StagedFile
    operation: Operation

    @property
    def size_bytes(self) -> int:
        """The number of bytes to read."""
        return self.file.size_bytes


InputPart: TypeAlias = RowsPart | ChangesPart | StagedPart


class ViewReadTask(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of one input, in order."""

    dataset: DatasetDefinition
    parts: tuple[InputPart, ...]


class StageTask(msgspec.Struct, frozen=True, kw_only=True):
    """The path prefix for the rows of a view, and the operation of their write. `columns`: as of `DeriveRequest`."""

    view: DatasetDefinition
    operation: Operation
    prefix: str
    columns: tuple[str, ...] = ()


def plan_reads(source: DeriveInput, *, bytes_max: int, tasks_min: int) -> list[ViewReadTask]:
    """Tasks that together read the input; those of a feed in its order.

    Each reads about `bytes_max`, or less if there would be fewer than `tasks_min`; parts are never divided.
    """
    parts = list(_parts(source))
    bound = min(bytes_max, sum(part.size_bytes for part in parts) // tasks_min)
    tasks: list[list[InputPart]] = []
    size = bound
    for part in parts:
        if size >= bound:
            tasks.append([])
            size = 0
        tasks[-1].append(part)
        size += part.size_bytes
    return [ViewReadTask(dataset=source.dataset, parts=tuple(task)) for task in tasks]


def _parts(source: DeriveInput) -> Iterator[InputPart]:
    match source:
        case TableInput():
            groups: dict[str, list[DataFile]] = {}
            for file in source.files:
                groups.setdefault(file.file_group, []).append(file)
            for _, files in sorted(groups.items()):
                whole = RowsPart(files=tuple(files))
                base = (file for file in files if file.kind is FileKind.BASE)
                yield from [whole] if whole.merged else (RowsPart(files=(file,)) for file in base)
        case FeedInput():
            for segment in source.segments:
                start = segment.row_of(max(source.since, segment.first_offset))
                end = segment.row_of(min(source.until, segment.end_offset))
                for first in range(start, end, _STEP_ROWS):
                    yield ChangesPart(file=segment.file, first_row=first, rows=min(_STEP_ROWS, end - first))
        case RowsInput():
            yield from (StagedPart(file=file, operation=source.operation) for file in source.files)


def relation_schema(source: DeriveInput) -> pa.Schema:
    """The columns of an input in Spark; rows with an op have it as the last column."""
    columns = source.dataset.schema.select(source.columns).fields
    fields = [pa.field(each.name, to_arrow(relation_type(each.data_type()))) for each in columns]
    if has_ops(source):
        fields.append(pa.field(OP_COLUMN, pa.int16()))
    return pa.schema(fields)


def read_parts(resources: TaskResources, task: ViewReadTask, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of the parts under a `relation_schema`. Raises CorruptFile."""
    types = {field.name: relation_type(field.data_type()) for field in task.dataset.schema.fields}
    for part in task.parts:
        for rows in _rows(resources, task.dataset, part, schema.names):
            columns = [_converted(rows.column(field.name), field, types.get(field.name)) for field in schema]
            yield from pa.table(columns, schema=schema).to_batches(max_chunksize=_STEP_ROWS)


def _converted(column: pa.ChunkedArray, field: pa.Field, data_type: DataType | None) -> pa.ChunkedArray:
    """A column in the type of a relation. `data_type`: None for a column that is not of the dataset."""
    if column.type.equals(field.type):
        return column
    if data_type is None:
        return column.cast(field.type)
    return pa.chunked_array([cast_lossless(chunk, data_type) for chunk in column.chunks], field.type)


def _rows(
    resources: TaskResources, dataset: DatasetDefinition, part: InputPart, names: Sequence[str]
) -> Iterator[pa.Table]:
    """The rows of a part, with at least the columns of these names."""
    fields = [field.with_nullable(True) for field in dataset.schema.to_arrow() if field.name in names]
    match part:
        case RowsPart() if part.merged:
            for block in merged_blocks(resources.slices, dataset, part.files, resources.memory):
                yield block.rows
        case RowsPart():
            for block in resources.slices.blocks(part.files, pa.schema(fields)):
                yield block.rows
        case ChangesPart():
            schema = pa.schema([OP_FIELD, *fields])
            yield resources.slices.reader.read_slice(part.file, schema, part.first_row, part.rows)
        case StagedPart():
            batches = range(len(part.file.batches))
            yield StagedFileStore(resources.storage).read(part.file, batches, dataset, part.operation)


def stage_rows(
    resources: TaskResources,
    task: StageTask,
    number: int,
    batches: Iterable[pa.RecordBatch],
    limits: RowLimits = DEFAULT_LIMITS,
) -> DecodedRows:
    """Stages the rows of partition `number`: the columns of the view in order, and behind them the op of a change.

    Raises DerivationFailed for a row that does not fit or is too large, StorageFull.
    """
    path = f"{task.prefix}-{number:05d}.arrow"
    try:
        tables = _checked(task, batches, limits)
        return DecodedRows(
            file=StagedFileStore(resources.storage).write(
                task.view, task.operation, tables, path, durable=False
            )
        )
    except SchemaMismatch as error:
        raise DerivationFailed(f"rows of the result do not fit the schema: {_column_error(error)}") from error
    except RowTooLarge as error:
        raise DerivationFailed(f"the result has a row of more than {limits.row_bytes_max} bytes") from error


def _column_error(error: SchemaMismatch) -> str:
    """The first fault, without its row number in the partition, which depends on Spark's distribution."""
    first = error.facts["errors"][0]
    column = first["pointer"].removeprefix("/rows/").partition("/")[2]
    return f"column {column}: {first['detail']}" if column else str(first["detail"])


def _checked(task: StageTask, batches: Iterable[pa.RecordBatch], limits: RowLimits) -> Iterator[pa.Table]:
    schema = input_schema(task.operation, task.view)
    names = [field.name for field in flat_form(schema).columns.fields]
    if task.columns:
        names = [*names[: task.operation is Operation.CHANGELOG], *task.columns]
    record_errors = InputRejection(pointer="/rows", limits=limits)
    for start, batch in joined(_numbered(batches)):
        if task.operation is Operation.CHANGELOG:
            batch = batch.select([batch.num_columns - 1, *range(batch.num_columns - 1)])
        rows = batch.rename_columns(names)
        check_columns(rows.schema, schema, record_errors.pointer)
        for row, step in steps(rows, start, schema, record_errors):
            yield conform_step(step, schema, row, record_errors)
            record_errors.raise_if_rejected()


def _numbered(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    row = 0
    for batch in batches:
        yield row, batch
        row += batch.num_rows
