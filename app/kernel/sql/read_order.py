"""Sorted rows: their order, sorting, and the division of sorted runs into ranges.

Nulls come last in both directions, NaN before them. Strings and binaries are compared by their bytes; false is before
true. Rows that are equal in the order come in any order.

Rows that exceed the memory of a task are written to sorted **runs**, files of small batches. A run's metadata has the
key of the first row of each batch. By these keys, all runs together are divided into ranges that fit into memory, and
one task sorts each range. A key includes its run and its number in it, so no two keys are equal, and a range can end
among rows that are equal in the order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Annotated, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc

from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.schema.schema import Schema
from app.kernel.format.schema.types import List, Map, Struct

# The place of a row: its run, and its number there. The number is doubled, so that a bound can lie before a row.
_PLACE: Final = (pa.field("run", pa.int64()), pa.field("row", pa.int64()))
_NESTED: Final = (List, Map, Struct)
_ENDINGS: Final = {"asc": False, "desc": True}
ORDERS_MAX: Final = 100
"""The most columns of an order."""


class ReadOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A column that rows are ordered by. Nulls come last in both directions."""

    column: Annotated[str, msgspec.Meta(examples=["amount"])]
    """The name of the column."""
    descending: bool = False
    """Whether the largest value comes first."""


class SortedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A file of rows in order, in batches of `batch_rows` rows; the last batch may have fewer.

    `memory_bytes`: the size of its rows in memory. `keys`: an Arrow file of the first key of each batch.
    """

    path: str
    row_count: int
    batch_rows: int
    memory_bytes: int
    keys: bytes


class RunSlice(msgspec.Struct, frozen=True, kw_only=True):
    """The batches [first_batch, end_batch) of a run. `number`: the index of the run."""

    path: str
    number: int
    batch_rows: int
    first_batch: int
    end_batch: int


class RunRange(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of some runs from one key up to, but without, another; None is no bound. The slices contain them all.

    A bound is an Arrow file of one row: the key with its place.
    """

    slices: tuple[RunSlice, ...]
    low: bytes | None = None
    high: bytes | None = None


def check_order(schema: Schema, order: Sequence[ReadOrder]) -> None:
    """Raises InvalidRequest for columns that do not exist, are repeated, or whose values have no order."""
    _refuse(
        [
            FieldError(pointer=f"/order_by/{number}/column", detail=detail)
            for number, detail in _faults(schema, order)
        ]
    )


def _faults(schema: Schema, order: Sequence[ReadOrder]) -> Iterator[tuple[int, str]]:
    """The columns that are not in order, by their numbers, with what is wrong."""
    types = {field.name: field.data_type() for field in schema.fields}
    for number, key in enumerate(order):
        if key.column not in types:
            yield number, f"there is no column {key.column!r}"
        elif isinstance(types[key.column], _NESTED):
            yield number, f"{key.column!r} is {types[key.column]}: lists, maps and structs have no order"
        elif key.column in (earlier.column for earlier in order[:number]):
            yield number, f"{key.column!r} is listed more than once"


def _refuse(errors: Sequence[FieldError]) -> None:
    if errors:
        raise InvalidRequest(f"order_by: {errors[0].detail}", errors)


def parse_order(schema: Schema, texts: Sequence[str]) -> tuple[ReadOrder, ...]:
    """The order that a query string states: names of columns between commas, each alone or with `:asc` or `:desc`.

    A text that is the name of a column, or one with such an ending, is that column, commas included. Raises
    InvalidRequest as `check_order` does.
    """
    names = frozenset(schema.names())
    order: list[ReadOrder] = []
    for text in texts:
        whole = _ordered(text, names)
        parts = [text] if whole.column in names else text.split(",")
        order += [_ordered(part, names) for part in parts]
    details = [
        _ending_fault(order[number].column, names) or detail for number, detail in _faults(schema, order)
    ]
    if not order or len(order) > ORDERS_MAX:
        details = [f"expected 1–{ORDERS_MAX} columns, such as at:desc"]
    _refuse([FieldError(pointer="/order_by", detail=detail) for detail in details])
    return tuple(order)


def _ending_fault(text: str, names: Collection[str]) -> str:
    """What is wrong with a text that is a column with another ending; empty for any other."""
    name, colon, ending = text.rpartition(":")
    if text in names or not colon or name not in names:
        return ""
    return f"expected {name}:asc or {name}:desc, got {name}:{ending}"


def _ordered(text: str, names: Collection[str]) -> ReadOrder:
    name, colon, ending = text.rpartition(":")
    if text in names or not colon or ending not in _ENDINGS:
        return ReadOrder(column=text)
    return ReadOrder(column=name, descending=_ENDINGS[ending])


def in_order(rows: pa.Table, order: Sequence[ReadOrder], *, limit: int | None = None) -> pa.Table:
    """The rows sorted; with a `limit`, its number of first rows."""
    indices = _sorted_indices(_keys(rows, order), order)
    return rows.combine_chunks().take(pa.array(indices if limit is None else indices[:limit]))


def first_keys(rows: pa.Table, order: Sequence[ReadOrder], batch_rows: int) -> bytes:
    """The `keys` of a `SortedRun` with these sorted rows, in batches of `batch_rows`."""
    starts = pa.array(np.arange(0, rows.num_rows, batch_rows))
    return _packed(_keys(rows, order).take(starts))


