"""Key index files: one uncompressed Arrow record batch, mapped into memory if the storage is a local disk.

Compared with Parquet (delta encoding), a file of 625,000 hashes and positions is a fifth larger, and is opened in 0.2
ms instead of 4.4.
"""

from __future__ import annotations

from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc

from app.infra.files.checksums import HashingSink, buffered, verify
from app.infra.files.errors import CorruptFile
from app.infra.files.storage import Storage
from app.kernel.format.file_group import IndexFile, IndexKind
from app.kernel.format.index.key_index import BloomFilter, KeyIndex

# An index of fewer keys is built about as fast as it is opened.
KEPT_ROWS_MIN: Final = 2_000

_RECORD_SCHEMA: Final = pa.schema(
    [pa.field("hash", pa.uint64(), nullable=False), pa.field("position", pa.uint32(), nullable=False)]
)
_BLOOM_SCHEMA: Final = pa.schema([pa.field("block", pa.list_(pa.uint32(), 8), nullable=False)])


def write_index(storage: Storage, path: str, index: KeyIndex | BloomFilter) -> IndexFile:
    """Stores the index in a new file. Raises StorageFull."""
    with storage.create(path) as file:
        sink = HashingSink(file)
        with buffered(sink) as out:
            put_index(out, index)
    kind = IndexKind.RECORD if isinstance(index, KeyIndex) else IndexKind.BLOOM
    return IndexFile(path=path, size_bytes=sink.size_bytes, checksum=sink.checksum, kind=kind)


def read_index(storage: Storage, file: IndexFile) -> KeyIndex | BloomFilter:
    """The stored index; on a local disk it is mapped, not read. Raises CorruptFile."""
    stream = storage.open(file.path)
    if not isinstance(stream, pa.MemoryMappedFile):
        stream = pa.BufferReader(stream.read_buffer())
    verify(file, stream)
    try:
        return index_in(stream)
    except pa.ArrowInvalid as error:
        raise CorruptFile(f"{file.path} is not a readable key index: {error}", path=file.path) from error


def put_index(sink: pa.NativeFile | BinaryIO, index: KeyIndex | BloomFilter) -> None:
    """Writes the Arrow file of an index."""
    batch = _batch(index)
    with ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)


def index_in(stream: pa.NativeFile) -> KeyIndex | BloomFilter:
    """The index in an Arrow file. Its arrays refer to the file if that is mapped."""
    batch = ipc.open_file(stream).get_batch(0)
    if batch.schema == _BLOOM_SCHEMA:
        return BloomFilter(words=batch.column(0).flatten().to_numpy().reshape(-1, 8))
    if batch.schema == _RECORD_SCHEMA:
        return KeyIndex(hashes=batch.column(0).to_numpy(), positions=batch.column(1).to_numpy())
    raise pa.ArrowInvalid(f"it has the columns {batch.schema.names}")


def _batch(index: KeyIndex | BloomFilter) -> pa.RecordBatch:
    if isinstance(index, KeyIndex):
        columns = [pa.array(index.hashes), pa.array(index.positions)]
        return pa.RecordBatch.from_arrays(columns, schema=_RECORD_SCHEMA)
    words = pa.array(np.ascontiguousarray(index.words).reshape(-1))
    blocks = pa.FixedSizeListArray.from_arrays(words, type=_BLOOM_SCHEMA.field(0).type)
    return pa.RecordBatch.from_arrays([blocks], schema=_BLOOM_SCHEMA)
