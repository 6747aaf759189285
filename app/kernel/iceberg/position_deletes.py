"""Position-delete files: the deleted rows of one data file as Parquet, for readers without deletion vectors."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import FrozenBitMap

from app.kernel.format.index.deletion_vector import positions_of
from app.kernel.format.schema.types import id_metadata

FILE_PATH_ID: Final = 2147483546
"""The field id of the location of the data file."""
POSITION_ID: Final = 2147483545
"""The field id of the row's position in it."""

# Row groups of this size let a reader skip to the positions that it needs.
_ROW_GROUP_ROWS: Final = 1024 * 1024


def position_deletes(vector: FrozenBitMap, data_file: str) -> bytes:
    """The file with the positions of these rows, ascending. Equal input gives equal bytes.

    `data_file`: the location of the data file, as it is in the manifest.
    """
    positions = pa.array(positions_of(vector))
    # The location is one entry of a dictionary: 1,000,000 rows of it take a few bytes.
    numbers = pa.array(np.zeros(len(positions), dtype=np.int32))
    locations = pa.DictionaryArray.from_arrays(numbers, pa.array([data_file]))
    schema = pa.schema(
        [_field("file_path", locations.type, FILE_PATH_ID), _field("pos", pa.int64(), POSITION_ID)]
    )
    out = pa.BufferOutputStream()
    with pq.ParquetWriter(
        out,
        schema,
        # Differences are as small as compression would make them, and no codec's version changes the bytes.
        compression="none",
        use_dictionary=["file_path"],
        column_encoding={"pos": "DELTA_BINARY_PACKED"},
        store_schema=False,
    ) as writer:
        writer.write_table(pa.table([locations, positions], schema), row_group_size=_ROW_GROUP_ROWS)
    return bytes(out.getvalue())


def _field(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind, nullable=False, metadata=id_metadata(number))
