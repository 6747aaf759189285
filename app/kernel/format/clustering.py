"""Clustering: the order of the rows in a file group, so that filters on some columns read few row groups.

Rows that are ordered by a column have each of its values in few row groups, and a filter on the column reads only
those. The order by several columns is lexicographic (`linear`), which helps filters on the first column, or along a
Z-order curve (`z_order`), which helps filters on each column, but each less than if it were the only one.

A Z-order curve interleaves bits: it takes the next most significant bit of the rank of each column's value, one
column after the other. A rank is the number of a quantile: its first bit is the half of the rows that the value is
in, the next bit the quarter. So every bit halves the rows, whatever the type and the distribution of the values.
Bits of the values themselves could be equal in all rows and would displace useful bits. The quantiles come from a
sample. A bad sample makes a less effective curve, but never wrong rows: the rank always grows with the value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.policies import ClusterOrder
from app.kernel.format.schema.schema import Schema
from app.kernel.format.schema.types import List, Map, Struct

COLUMNS_MAX: Final = 8
CURVE_FIELD: Final = pa.field("_hw_curve", pa.uint64(), nullable=False)
# A 4,000th of the rows is less than any row group contains.
_BITS_MAX: Final = 12
_NESTED: Final = (List, Map, Struct)


class ClusterBy(msgspec.Struct, frozen=True, kw_only=True):
    """The order of the rows of clustered files."""

    columns: tuple[str, ...]
    order: ClusterOrder = ClusterOrder.LINEAR

    def mark(self, schema: Schema) -> str:
        """The identifier of this order in the metadata of a file. It uses column ids, since names change."""
        return f"{self.order.value}:{','.join(str(schema.field(name).id) for name in self.columns)}"


def order_of(mark: str) -> ClusterOrder:
    """The order of a file with this mark."""
    return ClusterOrder(mark.partition(":")[0])


def column_faults(columns: Sequence[str], schema: Schema) -> Iterator[tuple[str, str]]:
    """The reasons why rows cannot be ordered by these columns: a JSON pointer within them, and what is expected."""
    if not 1 <= len(columns) <= COLUMNS_MAX:
        yield "", f"expected 1 to {COLUMNS_MAX} columns"
    types = {field.name: field.data_type() for field in schema.fields}
    for number, name in enumerate(columns):
        if name not in types:
            yield f"/{number}", f"there is no column {name!r}"
        elif isinstance(types[name], _NESTED):
            yield f"/{number}", f"{name!r} is {types[name]}: lists, maps and structs have no order"
        elif name in columns[:number]:
            yield f"/{number}", f"{name!r} is listed more than once"


def cluster_by(
    dataset: DatasetDefinition, columns: Sequence[str] | None = None, order: ClusterOrder | None = None
) -> ClusterBy:
    """The requested order; the dataset's policy is the default of what is left out. Raises InvalidRequest."""
    policy = dataset.services.clustering
    if columns is None and policy is None:
        detail = "name the columns, or set the dataset's policy services.clustering"
        raise InvalidRequest(
            f"no columns to cluster by: {detail}", [FieldError(pointer="/columns", detail=detail)]
        )
    if columns is None and policy is not None:
        columns, order = policy.columns, order or policy.order
    by = ClusterBy(columns=tuple(columns or ()), order=order or ClusterOrder.LINEAR)
    errors = [
        FieldError(pointer=f"/columns{pointer}", detail=detail)
        for pointer, detail in column_faults(by.columns, dataset.schema)
    ]
    if errors:
        raise InvalidRequest(f"rows cannot be clustered by these columns: {errors[0].detail}", errors)
    return by


def policy_mark(dataset: DatasetDefinition) -> str | None:
    """The mark of the order that the dataset's policy requires; None without such a policy."""
    return None if dataset.services.clustering is None else cluster_by(dataset).mark(dataset.schema)


class Curve:
    """A Z-order curve. `sample` has sampled values of the columns: one column each, in order."""

    def __init__(self, sample: pa.Table) -> None:
        self._bits = min(_BITS_MAX, 64 // max(sample.num_columns, 1))
        self._quantiles = [_quantiles(column, (1 << self._bits) - 2) for column in sample.columns]

    def places(self, rows: pa.Table) -> pa.Array:
        """The positions of the rows on the curve, by the columns of the sample: uint64."""
        ranks = [
            _ranks(column, quantiles, (1 << self._bits) - 2)
            for column, quantiles in zip(rows.columns, self._quantiles, strict=True)
        ]
        return pa.array(interleaved(ranks, self._bits), pa.uint64())


def interleaved(ranks: Sequence[npt.NDArray[np.uint64]], bits: int) -> npt.NDArray[np.uint64]:
    """The `bits` low bits of the ranks, interleaved from the most significant bit on, the first rank's bit first."""
    one = np.uint64(1)
    places = np.zeros_like(ranks[0])
    for bit in range(bits - 1, -1, -1):
        for rank in ranks:
            places = (places << one) | ((rank >> np.uint64(bit)) & one)
    return places


def _quantiles(column: pa.ChunkedArray, count_max: int) -> pa.Array:
    """At most `count_max` values of the column, ascending, that divide it into equal parts."""
    values = pa.chunked_array(column.chunks, column.type).drop_null().combine_chunks()
    count = min(len(values), count_max)
    at = np.linspace(0, len(values) - 1, count).astype(np.int64) if count else np.zeros(0, dtype=np.int64)
    return values.take(pc.sort_indices(values).take(pa.array(at)))


def _ranks(column: pa.ChunkedArray, quantiles: pa.Array, rank_max: int) -> npt.NDArray[np.uint64]:
    """The share of the quantiles that is less than each value, scaled to `rank_max`; nulls rank one above all."""
    values = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    both = pa.concat_arrays([values, quantiles])
    # Sorting is stable and puts nulls last: a value comes before the quantile that equals it.
    order = pc.sort_indices(both).to_numpy()
    is_quantile = order >= len(values)
    quantiles_before = np.cumsum(is_quantile)
    ranks = np.empty(len(values), dtype=np.uint64)
    ranks[order[~is_quantile]] = quantiles_before[~is_quantile] * rank_max // max(len(quantiles), 1)
    if values.null_count:
        ranks[values.is_null().to_numpy(zero_copy_only=False)] = rank_max + 1
    return ranks
