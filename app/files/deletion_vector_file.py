"""Deletion vector files: the concatenated serialized bitmaps of several data files, each with its checksum.

A commit that deletes rows of a file group writes one such file for all data files of the group. A bitmap is read by its
position in the file, without the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import xxhash
from pyroaring import FrozenBitMap

from app.files.byte_cache import ByteCache
from app.files.storage import Storage
from app.format.errors import CorruptFile
from app.format.file_group import DeletionVector
from app.format.index.deletion_vector import from_bytes, to_bytes

_CACHE_BYTES: Final = 8 * 1024 * 1024


def write_vectors(
    storage: Storage, path: str, deleted: Mapping[str, FrozenBitMap]
) -> dict[str, DeletionVector]:
    """Stores the deleted rows of data files, by the path of each, in a new file. Raises StorageFull.

    `deleted` has at least one file: there are no empty files.
    """
    if not deleted:
        raise ValueError(f"there are no deletion vectors to write to {path}")
    vectors = {}
    offset = 0
    with storage.create(path) as file:
        for data_path, rows in deleted.items():
            data = to_bytes(rows)
            file.write(data)
            vectors[data_path] = DeletionVector(
                path=path,
                offset=offset,
                size_bytes=len(data),
                checksum=_checksum(data),
                cardinality=len(rows),
            )
            offset += len(data)
    return vectors


class VectorReader:
    """Reads deletion vectors, and caches the latest in `cache_bytes` bytes."""

    def __init__(self, storage: Storage, cache_bytes: int = _CACHE_BYTES) -> None:
        self._storage = storage
        self._cached = ByteCache[DeletionVector, FrozenBitMap](cache_bytes)

    def read(self, vector: DeletionVector) -> FrozenBitMap:
        """The positions of deleted rows. Raises CorruptFile if they do not match the commit."""
        found = self._cached.get(vector)
        if found is None:
            found = self._read(vector)
            self._cached.put(vector, found, vector.size_bytes)
        return found

    def _read(self, vector: DeletionVector) -> FrozenBitMap:
        opened = self._storage.open(vector.path)
        # A truncated file returns fewer bytes, which have another checksum.
        opened.seek(min(vector.offset, opened.size()))
        data = opened.read(vector.size_bytes)
        try:
            deleted = from_bytes(data) if _checksum(data) == vector.checksum else None
        except ValueError:
            deleted = None
        if deleted is None or len(deleted) != vector.cardinality:
            raise CorruptFile(
                f"{vector.path} is damaged: the deletion vector at byte {vector.offset} is not the recorded one",
                path=vector.path,
            )
        return deleted


def _checksum(data: bytes) -> str:
    """XXH3-128, hexadecimal, as for whole files."""
    return xxhash.xxh3_128_hexdigest(data)
