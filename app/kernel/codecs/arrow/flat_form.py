"""The meaning of the columns of an Arrow table, a Parquet file or a CSV: fields of rows, and the op of changes.

Changes have a column with the op beside those of their rows: the symbols +A, -R, -C, +C or the codes 0–3. It has the
name of the dataset's vocabulary, or it is called `op`; if the dataset has a column of that name, `_op`; if it has both,
`_hw_op`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.codecs.compiled import CompiledSchema, compile_schema
from app.kernel.codecs.faults import Faults, below, null_field
from app.kernel.codecs.json.changelog_rows import PUT_THERE
from app.kernel.format.dataset import DEFAULT_VOCABULARY
from app.kernel.format.rows.change_schema import ChangeSchema
from app.kernel.format.rows.changelog import OP_COLUMN, SYMBOLS
from app.kernel.format.schema.schema import Field, Schema

_OP_NAMES: Final = ("op", "_op", OP_COLUMN)
_TEXTS: Final = pa.array([*SYMBOLS, *(str(code) for code in range(len(SYMBOLS)))])


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatForm:
    """`columns`: the columns of the input. `changes`: their form as changes, None for plain rows."""

    columns: Schema
    changes: ChangeSchema | None

    @property
    def compiled_schema(self) -> CompiledSchema:
        """The columns, compiled."""
        return compile_schema(self.columns)

    def faults(self, table: pa.Table, faults_max: int) -> Iterator[tuple[int, str, str]]:
        """(row, column, reason) of the faults of rows whose values all fit their columns."""
        if self.changes is None:
            return
        codes = _codes(table.column(0))
        present = table.column(0).is_valid().to_numpy()
        for row in np.flatnonzero((codes < 0) & present)[:faults_max]:
            got = table.column(0)[int(row)].as_py()
            yield int(row), table.column_names[0], f"expected +A, -R, -C, +C or a code 0–3, got {got!r}"
        put_there = np.isin(codes, PUT_THERE)
        for field in self.changes.rows().fields:
            if field.name in self.changes.required and field.nullable:
                column = table.column(field.name)
                absent = (
                    column.is_null().to_numpy() & put_there if column.null_count else np.zeros(0, dtype=bool)
                )
                for row in np.flatnonzero(absent)[:faults_max]:
                    yield int(row), field.name, null_field(field.name, field.type)

    def add_faults(self, table: pa.Table, faults_by_row: dict[int, Faults], faults_max: int) -> None:
        """Adds the faults of rows without faults so far, up to the number of faults to collect."""
        if sum(faults.count for faults in faults_by_row.values()) < faults_max:
            for row, name, reason in [
                each for each in self.faults(table, faults_max) if each[0] not in faults_by_row
            ]:
                faults_by_row.setdefault(row, Faults()).add(below("", name), reason)

    def rows(self, table: pa.Table) -> pa.Table:
        """The rows of a table without faults, changes with `_hw_op` in front."""
        if self.changes is None:
            return table
        codes = pa.array(_codes(table.column(0)).astype(np.uint8))
        return pa.Table.from_arrays([codes, *table.columns[1:]], schema=self.changes.to_arrow())

    def record(self, columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
        """The columns of rows as those of JSON records: changes have the op and the row."""
        if self.changes is None or not columns:
            return columns
        ops, *fields = columns.values()
        _, *names = columns
        codes = _codes(pa.chunked_array([ops]))
        symbols = pa.array(SYMBOLS).take(pa.array(np.maximum(codes, 0)))
        op_texts = (
            symbols
            if not (codes < 0).any()
            else pc.if_else(pa.array(codes >= 0), symbols, pc.cast(ops, pa.string()))
        )
        return {"op": op_texts, "row": pa.StructArray.from_arrays(fields, names)}


def _codes(ops: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """The code of each op, -1 for an unknown op."""
    if pa.types.is_string(ops.type):
        places = pc.fill_null(pc.index_in(ops, _TEXTS), -1).to_numpy().astype(np.int64)
        return np.where(places < 0, -1, places % len(SYMBOLS))
    numbers: npt.NDArray[np.int64] = pc.fill_null(ops, -1).to_numpy()
    return np.where((numbers >= 0) & (numbers < len(SYMBOLS)), numbers, -1)


def flat_form(
    schema: Schema, input_schema: pa.Schema | None = None, *, header: Sequence[str] | None = None
) -> FlatForm:
    """The form of columns that become rows of the schema. `input_schema`: their types, where known. `header`: their
    names, where only these are known.
    """
    if not isinstance(schema, ChangeSchema):
        return FlatForm(columns=schema, changes=None)
    name = _op_name(schema, header if input_schema is None else input_schema.names)
    kinds = [] if input_schema is None else [column.type for column in input_schema if column.name == name]
    return _flat_changes(schema, name, "int64" if kinds and pa.types.is_integer(kinds[0]) else "string")


def op_names(schema: Schema) -> tuple[str, ...]:
    """The names that the column with the op may have, the first one that the input has; none if rows have no op."""
    if not isinstance(schema, ChangeSchema):
        return ()
    field_names = set(schema.rows().names())
    standard = next(name for name in _OP_NAMES if name not in field_names)
    vocabulary_name = schema.vocabulary.op
    return (
        (standard,)
        if vocabulary_name in (standard, *field_names, DEFAULT_VOCABULARY.op)
        else (vocabulary_name, standard)
    )


def _op_name(schema: ChangeSchema, columns: Sequence[str] | None) -> str:
    names = op_names(schema)
    return next((name for name in names if columns is not None and name in columns), names[0])


@functools.lru_cache(maxsize=256)
def _flat_changes(schema: ChangeSchema, op_name: str, op_type: str) -> FlatForm:
    op = Field(id=0, name=op_name, type=op_type, nullable=False)
    rows = schema.rows()
    return FlatForm(columns=Schema(id=rows.id, fields=(op, *rows.fields)), changes=schema)
