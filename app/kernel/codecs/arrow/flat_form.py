"""The meaning of the columns of an Arrow table, a Parquet file or a CSV: fields of rows, and what changes have beside.

Rows may have the meta columns that reads add. Changes have their op beside the fields of their rows, in one of the
forms of the feed:

    two_event, retract, upsert   a column `op`: the symbols +A, -R, -C, +C or the codes 0–3
    single_event                 the same, U as +C, and a struct `before` with the row that an update replaces
    delta                        `_change_type` in place of `op`
    debezium                     `op` c, r, u or d, and structs `before` and `after` in place of the fields; m for none

The other columns of these forms are system columns, which have no effect. A system column has the name of the
dataset's vocabulary or its standard name; a column of the dataset with that name stays one, and the system column is
then called `_hw_<name>`, the op also `_op`.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.codecs.arrow.unavailable_columns import available
from app.kernel.codecs.compiled import CompiledSchema, compile_schema
from app.kernel.codecs.faults import Faults, below, null_field, null_member
from app.kernel.codecs.json.changelog_rows import PUT_THERE, TRUNCATED
from app.kernel.codecs.json.row_reader import deletes
from app.kernel.codecs.meta_on_read import META_INPUT_NAMES
from app.kernel.format.dataset import Vocabulary
from app.kernel.format.rows.change_schema import ChangeSchema, MarkedSchema
from app.kernel.format.rows.changelog import DELTA_TYPES, OP_COLUMN, SYMBOLS, UPDATE_SYMBOL, Op
from app.kernel.format.rows.kept_fields import KEPT_COLUMN, KEPT_FIELD
from app.kernel.format.schema.schema import RESERVED_PREFIX, Field, KeyStruct, Schema
from app.kernel.format.schema.types import DataType, Struct

_INDEX_LEVEL: Final = re.compile(r"__index_level_\d+__")
_DELTA_OP_NAMES: Final = ("_hw__change_type", "_change_type")
_SYSTEM_NAMES: Final = tuple(name for name in Vocabulary.__struct_fields__ if name != "op")
_DELTA_NAMES: Final = ("_commit_version", "_commit_timestamp")
_ENVELOPE_ROWS: Final = ("before", "after")
_ENVELOPE_FACTS: Final = ("source", "transaction", "ts_ms", "ts_us", "ts_ns", "message")
# The code of an event without changes.
_NO_CHANGE: Final = len(SYMBOLS)

_Mask = npt.NDArray[np.bool_]
_Codes = npt.NDArray[np.int64]


class _Ops(NamedTuple):
    """The texts of ops, the code of each, and how they are named where another is refused."""

    texts: pa.StringArray
    codes: _Codes
    expected: str


def _ops(texts: Sequence[str], codes: Sequence[int], expected: str) -> _Ops:
    return _Ops(pa.array(texts), np.array([*codes, -1], dtype=np.int64), expected)


_FEED_OPS: Final = _ops(
    [*SYMBOLS, *(str(code) for code in range(len(SYMBOLS))), UPDATE_SYMBOL],
    [*range(len(SYMBOLS)), *range(len(SYMBOLS)), Op.CORRECT_TO],
    "expected +A, -R, -C, +C or a code 0–3",
)
_DELTA_OPS: Final = _ops(DELTA_TYPES, range(len(DELTA_TYPES)), f"expected {', '.join(DELTA_TYPES)}")
_ENVELOPE_OPS: Final = _ops(
    "crudm",
    [Op.APPEND, Op.APPEND, Op.CORRECT_TO, Op.RETRACT, _NO_CHANGE],
    "expected Debezium's c, r, u or d",
)


class RowField(Field, frozen=True, kw_only=True):
    """A column of structs that are rows of a schema."""

    rows: Schema

    def data_type(self) -> DataType:
        return Struct(tuple((field.name, field.data_type()) for field in self.rows.fields))


class _Part(NamedTuple):
    """Changes of events. `has`: which events have one. `codes`: their ops. `place`: where their rows are, a pointer."""

    has: _Mask
    codes: _Codes
    rows: dict[str, pa.ChunkedArray | pa.Array]
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatForm:
    """The columns of an input.

    `columns`: those with a meaning. `changes`: their form as changes, None for rows. `marked`: the schema of rows that
    may delete, None for others. `system`: names of columns without effect. `ops`: the texts of ops. `is_feed`: whether
    the input has the positions, or the versions, of a feed. `in_envelope`: whether rows are structs of Debezium's
    envelope. `before`: the column with the rows that updates replace, if there is one.
    """

    columns: Schema
    changes: ChangeSchema | None = None
    marked: MarkedSchema | None = None
    system: frozenset[str] = frozenset()
    ops: _Ops = _FEED_OPS
    is_feed: bool = False
    in_envelope: bool = False
    before: str | None = None

    @property
    def compiled_schema(self) -> CompiledSchema:
        """The columns, compiled."""
        return compile_schema(self.columns)

    @property
    def row_columns(self) -> frozenset[str]:
        """The columns with structs that are rows."""
        return frozenset(field.name for field in self.columns.fields if isinstance(field, RowField))

    def available(self, table: pa.Table) -> tuple[pa.Table, list[tuple[int, str, str]]]:
        """The table for `faults` and `rows`, without values that Debezium has not read, and the faults of these."""
        if self.changes is None or not self.in_envelope:
            return table, []
        return available(table, self.changes, self._codes(table) == Op.CORRECT_TO, _ENVELOPE_ROWS)

    def faults(self, table: pa.Table, faults_max: int) -> Iterator[tuple[int, str, str]]:
        """(row, pointer below it, reason) of the faults of rows whose values all fit their columns."""
        if self.marked is not None:
            rows = {name: table.column(name) for name in table.column_names}
            puts = np.invert(deletes(table, self.marked))
            yield from _missing(rows, puts, self.marked.fields, self.marked.required, "", faults_max)
        if self.changes is None:
            return
        codes, present = self._codes(table), table.column(0).is_valid().to_numpy()
        op_name = below("", table.column_names[0])
        for row in np.flatnonzero((codes < 0) & present)[:faults_max]:
            got = table.column(0)[int(row)].as_py()
            is_truncated = self.in_envelope and got == "t"
            yield int(row), op_name, TRUNCATED if is_truncated else f"{self.ops.expected}, got {got!r}"
        if self.in_envelope:
            yield from _envelope_faults(table, codes, faults_max)
        for part in self._parts(table, codes):
            if part.place and not self.in_envelope:
                for row in np.flatnonzero(part.has & (codes != Op.CORRECT_TO))[:faults_max]:
                    yield int(row), part.place, f'expected null unless the op is "{UPDATE_SYMBOL}"'
            yield from _row_faults(part, self.changes, faults_max)

    def add_faults(self, table: pa.Table, faults_by_row: dict[int, Faults], faults_max: int) -> None:
        """Adds the faults of rows without faults so far, up to the number of faults to collect."""
        if sum(faults.count for faults in faults_by_row.values()) < faults_max:
            for row, pointer, reason in [
                each for each in self.faults(table, faults_max) if each[0] not in faults_by_row
            ]:
                faults_by_row.setdefault(row, Faults()).add(pointer, reason)

    def rows(self, table: pa.Table) -> pa.Table:
        """The rows of a table without faults, changes with `_hw_op` in front; an event may be two changes."""
        if self.changes is None:
            return table
        schema = self.changes.to_arrow()
        if KEPT_COLUMN in table.column_names:
            schema = schema.append(KEPT_FIELD)
        parts = self._parts(table, self._codes(table))
        tables = [
            pa.Table.from_arrays([pa.array(part.codes.astype(np.uint8)), *part.rows.values()], schema=schema)
            for part in parts
        ]
        if len(parts) == 1:
            return tables[0]
        # Event by event, in each the changes in the order of the parts.
        places = np.flatnonzero(np.stack([part.has for part in parts], axis=1))
        events, numbers = places // len(parts), places % len(parts)
        return pa.concat_tables(tables).take(pa.array(numbers * table.num_rows + events)).combine_chunks()

    def record(self, columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
        """The columns of rows as those of JSON records: changes have the op and the row."""
        if self.changes is None or not columns:
            return columns
        names = list(columns)
        ops = columns[names[0]]
        if self.in_envelope:
            return columns
        codes = self._codes(pa.table({"op": ops}))
        symbols = pa.array(SYMBOLS).take(pa.array(np.maximum(codes, 0)))
        op_texts = (
            symbols
            if not (codes < 0).any()
            else pc.if_else(pa.array(codes >= 0), symbols, pc.cast(ops, pa.string()))
        )
        fields = [name for name in names[1:] if name != self.before]
        record = {
            "op": op_texts,
            "row": pa.StructArray.from_arrays([columns[name] for name in fields], fields),
        }
        return record if self.before not in columns else record | {"before": columns[self.before]}

    def _codes(self, table: pa.Table) -> _Codes:
        """The code of each op, -1 for an unknown op."""
        ops = table.column(0)
        if pa.types.is_string(ops.type):
            codes: _Codes = self.ops.codes[pc.fill_null(pc.index_in(ops, self.ops.texts), -1).to_numpy()]
            return codes
        numbers: _Codes = pc.fill_null(ops, -1).to_numpy()
        return np.where((numbers >= 0) & (numbers < len(SYMBOLS)), numbers, -1)

    def _parts(self, table: pa.Table, codes: _Codes) -> list[_Part]:
        """The changes of the events in a table, in the order that they have within an event."""
        every = np.ones(len(codes), dtype=np.bool_)
        corrected = np.full(len(codes), Op.CORRECT_FROM, dtype=np.int64)
        if self.in_envelope:
            before, after = (table.column(name) for name in _ENVELOPE_ROWS)
            removed = np.where(codes == Op.RETRACT, codes, corrected)
            old, new = _members(before), _members(after)
            if KEPT_COLUMN in table.column_names:
                old[KEPT_COLUMN] = pa.nulls(len(codes), KEPT_FIELD.type)
                new[KEPT_COLUMN] = table.column(KEPT_COLUMN)
            changes = codes != _NO_CHANGE
            return [
                _Part(before.is_valid().to_numpy() & changes, removed, old, below("", _ENVELOPE_ROWS[0])),
                _Part(after.is_valid().to_numpy() & changes, codes, new, below("", _ENVELOPE_ROWS[1])),
            ]
        fields = {name: table.column(name) for name in table.column_names[1:] if name != self.before}
        main = _Part(every, codes, fields, "")
        if self.before is None:
            return [main]
        old = table.column(self.before)
        return [_Part(old.is_valid().to_numpy(), corrected, _members(old), below("", self.before)), main]


def _members(structs: pa.ChunkedArray) -> dict[str, pa.ChunkedArray | pa.Array]:
    values = structs.combine_chunks()
    array = pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values
    return dict(zip((field.name for field in array.type), array.flatten(), strict=True))


def _envelope_faults(table: pa.Table, codes: _Codes, faults_max: int) -> Iterator[tuple[int, str, str]]:
    before, after = (table.column(name).is_valid().to_numpy() for name in _ENVELOPE_ROWS)
    removes, adds = codes == Op.RETRACT, codes == Op.APPEND
    for name, wrong, expected in (
        ("before", before & adds, "null"),
        ("after", after & removes, "null"),
        ("before", ~before & removes, "a row"),
        ("after", ~after & (codes >= 0) & ~removes & (codes != _NO_CHANGE), "a row"),
    ):
        for row in np.flatnonzero(wrong)[:faults_max]:
            op = table.column(0)[int(row)].as_py()
            yield int(row), below("", name), f'expected {expected} in an envelope of op "{op}"'


def _row_faults(part: _Part, schema: ChangeSchema, faults_max: int) -> Iterator[tuple[int, str, str]]:
    """What the rows of changes lack: the key in all of them, required columns where a row is put."""
    fields = schema.rows().fields
    put_there = part.has & np.isin(part.codes, PUT_THERE)
    optional = [field for field in fields if field.nullable]
    yield from _missing(part.rows, put_there, optional, schema.required, part.place, faults_max)
    if not part.place:
        # Fields beside the op are checked as columns.
        return
    always = [field for field in fields if not field.nullable]
    yield from _missing(part.rows, part.has, always, {field.name for field in always}, part.place, faults_max)
    for field in fields:
        for path in field.key_members if isinstance(field, KeyStruct) else ():
            column = part.rows[field.name]
            without = _nulls(pc.struct_field(column, list(path))) & ~_nulls(column)
            for row in np.flatnonzero(without & part.has)[:faults_max]:
                yield int(row), below(part.place, field.name), null_member(path)


def _missing(
    rows: Mapping[str, pa.ChunkedArray | pa.Array],
    needs: _Mask,
    fields: Iterable[Field],
    required: Collection[str],
    place: str,
    faults_max: int,
) -> Iterator[tuple[int, str, str]]:
    """(row, pointer, reason) of each value of required fields that a row lacks that needs it."""
    for field in fields:
        column = rows[field.name]
        if field.name in required and column.null_count:
            for row in np.flatnonzero(_nulls(column) & needs)[:faults_max]:
                yield int(row), below(place, field.name), null_field(field.name, field.type)


def _nulls(column: pa.ChunkedArray | pa.Array) -> _Mask:
    nulls = pc.is_null(column)
    return np.asarray(
        nulls.to_numpy() if isinstance(nulls, pa.ChunkedArray) else nulls.to_numpy(zero_copy_only=False)
    )


def flat_form(
    schema: Schema, input_schema: pa.Schema | None = None, *, header: Sequence[str] | None = None
) -> FlatForm:
    """The form of columns that become rows of the schema. `input_schema`: their types, where known. `header`: their
    names, where only these are known.
    """
    form = _flat_form(schema, input_schema, header)
    levels = frozenset[str]() if input_schema is None else index_levels(input_schema)
    unknown = levels - set(form.columns.names())
    return replace(form, system=form.system | unknown) if unknown else form


def index_levels(columns: pa.Schema) -> frozenset[str]:
    """The columns that are the unnamed index of a pandas frame, which pandas writes if it is no plain count of rows."""
    levels = {name for name in columns.names if _INDEX_LEVEL.fullmatch(name)}
    if not levels:
        return frozenset()
    try:
        described = json.loads((columns.metadata or {}).get(b"pandas", b"{}"))
        index = {each for each in described.get("index_columns", ()) if isinstance(each, str)}
    except (ValueError, TypeError, AttributeError):
        return frozenset()
    return frozenset(levels & index)


def _flat_form(schema: Schema, input_schema: pa.Schema | None, header: Sequence[str] | None) -> FlatForm:
    names = frozenset((header if input_schema is None else input_schema.names) or ())
    if not isinstance(schema, ChangeSchema):
        marked = schema if isinstance(schema, MarkedSchema) else None
        if marked is not None and marked.delete_marker not in names:
            schema, marked = marked.unmarked(), None
        return FlatForm(columns=schema, marked=marked, system=names & META_INPUT_NAMES - set(schema.names()))
    integers = (
        frozenset[str]()
        if input_schema is None
        else frozenset(column.name for column in input_schema if pa.types.is_integer(column.type))
    )
    op_name = _op_name(schema, names)
    others = names - set(schema.rows().names())
    return _changes(schema, op_name, "int64" if op_name in integers else "string", others)


def _first(candidates: Sequence[str], names: Collection[str]) -> str | None:
    return next((name for name in candidates if name in names), None)


def _system_candidates(schema: ChangeSchema) -> Iterator[tuple[str, ...]]:
    """The name of each system column but the op, then those that it may have in an input."""
    for name in (*_SYSTEM_NAMES, *_DELTA_NAMES):
        yield name, f"{RESERVED_PREFIX}{name}", schema.vocabulary.of(name), name


def _op_candidates(schema: ChangeSchema) -> list[str]:
    """The names that the column with the op may have, the first one that the input has."""
    field_names = schema.rows().names()
    candidates = (OP_COLUMN, schema.vocabulary.op, "op", "_op", *_DELTA_OP_NAMES)
    return [name for name in dict.fromkeys(candidates) if name not in field_names]


def _op_name(schema: ChangeSchema, names: Collection[str]) -> str:
    """The name of the column with the op, or the one that is expected where there is none."""
    if _is_envelope(schema, names):
        return "op"
    candidates = _op_candidates(schema)
    expected = next(name for name in (*candidates[1:], OP_COLUMN) if name not in _DELTA_OP_NAMES)
    return _first(candidates, names) or expected


def _is_envelope(schema: ChangeSchema, names: Collection[str]) -> bool:
    """Whether the columns are those of Debezium's envelope."""
    in_envelope = all(name in names for name in ("op", *_ENVELOPE_ROWS))
    return in_envelope and {*_ENVELOPE_ROWS}.isdisjoint(schema.rows().names())