def cut_ranges(runs: Sequence[SortedRun], order: Sequence[ReadOrder], *, bytes_max: int) -> list[RunRange]:
    """The rows of all runs in consecutive ranges of about `bytes_max` bytes of memory at most."""
    total = sum(run.memory_bytes for run in runs)
    count = -(-total // bytes_max)
    batches = [-(-run.row_count // run.batch_rows) for run in runs]
    if count <= 1:
        whole = [_slice(run, number, 0, batches[number]) for number, run in enumerate(runs)]
        return [RunRange(slices=tuple(whole))] if runs else []
    keys = pa.concat_tables(
        _placed(_unpacked(run.keys), number, run.batch_rows) for number, run in enumerate(runs)
    )
    # The first keys of all batches, in order; within one run they increase.
    indices = _sorted_indices(keys, order)
    ranks = np.empty(len(indices), dtype=np.int64)
    ranks[indices] = np.arange(len(indices))
    ranks_of_runs = np.split(ranks, np.cumsum(batches)[:-1])
    bounds = [None, *_cuts(runs, batches, indices, count), None]
    return [
        RunRange(
            slices=tuple(_slices(runs, ranks_of_runs, low, high)),
            low=None if low is None else _packed(keys.slice(int(indices[low]), 1)),
            high=None if high is None else _packed(keys.slice(int(indices[high]), 1)),
        )
        for low, high in pairwise(bounds)
    ]


def _cuts(
    runs: Sequence[SortedRun], batches: Sequence[int], indices: npt.NDArray[np.int64], count: int
) -> list[int]:
    """The ranks among the first keys of all batches at which a range ends and the next one begins, ascending.

    Each batch counts as much memory as the others of its run. `indices`: the batches in order of their first keys.
    """
    weights = np.repeat([run.memory_bytes / max(n, 1) for run, n in zip(runs, batches, strict=True)], batches)
    cumulative_bytes = np.cumsum(weights[indices])
    inner = np.unique(np.searchsorted(cumulative_bytes, np.arange(1, count) * (cumulative_bytes[-1] / count)))
    return [int(rank) for rank in inner if 0 < rank < len(indices)]


def _slices(
    runs: Sequence[SortedRun],
    ranks_of_runs: Sequence[npt.NDArray[np.int64]],
    low: int | None,
    high: int | None,
) -> Iterator[RunSlice]:
    """The batches that may have rows of the range [low, high) of ranks; None is no bound."""
    for number, (run, ranks) in enumerate(zip(runs, ranks_of_runs, strict=True)):
        # The batch before the first one that starts in the range may end in it.
        first = 0 if low is None else max(int(np.searchsorted(ranks, low, "right")) - 1, 0)
        end = len(ranks) if high is None else int(np.searchsorted(ranks, high))
        if first < end:
            yield _slice(run, number, first, end)


def _slice(run: SortedRun, number: int, first: int, end: int) -> RunSlice:
    return RunSlice(path=run.path, number=number, batch_rows=run.batch_rows, first_batch=first, end_batch=end)


def order_of_range(
    batches: Sequence[tuple[RunSlice, int, pa.Table]], order: Sequence[ReadOrder], run_range: RunRange
) -> npt.NDArray[np.int64]:
    """The indexes, in order, of the rows of the concatenated batches that are in the range.

    `batches`: each with its slice and its number in the run.
    """
    keys = [
        _placed(_keys(rows, order), part.number, 1, first=number * part.batch_rows)
        for part, number, rows in batches
    ]
    bounds = [_before(_unpacked(bound)) for bound in (run_range.low, run_range.high) if bound is not None]
    # The bounds come first, so a row's number in the table is its number in the batches plus the number of bounds.
    indices = _sorted_indices(pa.concat_tables([*bounds, *keys]), order)
    start, end = 0, len(indices)
    if run_range.low is not None:
        start = int(np.flatnonzero(indices == 0)[0]) + 1
    if run_range.high is not None:
        end = int(np.flatnonzero(indices == len(bounds) - 1)[0])
    return indices[start:end] - len(bounds)


def _keys(rows: pa.Table, order: Sequence[ReadOrder]) -> pa.Table:
    """The columns of the order under generated names: Arrow reads some names as paths."""
    return pa.table({f"k{number}": rows.column(key.column) for number, key in enumerate(order)})


def _placed(keys: pa.Table, run: int, step: int, *, first: int = 0) -> pa.Table:
    """Keys of a run's rows `first`, `first + step`, …, each with its place."""
    count = keys.num_rows
    rows = 2 * (first + step * np.arange(count, dtype=np.int64)) + 1
    place = pa.repeat(pa.scalar(run, pa.int64()), count), pa.array(rows)
    for field, values in zip(_PLACE, place, strict=True):
        keys = keys.append_column(field, values)
    return keys


def _before(bound: pa.Table) -> pa.Table:
    """The place just before a key."""
    at = bound.schema.get_field_index(_PLACE[1].name)
    return bound.set_column(at, _PLACE[1], pc.subtract(bound.column(at), 1))


def _sorted_indices(keys: pa.Table, order: Sequence[ReadOrder]) -> npt.NDArray[np.int64]:
    by = [(f"k{number}", "descending" if key.descending else "ascending") for number, key in enumerate(order)]
    by += [(field.name, "ascending") for field in _PLACE if field.name in keys.column_names]
    indices: npt.NDArray[np.int64] = pc.sort_indices(keys, sort_keys=by).to_numpy().astype(np.int64)
    return indices


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue().to_pybytes())


def _unpacked(content: bytes) -> pa.Table:
    return ipc.open_file(pa.BufferReader(content)).read_all()
