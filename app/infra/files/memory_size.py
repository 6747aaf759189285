"""The memory of what is read of a file, as caches count it.

It takes many times the bytes of its values where a file is small: each column of a table, and each column in a footer,
has objects of its own.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

# Measured with tables and footers of ten columns; strings have more buffers than numbers.
_COLUMN_BYTES: Final = 2_048
_FOOTER_FACTOR: Final = 8


def table_bytes(table: pa.Table) -> int:
    """The memory of a table: its buffers, and the objects of its columns."""
    return int(table.get_total_buffer_size()) + _COLUMN_BYTES * table.num_columns


def footer_bytes(metadata: pq.FileMetaData) -> int:
    """The memory of a footer."""
    return int(metadata.serialized_size) * _FOOTER_FACTOR
