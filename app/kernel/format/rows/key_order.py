"""The order of rows by key.

Most keys differ in their first eight bytes, and numbers sort many times faster than texts. So rows are sorted by these
bytes as a number, and only rows that share it are compared by their whole keys.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.index.number_order import ascending_order, repeated
from app.kernel.format.partition.members import columns_of
from app.kernel.format.schema.types import stored_type


def key_order(rows: pa.Table, key: Sequence[str]) -> npt.NDArray[np.int64]:
    """The numbers of the rows in ascending order of their key fields: int64, shape (rows,).

    The order of Arrow's `sort_by`: texts by their UTF-8 bytes. Rows with equal keys are in any order. The key fields
    contain no nulls.
    """
    columns = columns_of(rows, key).combine_chunks()
    first = columns.column(0)
    # Texts of more than 2 GiB stay in several chunks.
    flat = stored_type(first.type)
    single = first.num_chunks == 1 and flat is not None and flat.arrow == first.type
    prefixes = flat.order_numbers(first.chunk(0)) if flat is not None and single else None
    if prefixes is None:
        return _whole_order(columns)
    order = ascending_order(prefixes)
    ascending = prefixes[order]
    ties = repeated(ascending)
    if not ties.any():
        return order
    tie_rows = order[ties]
    # The prefixes of the rows stay in front: each run of equal ones is sorted within itself.
    parts = columns.take(pa.array(tie_rows)).add_column(0, "", pa.array(ascending[ties]))
    order[ties] = tie_rows[_whole_order(parts.rename_columns([f"{at}" for at in range(parts.num_columns)]))]
    return order


def _whole_order(columns: pa.Table) -> npt.NDArray[np.int64]:
    by = [(name, "ascending") for name in columns.column_names]
    order: npt.NDArray[np.int64] = pc.sort_indices(columns, sort_keys=by).to_numpy().astype(np.int64)
    return order
