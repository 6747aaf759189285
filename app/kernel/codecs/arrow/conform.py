"""Converts Arrow data of clients (Arrow streams, Parquet files) to tables of a schema, by exact casts only.

Accepted are the same type, its dictionary, large and view variants, and types of which some values are values of the
column: integers for integers, decimals, and real numbers; decimals for decimals; timestamps in any unit, in any zone if
the schema has one; float for double; date64 for date; times of day and durations for strings; the null type. A value
that is not exactly one of the column makes its row bad. Other types are rejected, and the error names both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field as member
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.codecs.arrow.arrow_casts import cast_exact, ignored_members, is_exact
from app.kernel.codecs.arrow.arrow_checks import (
    expanded_bytes,
    has_clocks,
    invalid_rows,
    invalid_text_rows,
    viewed_bytes,
    without_text,
)
from app.kernel.codecs.arrow.explicit_casts import cast_explicit, castable, reads_strings
from app.kernel.codecs.arrow.flat_form import FlatForm, flat_form
from app.kernel.codecs.compiled import CompiledSchema
from app.kernel.codecs.faults import (
    Faults,
    below,
    malformed,
    missing_field,
    null_field,
    null_member,
    reader_faults,
    shown,
    unknown_field,
)
from app.kernel.codecs.json.objects import json_texts
from app.kernel.codecs.record_errors import BadRecords, RecordErrors, record_errors_for
from app.kernel.format.errors import BodyTooLarge
from app.kernel.format.rows.row_limits import EXCERPT_BYTES
from app.kernel.format.rows.row_sizes import row_bytes
from app.kernel.format.schema.schema import Schema
from app.kernel.format.schema.types import to_arrow

STEP_ROWS_MAX: Final = 65_536
STEP_BYTES: Final = 16 << 20
TABLE_BYTES_MAX: Final = 1 << 30


def conform(
    table: pa.Table,
    schema: Schema,
    *,
    first_row: int = 0,
    pointer: str = "/rows",
    bad_records: BadRecords | None = None,
) -> pa.Table:
    """The table with exactly the schema's columns, accepted in any order; missing nullable columns are null.

    `first_row`: the number of the first row, for the pointers of faults. `bad_records`: receives the rows that do not
    fit; without it the first of them rejects the input. Raises SchemaMismatch, MalformedBody (inconsistent Arrow data),
    BodyTooLarge (over 1 GiB), RowTooLarge.
    """
    check_columns(table.schema, schema, pointer)
    record_errors = record_errors_for(bad_records, pointer)
    tables = []
    size = 0
    start = first_row
    for batch in table.to_batches():
        for row, step in steps(batch, start, schema, record_errors):
            size += _size(step)
            if size > TABLE_BYTES_MAX:
                raise _too_large()
            tables.append(conform_step(step, schema, row, record_errors))
            if record_errors.full:
                record_errors.raise_if_rejected()
        start += batch.num_rows
    record_errors.raise_if_rejected()
    return pa.concat_tables(tables, promote_options="default") if tables else schema.to_arrow().empty_table()


def check_columns(
    columns: pa.Schema, schema: Schema, pointer: str, *, explicit_cast: bool = False
) -> set[str]:
    """Raises SchemaMismatch for columns that are unknown, missing, or not convertible without loss.

    The result has the unknown columns and members of Arrow's null type, which are ignored. `explicit_cast`: columns
    whose values can be cast are accepted, too.
    """
    faults = Faults()
    names: set[str] = set()
    ignored_fields: set[str] = set()
    with reader_faults("the names and types of the columns cannot be read"):
        form = flat_form(schema, columns)
        compiled_schema = form.compiled_schema
        for column in columns:
            if column.name in form.system:
                continue
            if pa.types.is_null(column.type) and column.name not in compiled_schema.types:
                ignored_fields.add(column.name)
                continue
            if fault := _column_fault(column, compiled_schema, names, explicit_cast=explicit_cast):
                faults.add(pointer, fault)
            else:
                place = "" if column.name in form.row_columns else f"{column.name}."
                ignored_fields.update(ignored_members(column.type, compiled_schema.types[column.name], place))
            names.add(column.name)
    for name, data_type in compiled_schema.types.items():
        if name in compiled_schema.required_names and name not in names:
            faults.add(pointer, f"a column is missing: {missing_field(name, str(data_type))}")
    faults.raise_if_any()
    return ignored_fields


def _column_fault(
    column: pa.Field, compiled_schema: CompiledSchema, earlier_names: set[str], *, explicit_cast: bool
) -> str | None:
    if column.name not in compiled_schema.types:
        return f"column {shown(column.name)}: {unknown_field(column.name, compiled_schema.types)}"
    if column.name in earlier_names:
        return f"column {shown(column.name)} appears more than once"
    data_type = compiled_schema.types[column.name]
    if is_exact(column.type, data_type) or reads_strings(column.type, data_type):
        return None
    if castable(column.type, data_type):
        if explicit_cast:
            return None
        advice = f"; cast it to {to_arrow(data_type)}, which writes with merge_schema and explicit_cast do themselves"
    elif explicit_cast:
        return f"column {shown(column.name)}: Arrow type {column.type} cannot be cast to {data_type}"
    else:
        advice = ""
    return (
        f"column {shown(column.name)}: expected {data_type}, "
        f"got Arrow type {column.type}, which cannot be converted without loss{advice}"
    )


def steps(
    batch: pa.RecordBatch, row: int, schema: Schema, record_errors: RecordErrors
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The batch, validated, in steps of at most 65,536 rows and about 16 MiB of plain values.

    `row`: the number of its first row. Each step has the number of its own first row. Rows with text that is not UTF-8
    are left out and reported to `record_errors`, as are rows above the limit. Raises MalformedBody, SchemaMismatch,
    BodyTooLarge, RowTooLarge.
    """
    for first, sound in _sound_runs(batch, row, schema, record_errors):
        for start in range(0, sound.num_rows, STEP_ROWS_MAX):
            part = sound.slice(start, STEP_ROWS_MAX)
            yield from _of_bounded_size(first + start, part, schema, record_errors)


