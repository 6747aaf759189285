"""Decodes raw inputs of a write to staged rows: splits them, merges their schema if requested, decodes the splits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count, islice

import msgspec

from app.features.writes.engine import DecodedInput
from app.kernel.commit.write_options import OnError, WriteOptions
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.schema_merge import merge_schemas
from app.kernel.format.operation import Operation, input_schema
from app.kernel.format.rows.change_schema import ChangeSchema
from app.kernel.format.rows.row_limits import RowLimits
from app.kernel.format.rows.staged import RawInput
from app.kernel.format.schema.shapes import Shape, common_members
from workers.engine.decode.decode_handle import (
    DecodedRows,
    DecodeTask,
    Decoding,
    Inferred,
    InferTask,
    Prepared,
    PrepareTask,
    decoded_input,
)

Tasks = Sequence[PrepareTask] | Sequence[InferTask] | Sequence[DecodeTask]
TaskRunner = Callable[[Tasks], Sequence[object]]
"""Runs tasks in parallel and returns their results, in order."""


def decode_input(
    run: TaskRunner,
    raws: Sequence[RawInput],
    dataset: DatasetDefinition,
    operation: Operation,
    options: WriteOptions,
    *,
    prefix: str,
    quarantine: str | None,
    decompressed_bytes_max: int,
    limits: RowLimits,
) -> DecodedInput:
    """Validates the rows of the inputs of a write, in order, and stages them.

    With `merge_schema`, under the merged schema, which is part of the result. Raises SchemaMismatch, MalformedBody,
    BodyTooLarge, RowTooLarge, TooManyRows, CorruptFile, StorageFull.
    """
    decoding = Decoding(
        dataset=dataset,
        operation=operation,
        prefix=prefix,
        quarantine=quarantine,
        limits=limits,
        explicit_cast=options.explicit_cast,
        expanded_bytes_max=decompressed_bytes_max,
    )
    inputs = _prepared(run, raws, decoding, decodes=not options.merge_schema)
    definition = _brought(run, inputs, dataset, operation, options, limits) if options.merge_schema else None
    if definition is not None:
        decoding = msgspec.structs.replace(decoding, dataset=definition)
    rows = decoded_input(_decoded(run, inputs, decoding))
    limits.check_rows(
        sum(file.rows for file in rows.files) + sum(file.row_count for file in rows.quarantine_files)
    )
    return msgspec.structs.replace(rows, definition=definition)


def _prepared(
    run: TaskRunner, raws: Sequence[RawInput], decoding: Decoding, *, decodes: bool
) -> list[tuple[RawInput, Prepared]]:
    """The inputs, in order, with their splits. `decodes`: with the rows of those that have one."""
    answers = run(
        [
            PrepareTask(raw=raw, number=number, decoding=decoding, decodes=decodes)
            for number, raw in enumerate(raws)
        ]
    )
    return [(raw, answer) for raw, answer in zip(raws, answers, strict=True) if isinstance(answer, Prepared)]


def _decoded(
    run: TaskRunner, inputs: Sequence[tuple[RawInput, Prepared]], decoding: Decoding
) -> list[DecodedRows]:
    """The rows of all splits, in order."""
    # The rows that are decoded already have the numbers of their inputs.
    numbers = count(len(inputs))
    tasks = [
        DecodeTask(raw=raw, path=each.path, split=split, number=next(numbers), decoding=decoding)
        for raw, each in inputs
        if each.rows is None
        for split in each.splits
    ]
    answers = (answer for answer in run(tasks) if isinstance(answer, DecodedRows))
    rows: list[DecodedRows] = []
    for _, each in inputs:
        rows += [each.rows] if each.rows else islice(answers, len(each.splits))
    return rows


def _brought(
    run: TaskRunner,
    inputs: Sequence[tuple[RawInput, Prepared]],
    dataset: DatasetDefinition,
    operation: Operation,
    options: WriteOptions,
    limits: RowLimits,
) -> DatasetDefinition | None:
    """The dataset under the merged schema; None if the rows fit its own schema."""
    schema = input_schema(operation, dataset)
    answers = run(
        [
            InferTask(
                path=each.path,
                format=raw.format,
                records=raw.records,
                split=split,
                changes=schema if isinstance(schema, ChangeSchema) else None,
                limits=limits,
                outliers=options.on_error is OnError.QUARANTINE,
                origin=raw.origin,
            )
            for raw, each in inputs
            if raw.shapes is None
            for split in each.splits
        ]
    )
    shapes: dict[str, Shape] = {}
    for raw, _ in inputs:
        shapes = common_members(shapes, raw.shapes or {})
    for answer in answers:
        if isinstance(answer, Inferred):
            shapes = common_members(shapes, answer.shapes)
    return merge_schemas(dataset, shapes, explicit_cast=options.explicit_cast)
