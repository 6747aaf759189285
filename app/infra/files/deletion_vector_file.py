"""Deletion vectors as they are stored: serialized bitmaps, each with its checksum.

Small ones are part of the data file's entry in the catalogue. The larger ones of a task are concatenated in one file. A
bitmap is read by its position in the file, without the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import xxhash
from msgspec.structs import replace
from pyroaring import FrozenBitMap

from app.infra.files.errors import CorruptFile
from app.infra.files.storage import Storage
from app.infra.sharing.byte_cache import ByteCache
from app.kernel.format.file_group import DeletionVector
from app.kernel.format.index.deletion_vector import from_bytes, to_bytes

_CACHE_BYTES: Final = 8 * 1024 * 1024
# Larger bitmaps are stored in a file. Those of a file of up to 65,536 rows are not larger.
_INLINE_BYTES_MAX: Final = 8 * 1024 + 256


def write_vectors(
    storage: Storage, path: str, deleted_rows: Mapping[str, FrozenBitMap]
) -> dict[str, DeletionVector]:
    """The deleted rows of data files, by the path of each. Large bitmaps go to a new file. Raises StorageFull."""
    vectors = {}
    large: list[bytes] = []
    offset = 0
    for data_path, rows in deleted_rows.items():
        data = to_bytes(rows)
        vector = DeletionVector(size_bytes=len(data), checksum=_checksum(data), cardinality=len(rows))
        if len(data) <= _INLINE_BYTES_MAX:
            vectors[data_path] = replace(vector, content=data)
            continue
        vectors[data_path] = replace(vector, path=path, offset=offset)
        offset += len(data)
        large.append(data)
    if large:
        with storage.create(path) as file:
            file.writelines(large)
    return vectors


class VectorReader:
    """Reads deletion vectors, and caches the latest in `cache_bytes` bytes."""

    def __init__(self, storage: Storage, cache_bytes: int = _CACHE_BYTES) -> None:
        self._storage = storage
        self._cached = ByteCache[DeletionVector, FrozenBitMap](cache_bytes)

    def read(self, vector: DeletionVector) -> FrozenBitMap:
        """The positions of deleted rows. Raises CorruptFile if they do not match the commit."""
        positions = self._cached.get(vector)
        if positions is None:
            positions = self._read(vector)
            self._cached.put(vector, positions, vector.size_bytes)
        return positions

    def serialized(self, vector: DeletionVector) -> bytes:
        """The bitmap as it is stored. Raises CorruptFile if it does not match the commit."""
        data = self._bytes(vector)
        if _checksum(data) != vector.checksum:
            raise _damage(vector)
        return data

    def _read(self, vector: DeletionVector) -> FrozenBitMap:
        data = self._bytes(vector)
        try:
            positions = from_bytes(data) if _checksum(data) == vector.checksum else None
        except ValueError:
            positions = None
        if positions is None or len(positions) != vector.cardinality:
            raise _damage(vector)
        return positions

    def _bytes(self, vector: DeletionVector) -> bytes:
        if vector.path is None:
            return vector.content or b""
        stream = self._storage.open(vector.path)
        # A truncated file returns fewer bytes, which have another checksum.
        stream.seek(min(vector.offset, stream.size()))
        return bytes(stream.read(vector.size_bytes))


def _damage(vector: DeletionVector) -> CorruptFile:
    place = "the catalogue" if vector.path is None else vector.path
    return CorruptFile(
        f"{place} is damaged: the deletion vector at byte {vector.offset} is not the recorded one",
        path=vector.path,
    )


def _checksum(data: bytes) -> str:
    """XXH3-128, hexadecimal, as for whole files."""
    return xxhash.xxh3_128_hexdigest(data)
