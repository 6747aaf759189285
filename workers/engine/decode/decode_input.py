"""Decodes one raw input to staged rows: splits it, merges its schema if requested, and decodes the splits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from app.codecs.arrow.flat_form import flat_form
from app.commit.write_options import WriteOptions
from app.format.dataset import DatasetDefinition
from app.format.definition.schema_merge import merge_schemas
from app.format.operation import Operation, input_schema
from app.format.rows.row_limits import RowLimits
from app.format.rows.staged import RawInput
from app.format.schema.shapes import Shape, common_members
from app.writes.engine import DecodedInput
from workers.engine.decode.decode_handle import (
    DecodedRows,
    DecodeTask,
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
    raw: RawInput,
    dataset: DatasetDefinition,
    operation: Operation,
    options: WriteOptions,
    *,
    prefix: str,
    quarantine: str | None,
    decompressed_bytes_max: int,
    limits: RowLimits,
) -> DecodedInput:
    """Validates the rows of a raw input and stages them.

    With `merge_schema`, under the merged schema, which is part of the result. Raises SchemaMismatch, MalformedBody,
    BodyTooLarge, RowTooLarge, TooManyRows, CorruptFile, StorageFull.
    """
    task = PrepareTask(raw=raw, prefix=prefix, decompressed_bytes_max=decompressed_bytes_max, limits=limits)
    [prepared] = run([task])
    if not isinstance(prepared, Prepared):
        raise AssertionError("a prepare task returns splits")
    brought = (
        _brought(run, raw, dataset, operation, options, prepared, limits) if options.merge_schema else None
    )
    answers = run(
        [
            DecodeTask(
                dataset=brought or dataset,
                operation=operation,
                path=prepared.path,
                format=raw.format,
                records=raw.records,
                split=split,
                number=number,
                prefix=prefix,
                quarantine=quarantine,
                limits=limits,
            )
            for number, split in enumerate(prepared.splits)
        ]
    )
    decoded = decoded_input([answer for answer in answers if isinstance(answer, DecodedRows)])
    limits.check_rows(
        sum(file.rows for file in decoded.staged) + sum(file.row_count for file in decoded.quarantined)
    )
    return msgspec.structs.replace(decoded, definition=brought)


def _brought(
    run: TaskRunner,
    raw: RawInput,
    dataset: DatasetDefinition,
    operation: Operation,
    options: WriteOptions,
    prepared: Prepared,
    limits: RowLimits,
) -> DatasetDefinition | None:
    """The dataset under the merged schema; None if the rows fit its own schema."""
    form = flat_form(input_schema(operation, dataset))
    op_column = None if form.changes is None else form.columns.fields[0].name
    answers = run(
        [
            InferTask(
                path=prepared.path,
                format=raw.format,
                records=raw.records,
                split=split,
                op_column=op_column,
                limits=limits,
            )
            for split in prepared.splits
        ]
    )
    shapes: dict[str, Shape] = {}
    for answer in answers:
        if isinstance(answer, Inferred):
            shapes = common_members(shapes, answer.shapes)
    return merge_schemas(dataset, shapes, explicit_cast=options.explicit_cast)
