"""Clustering: in which order the rows of a file group stand, so that filters on some columns read little of it.

Rows that stand by the values of a column lie in few row groups for each value: filters on it read those alone. By
several columns they stand either by the first, then the second … (`linear`), which helps filters on the first, or along
a Z-order curve (`z_order`), which helps filters on each of them, on one less than if it were alone.

Such a curve takes of each column in turn the next most significant bit of its place among the column's values. A place
is that of a quantile: the first bit says in which half of the rows a value is, the next in which quarter … So every bit
halves the rows whatever the type and the spread of the values, where bits of the values themselves might be the
same in all rows, and take the room of those that are not. Quantiles come from a sample. A bad one makes
a worse curve, and no wrong rows: the place of a value always grows with the value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.format.dataset import DatasetDefinition
from app.format.errors import FieldError, InvalidRequest
from app.format.policies import ClusterOrder
from app.format.schema.schema import Schema
from app.format.schema.types import List, Map, Struct

COLUMNS_MAX: Final = 8
CURVE_FIELD: Final = pa.field("_hw_curve", pa.uint64(), nullable=False)
# A 4,000th of the rows is less than the part of them that any row group holds.
_BITS_MAX: Final = 12
_NESTED: Final = (List, Map, Struct)


class ClusterBy(msgspec.Struct, frozen=True, kw_only=True):
    """The order of the rows of clustered files."""

    columns: tuple[str, ...]
    order: ClusterOrder = ClusterOrder.LINEAR

    def mark(self, schema: Schema) -> str:
        """What files whose rows stand in this order are known by: columns by id, since names change."""
        return f"{self.order.value}:{','.join(str(schema.field(name).id) for name in self.columns)}"


def order_of(mark: str) -> ClusterOrder:
    """The order that a file with the mark stands in."""
    return ClusterOrder(mark.partition(":")[0])


def column_faults(columns: Sequence[str], schema: Schema) -> Iterator[tuple[str, str]]:
    """Why rows cannot be ordered by these columns: a JSON pointer within them, and what was expected."""
    if not 1 <= len(columns) <= COLUMNS_MAX:
        yield "", f"expected 1 to {COLUMNS_MAX} columns"
    known = {field.name: field.data_type() for field in schema.fields}
    for number, name in enumerate(columns):
        if name not in known:
            yield f"/{number}", f"there is no column {name!r}"
        elif isinstance(known[name], _NESTED):
            yield f"/{number}", f"{name!r} is {known[name]}: lists, maps and structs have no order"
        elif name in columns[:number]:
            yield f"/{number}", f"{name!r} is named before already"


def cluster_by(
    dataset: DatasetDefinition, columns: Sequence[str] | None = None, order: ClusterOrder | None = None
) -> ClusterBy:
    """The order that is asked for; what is left out is as the dataset's policy has it. Raises InvalidRequest."""
    policy = dataset.services.clustering
    if columns is None and policy is None:
        detail = "name the columns, or give the dataset a policy: services.clustering"
        raise InvalidRequest(f"cluster by what? {detail}", [FieldError(pointer="/columns", detail=detail)])
    if columns is None and policy is not None:
        columns, order = policy.columns, order or policy.order
    by = ClusterBy(columns=tuple(columns or ()), order=order or ClusterOrder.LINEAR)
    errors = [
        FieldError(pointer=f"/columns{pointer}", detail=detail)
        for pointer, detail in column_faults(by.columns, dataset.schema)
    ]
    if errors:
        raise InvalidRequest(f"rows cannot be ordered so: {errors[0].detail}", errors)
    return by


def policy_mark(dataset: DatasetDefinition) -> str | None:
    """The mark of the order in which the dataset is kept; None if it is in none."""
    return None if dataset.services.clustering is None else cluster_by(dataset).mark(dataset.schema)


class Curve:
    """A Z-order curve through the values of some columns, of which `sample` is a sample: one column each, in order."""

    def __init__(self, sample: pa.Table) -> None:
        self._bits = min(_BITS_MAX, 64 // max(sample.num_columns, 1))
        self._quantiles = [_quantiles(column, (1 << self._bits) - 2) for column in sample.columns]

    def places(self, rows: pa.Table) -> pa.Array:
        """Where on the curve rows are, by the columns that the sample has: uint64."""
        ranks = [
            _ranks(column, quantiles, (1 << self._bits) - 2)
            for column, quantiles in zip(rows.columns, self._quantiles, strict=True)
        ]
        return pa.array(interleaved(ranks, self._bits), pa.uint64())


def interleaved(ranks: Sequence[npt.NDArray[np.uint64]], bits: int) -> npt.NDArray[np.uint64]:
    """The `bits` low bits of each rank, in turn, from the most significant on; those of the first rank first."""
    one = np.uint64(1)
    places = np.zeros_like(ranks[0])
    for bit in range(bits - 1, -1, -1):
        for rank in ranks:
            places = (places << one) | ((rank >> np.uint64(bit)) & one)
    return places


def _quantiles(column: pa.ChunkedArray, count_max: int) -> pa.Array:
    """At most so many values of the column, in order, that divide it into equal parts."""
    values = pa.chunked_array(column.chunks, column.type).drop_null().combine_chunks()
    count = min(len(values), count_max)
    at = np.linspace(0, len(values) - 1, count).astype(np.int64) if count else np.zeros(0, dtype=np.int64)
    return values.take(pc.sort_indices(values).take(pa.array(at)))


def _ranks(column: pa.ChunkedArray, quantiles: pa.Array, rank_max: int) -> npt.NDArray[np.uint64]:
    """Which part of the quantiles is less than each value, of `rank_max`; one more than all for nulls."""
    values = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    both = pa.concat_arrays([values, quantiles])
    # Sorting is stable, and puts nulls last: a value comes before the quantile that it is.
    order = pc.sort_indices(both).to_numpy()
    is_quantile = order >= len(values)
    passed = np.cumsum(is_quantile)
    ranks = np.empty(len(values), dtype=np.uint64)
    ranks[order[~is_quantile]] = passed[~is_quantile] * rank_max // max(len(quantiles), 1)
    if values.null_count:
        ranks[values.is_null().to_numpy(zero_copy_only=False)] = rank_max + 1
    return ranks
