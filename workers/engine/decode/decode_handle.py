"""The decode tasks: convert bytes on storage to staged input. They run in Spark's Python processes.

A first task decompresses the input and cuts it into splits. Then one task per split validates its rows and stages them.
If there is one split, the first task does that, which saves a Spark job. For a write with `merge_schema`, one task per
split first infers the shapes of its columns.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property, partial
from itertools import accumulate
from typing import Final

import msgspec
import pyarrow as pa

from app.features.writes.engine import DecodedInput
from app.infra.errors import StorageFull, Unavailable
from app.infra.files.checksums import HashingSink, verify
from app.infra.files.errors import CorruptFile
from app.infra.files.quarantine_file import QuarantineFileStore
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.staged_file import StagedFileStore
from app.infra.files.storage import Storage
from app.kernel.codecs.gzip_stream import gunzip_stream
from app.kernel.codecs.record_errors import BadRecord, BadRecords
from app.kernel.codecs.records import iter_record_tables
from app.kernel.codecs.shape_inference import NO_COLUMNS, infer_record_shapes, infer_shapes
from app.kernel.codecs.splits import Split, plan_splits
from app.kernel.codecs.stream import iter_tables
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.errors import BodyTooLarge, HeadwaterError, MalformedBody
from app.kernel.format.operation import Operation, input_schema
from app.kernel.format.quarantine import QuarantineFile
from app.kernel.format.rows.change_schema import ChangeSchema
from app.kernel.format.rows.formats import Format
from app.kernel.format.rows.row_limits import DEFAULT_LIMITS, RowLimits
from app.kernel.format.rows.staged import RawInput, StagedFile
from app.kernel.format.schema.shapes import Shape
from workers.engine.decode.decode_memory import DecodeMemory

SPLIT_BYTES: Final = 64 * 1024 * 1024
_STEP_BYTES: Final = 4 * 1024 * 1024


class Decoding(msgspec.Struct, frozen=True, kw_only=True):
    """How all rows of a write are decoded, and the path prefixes of the files that hold them.

    `quarantine`: the prefix of files of bad records; without it, bad records fail the task. `explicit_cast`: see
    `WriteOptions`. `expanded_bytes_max`: of a decompressed input, and of the rows of one split in memory.
    """

    dataset: DatasetDefinition
    operation: Operation
    prefix: str
    quarantine: str | None = None
    limits: RowLimits = DEFAULT_LIMITS
    explicit_cast: bool = False
    expanded_bytes_max: int = sys.maxsize


class PrepareTask(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Verifies the bytes of an input, decompresses them if necessary, and cuts them into splits.

    `number`: that of the input. `decodes`: if there is one split, its rows are decoded at once.
    """

    raw: RawInput
    number: int
    decoding: Decoding
    decodes: bool