@functools.lru_cache(maxsize=256)
def _changes(schema: ChangeSchema, op_name: str, op_type: str, others: frozenset[str]) -> FlatForm:
    """The form of changes. `others`: the names of the input's columns that are no columns of the dataset."""
    rows = schema.rows()
    op = Field(id=0, name=op_name, type=op_type, nullable=False)
    if _is_envelope(schema, others | {op_name}):
        structs = [RowField(id=0, name=name, type="struct", rows=rows) for name in _ENVELOPE_ROWS]
        return FlatForm(
            columns=Schema(id=rows.id, fields=(op, *structs)),
            changes=schema,
            system=others & {*_ENVELOPE_FACTS},
            ops=_ENVELOPE_OPS,
            in_envelope=True,
        )
    before = _first((f"{RESERVED_PREFIX}before", "before"), others)
    old = () if before is None else (RowField(id=0, name=before, type="struct", rows=rows),)
    by_name = {name: _first(candidates, others) for name, *candidates in _system_candidates(schema)}
    return FlatForm(
        columns=Schema(id=rows.id, fields=(op, *rows.fields, *old)),
        changes=schema,
        system=frozenset(name for name in by_name.values() if name is not None and name != op_name),
        ops=_DELTA_OPS if op_name in _DELTA_OP_NAMES else _FEED_OPS,
        is_feed=by_name["offset"] is not None or by_name["_commit_version"] is not None,
        before=before,
    )
