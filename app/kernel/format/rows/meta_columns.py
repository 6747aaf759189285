"""The meta columns of a stored row: where its values come from.

`_hw_version`: the commit that gave the row its values. `_hw_offset`: the offset of the change that did. Neither is
known while a file is written. So the files of that commit have null as the version, and a number below zero as the
offset: -1 - n stands for the n-th change of the commit in the file group. Readers resolve both with the catalogue's
entry of the file. A later commit that copies rows to a new file stores the resolved values.

Record key, partition path and file name are derived on read.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.dataset import DatasetDefinition

VERSION_COLUMN: Final = "_hw_version"
OFFSET_COLUMN: Final = "_hw_offset"
CORRECTS_COLUMN: Final = "_hw_corrects"
META_FIELDS: Final = (pa.field(VERSION_COLUMN, pa.int64()), pa.field(OFFSET_COLUMN, pa.int64()))
META_NAMES: Final = (VERSION_COLUMN, OFFSET_COLUMN)
PARTITION_FIELD: Final = pa.field("_hw_partition_path", pa.string())
FILE_NAME_FIELD: Final = pa.field("_hw_file_name", pa.string())
DERIVED_NAMES: Final = (PARTITION_FIELD.name, FILE_NAME_FIELD.name)
# In a changelog file: the offset of the change whose values a -R or -C row retracts; below zero as above.
CORRECTS_FIELD: Final = pa.field(CORRECTS_COLUMN, pa.int64())


def stored_schema(dataset: DatasetDefinition) -> pa.Schema:
    """The columns of a data file: the dataset's, then the meta columns."""
    return pa.schema([*dataset.schema.to_arrow(), *META_FIELDS])


def relative_offsets(changes: np.ndarray) -> pa.Array:
    """The stored form of positions in a commit's changes: int64, shape (rows,)."""
    return pa.array(-1 - changes, pa.int64())


def resolved(rows: pa.Table, written_version: int | None, first_offset: int | None) -> pa.Table:
    """The rows with resolved versions and offsets, as far as known; rows without either column are returned unchanged.

    `written_version`, `first_offset`: from the catalogue's entry of the file; None keeps the stored form.
    """
    if written_version is None:
        return rows
    if VERSION_COLUMN in rows.column_names:
        versions = pc.fill_null(rows.column(VERSION_COLUMN), written_version)
        rows = rows.set_column(rows.schema.get_field_index(VERSION_COLUMN), META_FIELDS[0], versions)
    if OFFSET_COLUMN in rows.column_names:
        offsets = resolved_offsets(rows.column(OFFSET_COLUMN), first_offset)
        rows = rows.set_column(rows.schema.get_field_index(OFFSET_COLUMN), META_FIELDS[1], offsets)
    return rows


def resolved_offsets(stored_offsets: pa.ChunkedArray, first_offset: int | pa.Array | None) -> pa.ChunkedArray:
    """Offsets from their stored form; null where the file's commit emitted no changes.

    `first_offset`: of the commit's changes in the file group, for all rows or for each (int64).
    """
    if stored_offsets.null_count == len(stored_offsets):
        return stored_offsets
    if not stored_offsets.null_count and isinstance(first_offset, int):
        offsets = stored_offsets.to_numpy()
        return pa.chunked_array([np.where(offsets < 0, first_offset - 1 - offsets, offsets)])
    relative = pc.less(stored_offsets, 0)
    absolute_offsets = (
        pa.scalar(None, pa.int64())
        if first_offset is None
        else pc.subtract(pc.subtract(first_offset, pa.scalar(1, pa.int64())), stored_offsets)
    )
    return pc.if_else(relative, absolute_offsets, stored_offsets)
