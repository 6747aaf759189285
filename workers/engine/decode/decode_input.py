"""Decodes raw inputs of a write to staged rows: splits them, merges their schema if requested, decodes the splits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from app.codecs.arrow.flat_form import op_names
from app.codecs.splits import Split
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
    prepared = run(
        [
            PrepareTask(
                raw=raw,
                prefix=f"{prefix}-{number:05d}",
                decompressed_bytes_max=decompressed_bytes_max,
                limits=limits,
            )
            for number, raw in enumerate(raws)
        ]
    )
    splits = [
        (raw, each.path, split)
        for raw, each in zip(raws, prepared, strict=True)
        if isinstance(each, Prepared)
        for split in each.splits
    ]
    brought = _brought(run, splits, dataset, operation, options, limits) if options.merge_schema else None
    answers = run(
        [
            DecodeTask(
                dataset=brought or dataset,
                operation=operation,
                path=path,
                format=raw.format,
                records=raw.records,
                split=split,
                number=number,
                prefix=prefix,
                quarantine=quarantine,
                limits=limits,
                origin=raw.origin,
                runs=raw.runs,
                explicit_cast=options.explicit_cast,
                expanded_bytes_max=decompressed_bytes_max,
            )
            for number, (raw, path, split) in enumerate(splits)
        ]
    )
    decoded = decoded_input([answer for answer in answers if isinstance(answer, DecodedRows)])
    limits.check_rows(
        sum(file.rows for file in decoded.staged) + sum(file.row_count for file in decoded.quarantined)
    )
    return msgspec.structs.replace(decoded, definition=brought)


def _brought(
    run: TaskRunner,
    splits: Sequence[tuple[RawInput, str, Split]],
    dataset: DatasetDefinition,
    operation: Operation,
    options: WriteOptions,
    limits: RowLimits,
) -> DatasetDefinition | None:
    """The dataset under the merged schema; None if the rows fit its own schema."""
    op_columns = op_names(input_schema(operation, dataset))
    answers = run(
        [
            InferTask(
                path=path,
                format=raw.format,
                records=raw.records,
                split=split,
                op_columns=op_columns,
                limits=limits,
                origin=raw.origin,
            )
            for raw, path, split in splits
            if raw.shapes is None
        ]
    )
    shapes: dict[str, Shape] = {}
    for raw, _, _ in splits:
        shapes = common_members(shapes, raw.shapes or {})
    for answer in answers:
        if isinstance(answer, Inferred):
            shapes = common_members(shapes, answer.shapes)
    return merge_schemas(dataset, shapes, explicit_cast=options.explicit_cast)