def conform_step(
    batch: pa.RecordBatch,
    schema: Schema,
    row: int,
    record_errors: RecordErrors,
    *,
    explicit_cast: bool = False,
) -> pa.Table:
    """The good rows of one valid batch, whose columns are checked. The others are reported to `record_errors`.

    `explicit_cast`: as the columns were checked. Values that cannot be cast make their rows bad.
    """
    form = flat_form(schema, batch.schema)
    compiled_schema = form.compiled_schema
    columns = []
    row_faults: list[tuple[int, str, str]] = []
    originals: dict[str, pa.Array] = {}
    present = set(batch.schema.names)
    for field in compiled_schema.arrow:
        if field.name not in present:
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        array, refusals = _cast(batch.column(field.name), compiled_schema, field, explicit_cast=explicit_cast)
        columns.append(array)
        if refusals:
            originals[field.name] = _original(batch.column(field.name))
            row_faults.extend((number, below("", field.name), reason) for number, reason in refusals.items())
        faults = _column_faults(array, compiled_schema, field, record_errors.faults_max + len(refusals))
        row_faults.extend(fault for fault in faults if fault[0] not in refusals)
    table = pa.Table.from_arrays(columns, schema=compiled_schema.arrow)
    rows, unavailable = form.available(table)
    row_faults.extend(unavailable)
    row_faults.extend(form.faults(rows, record_errors.faults_max))
    large = _large_rows(table, record_errors.limits.row_bytes_max)
    if not row_faults and not large:
        return form.rows(rows)
    bad = {number: faults for number, faults in _faults_of_rows(row_faults).items() if number not in large}
    payloads = _Payloads(
        rows=table.select([name for name in table.column_names if name in present]),
        numbers=list(bad),
        form=form,
        originals=originals,
    )
    for number in sorted({*bad, *large}):
        if number in bad:
            record_errors.add(row + number, bad[number], partial(payloads.of, number))
        else:
            record_errors.add_too_large(row + number, partial(_excerpt, batch.slice(number, 1), schema))
    good = np.ones(table.num_rows, dtype=np.bool_)
    good[[*bad, *large]] = False
    return form.rows(rows.filter(pa.array(good)))