class InferTask(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Infers the shapes of one split's columns. `changes`: the schema of changes, None for rows. `outliers`: see
    `infer_shapes`.
    """

    path: str
    format: Format
    records: bool = False
    split: Split
    changes: ChangeSchema | None = None
    limits: RowLimits = DEFAULT_LIMITS
    outliers: bool = False
    origin: str = ""


class Inferred(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The shapes of a split's columns, in order of first occurrence."""

    shapes: dict[str, Shape]


class DecodeTask(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Validates the rows of one split of an input and stages them.

    `path`: that of the uncompressed bytes. `number`: in the names of its files, once in a write.
    """

    raw: RawInput
    path: str
    split: Split
    number: int
    decoding: Decoding


class DecodedRows(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The staged file of a split, None without rows, and the quarantined records.

    `ignored_fields`: the names of unknown fields that were null, sorted. `records`: the number of the split's records,
    good and bad, if they are numbered from its start, as in NDJSON.
    """

    file: StagedFile | None
    quarantine_file: QuarantineFile | None = None
    ignored_fields: tuple[str, ...] = ()
    records: int = 0


class Prepared(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The path of the uncompressed bytes, and their splits. `rows`: those of the only one, if it was decoded."""

    path: str
    splits: tuple[Split, ...]
    rows: DecodedRows | None = None


def prepare(task: PrepareTask, storage: Storage, budget: MemoryBudget) -> Prepared:
    """Runs a `PrepareTask`.

    Raises CorruptFile, MalformedBody, BodyTooLarge, TooManyRows, StorageFull, and what `decode` raises.
    """
    verify(task.raw, storage.open(task.raw.path))
    with _errors_of(task.raw.origin), DecodeMemory(budget).limited():
        path = _unpacked(task, storage) if task.raw.gzip else task.raw.path
        splits = plan_splits(
            task.raw.format, storage.open(path), storage.size(path), SPLIT_BYTES, limits=task.decoding.limits
        )
    rows = None
    if task.decodes and len(splits) == 1:
        (split,) = splits
        rows = decode(
            DecodeTask(raw=task.raw, path=path, split=split, number=task.number, decoding=task.decoding),
            storage,
            budget,
        )
    return Prepared(path=path, splits=tuple(splits), rows=rows)


def _unpacked(task: PrepareTask, storage: Storage) -> str:
    path = f"{task.decoding.prefix}-{task.number:05d}.plain"
    with storage.create(path, durable=False) as file, storage.open(task.raw.path) as raw_file:
        sink = HashingSink(file)
        chunks = iter(partial(raw_file.read, _STEP_BYTES), b"")
        for chunk in gunzip_stream(chunks, expanded_bytes_max=task.decoding.expanded_bytes_max):
            sink.write(chunk)
    if sink.size_bytes == 0:
        raise MalformedBody("the body is empty once decompressed")
    return path


def infer(task: InferTask, storage: Storage, budget: MemoryBudget) -> Inferred:
    """Runs an `InferTask`. Raises SchemaMismatch, MalformedBody."""
    with _errors_of(task.origin), DecodeMemory(budget).limited():
        source = storage.open(task.path)
        schema = task.changes or NO_COLUMNS
        if task.records:
            return Inferred(shapes=infer_record_shapes(source, task.split, schema=schema))
        return Inferred(
            shapes=infer_shapes(
                task.format,
                source,
                task.split,
                schema=schema,
                limits=task.limits,
                outliers=task.outliers,
            )
        )


def decode(task: DecodeTask, storage: Storage, budget: MemoryBudget) -> DecodedRows:
    """Raises SchemaMismatch, MalformedBody, BodyTooLarge, RowTooLarge, TooManyRows, StorageFull."""
    quarantine, ignored_fields = task.decoding.quarantine, set[str]()
    if quarantine is None:
        file = _stage(task, storage, budget, None, ignored_fields)
        return DecodedRows(file=file, ignored_fields=tuple(sorted(ignored_fields)))
    with QuarantineFileStore(storage).sink(f"{quarantine}-{task.number:05d}.parquet") as sink:
        write = sink.write if not task.raw.runs else _Placing(task, storage, sink.write).write
        bad_records = BadRecords(write=write)
        file = _stage(task, storage, budget, bad_records, ignored_fields)
        bad_records.close()
    return DecodedRows(
        file=file,
        quarantine_file=sink.file,
        ignored_fields=tuple(sorted(ignored_fields)),
        records=bad_records.records,
    )


def _stage(
    task: DecodeTask,
    storage: Storage,
    budget: MemoryBudget,
    bad_records: BadRecords | None,
    ignored_fields: set[str],
) -> StagedFile | None:
    raw, decoding = task.raw, task.decoding
    schema = input_schema(decoding.operation, decoding.dataset)
    memory = DecodeMemory(budget)
    with _errors_of(raw.origin), memory.limited():
        source = storage.open(task.path)
        if raw.records:
            tables = iter_record_tables(
                source,
                schema,
                split=task.split,
                bad_records=bad_records,
                limits=decoding.limits,
                ignored_fields=ignored_fields,
            )
        else:
            tables = iter_tables(
                raw.format,
                source,
                schema,
                split=task.split,
                bad_records=bad_records,
                limits=decoding.limits,
                explicit_cast=decoding.explicit_cast,
                memory=memory,
                ignored_fields=ignored_fields,
            )
        with closing(tables):
            return StagedFileStore(storage).write(
                decoding.dataset,
                decoding.operation,
                _within(tables, decoding.expanded_bytes_max),
                f"{decoding.prefix}-{task.number:05d}.arrow",
                durable=False,
            )


def _within(tables: Iterable[pa.Table], bytes_max: int) -> Iterator[pa.Table]:
    """The tables, up to this size: a value that a Parquet or Arrow body has once may be in very many rows."""
    room = bytes_max
    for table in tables:
        room -= table.nbytes
        if room < 0:
            raise BodyTooLarge(
                f"the rows of the input have more than {bytes_max} bytes once they are decoded: send fewer of them in "
                "a write",
                limit_bytes=bytes_max,
            )
        yield table


class _Placing:
    """Adds to the errors of bad records what they were read from."""

    def __init__(
        self, task: DecodeTask, storage: Storage, write: Callable[[Sequence[BadRecord]], None]
    ) -> None:
        self._task = task
        self._storage = storage
        self._write = write

    def write(self, records: Sequence[BadRecord]) -> None:
        self._write([self._placed(record) for record in records])

    @cached_property
    def _rows_before(self) -> int:
        """The lines that start before the split."""
        start = (self._task.split.byte_range or (0, 0))[0]
        if start == 0:
            return 0
        # A line starts after each line end, also after the last one before the split, unless it starts the split.
        count, remaining_bytes = 1, start - 1
        with self._storage.open(self._task.path) as file:
            while remaining_bytes > 0 and (step := file.read(min(remaining_bytes, _STEP_BYTES))):
                count += step.count(b"\n")
                remaining_bytes -= len(step)
        return count

    def _placed(self, record: BadRecord) -> BadRecord:
        row = self._rows_before + record.position
        number = bisect_right(self._task.raw.runs, row, key=lambda run: run.first_row) - 1
        if number < 0 or not record.errors or not self._task.raw.runs[number].place:
            return record
        first, *others = record.errors
        detail = f"{self._task.raw.runs[number].names(row)}: {first.detail}"
        return msgspec.structs.replace(
            record, errors=(msgspec.structs.replace(first, detail=detail), *others)
        )


def decoded_input(splits: Sequence[DecodedRows]) -> DecodedInput:
    """What the splits of an input, in order, come to together."""
    starts = accumulate((split.records for split in splits), initial=0)
    files = [split.file for split in splits if split.file is not None]
    rows = accumulate((file.rows for file in files), initial=0)
    return DecodedInput(
        files=tuple(
            msgspec.structs.replace(file, first_row=before) for file, before in zip(files, rows, strict=False)
        ),
        quarantine_files=tuple(
            msgspec.structs.replace(split.quarantine_file, first_row=start)
            for split, start in zip(splits, starts, strict=False)
            if split.quarantine_file is not None
        ),
        ignored_fields=tuple(sorted({name for split in splits for name in split.ignored_fields})),
    )


@contextmanager
def _errors_of(origin: str) -> Iterator[None]:
    """Adds to errors of the input what it was read from, if that is known."""
    try:
        yield
    except HeadwaterError as error:
        if not origin or isinstance(error, Unavailable | StorageFull | CorruptFile):
            raise
        raise error.of_origin(origin) from error
