"""Arrow data of strangers (Arrow streams, Parquet files) to tables of a schema, by lossless casts only.

Taken are: the same type; its dictionary, large and view variants; narrower integers for wider ones; float
for double; coarser timestamps for finer ones, in any zone if the schema has one; date64 for date; decimals
of no more digits on either side of the point; the null type. Else both types are named and refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from app.lake.errors import BodyTooLarge
from app.lake.rows.arrow_casts import cast_lossless, is_lossless
from app.lake.rows.arrow_checks import expanded_bytes, invalid_text_rows, unfit_rows, viewed_bytes
from app.lake.rows.compiled import CompiledSchema, compile_schema
from app.lake.rows.faults import (
    ERRORS_COUNTED_MAX,
    Faults,
    below,
    malformed,
    missing_field,
    null_field,
    reader_faults,
    shown,
    unknown_field,
)
from app.lake.schema import Schema

STEP_ROWS_MAX: Final = 65_536
STEP_BYTES: Final = 16 << 20
ROW_BYTES_MAX: Final = 256 << 20
TABLE_BYTES_MAX: Final = 1 << 30


def conform(table: pa.Table, schema: Schema, *, first_row: int = 0, pointer: str = "/rows") -> pa.Table:
    """The table with exactly the schema's columns, in any order given; missing nullable ones are null.

    `first_row`: the number of the first row, for the pointers of faults.
    Raises SchemaMismatch, MalformedBody (Arrow data that contradict themselves), BodyTooLarge (over 1 GiB).
    """
    check_columns(table.schema, schema, pointer)
    faults = Faults()
    tables = []
    size = 0
    row = first_row
    for batch in table.to_batches():
        for step in steps(batch, row, pointer):
            size += sum(expanded_bytes(column) for column in step.columns)
            if size > TABLE_BYTES_MAX:
                raise _too_large()
            tables.append(conform_step(step, schema, row, pointer, faults))
            row += step.num_rows
            if faults.full:
                faults.raise_if_any()
    faults.raise_if_any()
    return pa.concat_tables(tables) if tables else schema.to_arrow().empty_table()


def check_columns(columns: pa.Schema, schema: Schema, pointer: str) -> None:
    """Raises SchemaMismatch for columns that the schema lacks, needs, or cannot take without loss."""
    compiled = compile_schema(schema)
    faults = Faults()
    seen: set[str] = set()
    with reader_faults("the names and types of the columns cannot be read"):
        for column in columns:
            if fault := _column_fault(column, compiled, seen):
                faults.add(pointer, fault)
            seen.add(column.name)
    for name, data_type in compiled.types.items():
        if name in compiled.required and name not in seen:
            faults.add(pointer, f"a column is missing: {missing_field(name, str(data_type))}")
    faults.raise_if_any()


def _column_fault(column: pa.Field, compiled: CompiledSchema, seen: set[str]) -> str | None:
    if column.name not in compiled.types:
        return f"column {shown(column.name)}: {unknown_field(column.name, compiled.types)}"
    if column.name in seen:
        return f"column {shown(column.name)} appears more than once"
    expected = compiled.types[column.name]
    if is_lossless(column.type, expected):
        return None
    return (
        f"column {shown(column.name)}: expected {expected}, "
        f"got Arrow type {column.type}, which does not fit without loss"
    )


def steps(batch: pa.RecordBatch, row: int, pointer: str) -> Iterator[pa.RecordBatch]:
    """The batch, checked to be valid Arrow, in steps of at most 65,536 rows and about 16 MiB of plain values.

    Raises MalformedBody, SchemaMismatch (text that is not UTF-8), BodyTooLarge (one row over 256 MiB).
    """
    _validate(batch, row, pointer)
    for start in range(0, batch.num_rows, STEP_ROWS_MAX):
        yield from _of_bounded_size(batch.slice(start, STEP_ROWS_MAX))


def conform_step(batch: pa.RecordBatch, schema: Schema, row: int, pointer: str, faults: Faults) -> pa.Table:
    """One valid batch, whose columns were checked, as a table. What is wrong with it goes to `faults`."""
    compiled = compile_schema(schema)
    columns = []
    found: list[tuple[int, str, str]] = []
    given = set(batch.schema.names)
    for field in compiled.arrow:
        if field.name not in given:
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        array = _cast(batch.column(field.name), compiled, field)
        columns.append(array)
        found.extend(_column_faults(array, compiled, field))
    for number, name, reason in sorted(found, key=lambda each: each[0]):
        faults.add(below(below(pointer, row + number), name), reason)
    return pa.Table.from_arrays(columns, schema=compiled.arrow) if not found else compiled.arrow.empty_table()


def _cast(array: pa.Array, compiled: CompiledSchema, field: pa.Field) -> pa.Array:
    with reader_faults(f"column {shown(field.name)} cannot be read as {compiled.types[field.name]}"):
        return cast_lossless(array, compiled.types[field.name])


def _column_faults(
    array: pa.Array, compiled: CompiledSchema, field: pa.Field
) -> Iterator[tuple[int, str, str]]:
    """(row, column, reason) of each value that the schema refuses, up to the number that is counted."""
    data_type = compiled.types[field.name]
    if not field.nullable and array.null_count:
        nulls = np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))
        for row in nulls[:ERRORS_COUNTED_MAX]:
            yield int(row), field.name, null_field(field.name, str(data_type))
    for rows, reason in unfit_rows(array, data_type):
        for row in rows[:ERRORS_COUNTED_MAX]:
            yield int(row), field.name, f"expected {data_type}, {reason}"


def _validate(batch: pa.RecordBatch, row: int, pointer: str) -> None:
    try:
        batch.validate()
        if sum(viewed_bytes(column) for column in batch.columns) > TABLE_BYTES_MAX:
            raise _too_large()
        batch.validate(full=True)
    except (pa.ArrowException, OSError, OverflowError) as fault:
        faults = Faults()
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            with reader_faults(f"the Arrow data of column {shown(name)} contradict themselves"):
                for number in invalid_text_rows(array):
                    faults.add(
                        below(below(pointer, row + int(number)), name), "expected string, got invalid UTF-8"
                    )
        faults.raise_if_any()
        raise malformed("the Arrow data contradict themselves", fault) from None


def _too_large() -> BodyTooLarge:
    return BodyTooLarge(f"the rows expand to more than {TABLE_BYTES_MAX} bytes", limit_bytes=TABLE_BYTES_MAX)


def _of_bounded_size(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    size = sum(expanded_bytes(column) for column in batch.columns)
    if size <= STEP_BYTES or batch.num_rows == 1:
        if size > ROW_BYTES_MAX:
            raise BodyTooLarge(f"one row takes more than {ROW_BYTES_MAX} bytes", limit_bytes=ROW_BYTES_MAX)
        yield batch
        return
    half = batch.num_rows // 2
    yield from _of_bounded_size(batch.slice(0, half))
    yield from _of_bounded_size(batch.slice(half))