def _large_rows(rows: pa.Table, row_bytes_max: int) -> frozenset[int]:
    """The rows that are too large."""
    if rows.nbytes <= row_bytes_max:
        return frozenset()
    return frozenset(np.flatnonzero(row_bytes(rows) > row_bytes_max).tolist())


def _faults_of_rows(row_faults: list[tuple[int, str, str]]) -> dict[int, Faults]:
    """The faults by row, in the order of the rows; those of a row in the order of the columns."""
    bad: dict[int, Faults] = {}
    for number, pointer, reason in sorted(row_faults, key=lambda each: each[0]):
        bad.setdefault(number, Faults()).add(pointer, reason)
    return bad


@dataclass(slots=True, kw_only=True)
class _Payloads:
    """The texts of some rows of a table as JSON objects, created for all rows at the first access.

    `originals`: columns of which values could not be cast, as they were.
    """

    rows: pa.Table
    numbers: list[int]
    form: FlatForm
    originals: dict[str, pa.Array]
    texts: dict[int, bytes] = member(default_factory=dict)

    def of(self, number: int) -> bytes:
        if not self.texts:
            rows = self.rows.take(pa.array(self.numbers)).combine_chunks()
            columns = {name: rows.column(name).chunk(0) for name in rows.column_names}
            columns |= {name: array.take(pa.array(self.numbers)) for name, array in self.originals.items()}
            self.texts = dict(
                zip(self.numbers, json_texts(self.form.record(columns), rows.num_rows), strict=True)
            )
        return self.texts[number]


def _cast(
    array: pa.Array, compiled_schema: CompiledSchema, field: pa.Field, *, explicit_cast: bool
) -> tuple[pa.Array, dict[int, str]]:
    """The values as they are stored, and the reason for each row whose value cannot be cast."""
    with reader_faults(f"column {shown(field.name)} cannot be read as {compiled_schema.types[field.name]}"):
        if explicit_cast or reads_strings(array.type, compiled_schema.types[field.name]):
            return cast_explicit(array, compiled_schema.types[field.name])
        values, refusals = cast_exact(array, compiled_schema.types[field.name])
        # The first of a row.
        return values, dict(reversed(refusals))


def _unchecked(array: pa.Array, compiled_schema: CompiledSchema, field: pa.Field) -> pa.Array:
    """The values of a row that is left out."""
    if is_exact(array.type, compiled_schema.types[field.name]):
        values, refusals = _cast(array, compiled_schema, field, explicit_cast=False)
        return _original(array) if refusals else values
    return _original(array)


def _original(array: pa.Array) -> pa.Array:
    """Values that were not cast, as what quarantined records show: texts, if they are no numbers or booleans."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_floating(kind):
        return array
    if isinstance(kind, pa.BaseExtensionType) or pa.types.is_nested(kind):
        return array
    if pa.types.is_fixed_size_binary(kind) or "binary" in str(kind):
        return array
    return _shown_texts(array)


def _shown_texts(array: pa.Array) -> pa.Array:
    """The texts of values, of which days and times may be out of range."""
    kind = array.type
    if kind == pa.date64():
        # Its own text would leave out the time of day.
        moments = pc.cast(array.view(pa.int64()).view(pa.timestamp("ms")), pa.string())
        texts = pc.replace_substring_regex(moments, " 00:00:00.000$", "")
    elif pa.types.is_timestamp(kind):
        # With a zone, Arrow writes a time beyond its range as another one.
        texts = pc.cast(array.view(pa.int64()).view(pa.timestamp(kind.unit)), pa.string())
        if kind.tz is not None:
            texts = pc.replace_substring_regex(texts, "([0-9])$", r"\1Z")
    else:
        texts = pc.cast(array, pa.string())
    since = "midnight" if pa.types.is_time(kind) else "1970-01-01"
    unit = getattr(kind, "unit", "ms")
    return pc.replace_substring_regex(texts, r"^<value out of range: (-?\d+)>$", rf"\1 {unit} since {since}")


def _column_faults(
    array: pa.Array, compiled_schema: CompiledSchema, field: pa.Field, faults_max: int
) -> Iterator[tuple[int, str, str]]:
    """(row, pointer below it, reason) of each rejected value, up to the number of faults to collect."""
    data_type = compiled_schema.types[field.name]
    pointer = below("", field.name)
    if not field.nullable and array.null_count:
        nulls = np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))
        for row in nulls[:faults_max]:
            yield int(row), pointer, null_field(field.name, str(data_type))
    for path in compiled_schema.key_members_of(field.name):
        without = pc.struct_field(array, list(path)).is_null().to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(without)[:faults_max]:
            yield int(row), pointer, null_member(path)
    for rows, reason in invalid_rows(array, data_type):
        for row in rows[:faults_max]:
            yield int(row), pointer, f"expected {data_type}, {reason}"


def _sound_runs(
    batch: pa.RecordBatch, row: int, schema: Schema, record_errors: RecordErrors
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows that are valid Arrow, as consecutive runs, each with the number of its first row."""
    bad = _invalid_text(batch)
    faults = _faults_of_rows(
        [
            (number, below("", name), "expected string, got invalid UTF-8")
            for name, rows in bad.items()
            for number in rows
        ]
    )
    for number, each in faults.items():
        one = batch.slice(number, 1)
        if _size(one) > record_errors.limits.row_bytes_max:
            record_errors.add_too_large(row + number, partial(_excerpt, one, schema))
        else:
            record_errors.add(row + number, each, partial(_payload, one, schema))
    record_errors.raise_if_rejected()
    start = 0
    for number in [*faults, batch.num_rows]:
        if number > start:
            yield row + start, batch.slice(start, number - start)
        start = number + 1


