"""Evaluates a filter on the rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.sql.conditions.tree import (
    And,
    Column,
    Comparison,
    Condition,
    Constant,
    Filter,
    IsNull,
    Like,
    Not,
    OneOf,
    Operator,
    Or,
    Value,
)

_COMPARE: Final[Mapping[Operator, Callable[[Any, Any], Any]]] = {
    Operator.EQUAL: pc.equal,
    Operator.LESS: pc.less,
    Operator.LESS_OR_EQUAL: pc.less_equal,
    Operator.GREATER: pc.greater,
    Operator.GREATER_OR_EQUAL: pc.greater_equal,
}
# Booleans with null for unknown: a pa.ChunkedArray with one value per row, or a pa.Scalar for all rows.
_Truth: TypeAlias = Any


def matches(selection: Filter, table: pa.Table) -> npt.NDArray[np.bool_]:
    """Whether each row matches: bool, shape (rows,). `table` has the columns that `Filter.columns` names.

    A text column may be a dictionary: a condition is then evaluated for each of its values once.
    """
    truth = _truth(selection.root, table)
    if isinstance(truth, pa.Scalar):
        return np.full(table.num_rows, truth.as_py() is True)
    flags: npt.NDArray[np.bool_] = pc.fill_null(truth, False).to_numpy()
    return flags


def _truth(condition: Condition, table: pa.Table) -> _Truth:
    match condition:
        case And(operands=operands):
            return reduce(pc.and_kleene, (_truth(operand, table) for operand in operands))
        case Or(operands=operands):
            return reduce(pc.or_kleene, (_truth(operand, table) for operand in operands))
        case Not(operand=operand):
            return pc.invert(_truth(operand, table))
        case Constant(value=value):
            return pa.scalar(value, pa.bool_())
        case IsNull(column=column):
            return pc.is_null(_values(column, table))
        case Comparison(column=column, operator=operator, value=value):
            literal = _literals(column, [value])[0]
            return _of_each(_values(column, table), lambda values: _COMPARE[operator](values, literal))
        case OneOf(column=column, values=values):
            candidates = _literals(column, values)
            return _of_each(_values(column, table), lambda values: _one_of(values, candidates))
        case Like(column=column, pattern=pattern):
            return _of_each(_values(column, table), lambda values: pc.match_like(values, pattern))


def _values(column: Column, table: pa.Table) -> pa.ChunkedArray:
    """The column, or the member of a struct. A member of a null struct is null, whatever the file contains there."""
    values = table.column(column.path[0])
    return values if len(column.path) == 1 else pc.struct_field(values, list(column.path[1:]))


def _of_each(values: pa.ChunkedArray, test: Callable[[Any], Any]) -> pa.ChunkedArray:
    """The result of a test for each value; null for a null."""
    if not pa.types.is_dictionary(values.type):
        return test(values)
    parts = [test(chunk.dictionary).take(chunk.indices) for chunk in values.chunks]
    return pa.chunked_array(parts, pa.bool_())


def _one_of(values: pa.Array | pa.ChunkedArray, candidates: pa.Array) -> pa.Array | pa.ChunkedArray:
    if pa.types.is_floating(values.type):
        # A lookup by hash would treat the two zeros as different.
        values = pc.add(values, pa.scalar(0.0, values.type))
    return pc.if_else(pc.is_valid(values), pc.is_in(values, candidates), pa.scalar(None, pa.bool_()))


def _literals(column: Column, values: Iterable[Value]) -> pa.Array:
    """Literals as an array of the column's type."""
    flat = column.flat_type()
    return pa.array(map(flat.filter_value, values), flat.arrow)
