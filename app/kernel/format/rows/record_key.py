"""Record keys: the canonical bytes of a key, and the bucket they hash to.

Canonical bytes of one key field: strings as UTF-8, binary unchanged, integers and decimals in decimal digits, booleans
as `true`/`false`, dates as days and timestamps as ticks since 1970-01-01. In a key of several fields, each field's
bytes follow their byte length and a colon, so that no two keys share one encoding.

The bucket is XXH64 (seed 0) of those bytes, unsigned, modulo the number of buckets. With bucket function `mod`, it is
the key's one integer modulo that number, never below 0. Both are frozen, because files on disk depend on them;
`tests/kernel/format/test_record_key.py` has test vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.dataset import BucketFunction
from app.kernel.format.index.key_hash import hash_keys
from app.kernel.format.partition.members import column_of
from app.kernel.format.schema.types import stored_type

_COLON = pa.scalar(b":", pa.large_binary())
_NOTHING = pa.scalar(b"", pa.large_binary())


def encode_keys(rows: pa.Table, key: Sequence[str]) -> pa.ChunkedArray:
    """Canonical key bytes, one `large_binary` per row. The key fields of `rows` contain no nulls.

    `key`: names of columns, or members of structs as in `meta.region`.
    """
    columns = [canonical_bytes(column_of(rows, name)) for name in key]
    if len(columns) == 1:
        return columns[0]
    parts = []
    for column in columns:
        length = pc.cast(pc.cast(pc.binary_length(column), pa.string()), pa.large_binary())
        parts.append(pc.binary_join_element_wise(length, column, _COLON))
    return pc.binary_join_element_wise(*parts, _NOTHING)


def canonical_bytes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The bytes of the values of a flat column, equal for equal values, as `large_binary`; null for null."""
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    flat = stored_type(column.type)
    if flat is None:
        raise TypeError(f"values of type {column.type} have no canonical bytes")
    return flat.key_bytes(column)


def bucket_numbers(
    rows: pa.Table, key: Sequence[str], count: int, function: BucketFunction = BucketFunction.HASH
) -> npt.NDArray[np.int32]:
    """The bucket of every row: int32, shape (rows,). Without a key, or with one bucket, all are 0."""
    if not key or count == 1:
        return np.zeros(rows.num_rows, dtype=np.int32)
    if function is BucketFunction.MOD:
        numbers: npt.NDArray[np.int64] = pc.cast(column_of(rows, key[0]), pa.int64()).to_numpy()
        return np.mod(numbers, count).astype(np.int32)
    hashes = hash_keys(encode_keys(rows, key))
    return (hashes % np.uint64(count)).astype(np.int32)