def _invalid_text(batch: pa.RecordBatch) -> dict[str, list[int]]:
    """The rows with text that is not UTF-8, by column. Raises MalformedBody for other invalid data."""
    try:
        batch.validate()
        if sum(viewed_bytes(column) for column in batch.columns) > TABLE_BYTES_MAX:
            raise _too_large()
        batch.validate(full=True)
    except (pa.ArrowException, OSError, OverflowError) as fault:
        bad_rows = {}
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            with reader_faults(f"the Arrow data of column {shown(name)} are inconsistent"):
                without_text(array).validate(full=True)
                bad_rows[name] = [int(number) for number in invalid_text_rows(array)]
        if not any(bad_rows.values()) and not any(map(has_clocks, batch.schema.types)):
            raise malformed("the Arrow data are inconsistent", fault) from None
        # Days and times of day that are out of range are refused where they are converted.
        return bad_rows
    return {}


def _payload(row: pa.RecordBatch, schema: Schema) -> bytes:
    form = flat_form(schema, row.schema)
    columns = {
        field.name: _unchecked(row.column(field.name), form.compiled_schema, field)
        for field in form.compiled_schema.arrow
        if field.name in row.schema.names
    }
    return json_texts(form.record(columns), 1)[0]


def _excerpt(row: pa.RecordBatch, schema: Schema) -> bytes:
    """The first, small columns of a row that is too large, as the start of a JSON object."""
    form = flat_form(schema, row.schema)
    columns = {}
    size = 0
    for field in form.compiled_schema.arrow:
        if field.name in row.schema.names:
            column = row.column(field.name)
            size += expanded_bytes(column)
            if size > EXCERPT_BYTES:
                break
            columns[field.name] = _unchecked(column, form.compiled_schema, field)
    return json_texts(columns, 1)[0][:EXCERPT_BYTES].removesuffix(b"}") if columns else b"{"


def _size(batch: pa.RecordBatch) -> int:
    return sum(expanded_bytes(column) for column in batch.columns)


def _too_large() -> BodyTooLarge:
    return BodyTooLarge(f"the rows expand to more than {TABLE_BYTES_MAX} bytes", limit_bytes=TABLE_BYTES_MAX)


def _of_bounded_size(
    row: int, batch: pa.RecordBatch, schema: Schema, record_errors: RecordErrors
) -> Iterator[tuple[int, pa.RecordBatch]]:
    size = _size(batch)
    if batch.num_rows == 1 and size > record_errors.limits.row_bytes_max:
        record_errors.add_too_large(row, partial(_excerpt, batch, schema))
        return
    if size <= STEP_BYTES or batch.num_rows == 1:
        yield row, batch
        return
    half = batch.num_rows // 2
    yield from _of_bounded_size(row, batch.slice(0, half), schema, record_errors)
    yield from _of_bounded_size(row + half, batch.slice(half), schema, record_errors)
