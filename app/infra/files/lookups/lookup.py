"""Lookups of keys in the data files of a file group: the live row of each key, and its position."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.lookups.hot_copy import HotCopies, Positions
from app.infra.files.lookups.hot_folder import KEYS, HotFolder
from app.infra.files.lookups.key_index_file import KEPT_ROWS_MIN, index_in, put_index, read_index
from app.infra.files.parquet_file import ParquetReader
from app.infra.files.storage import LocalStorage, Storage
from app.infra.sharing.byte_cache import ByteCache
from app.kernel.format.file_group import DataFile
from app.kernel.format.index.deletion_vector import live_mask
from app.kernel.format.index.key_hash import Hashes, hash_keys
from app.kernel.format.index.key_index import BloomFilter, KeyIndex
from app.kernel.format.partition.members import roots
from app.kernel.format.rows.record_key import encode_keys

_SMALL_INDEXES_BYTES: Final = 8 * 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundRows:
    """Live rows of one file that match requested keys, in the file's order.

    `file` is the file's number among those searched. Row `n` of `rows` is at `positions[n]` of the file, and matches
    key (or hash) number `incoming[n]`; both are int64, shape (rows,).
    """

    file: int
    positions: Positions
    incoming: Positions
    rows: pa.Table

    def at(self, row_mask: pa.ChunkedArray) -> FoundRows:
        """The rows where `row_mask` (bool) is true."""
        mask = row_mask.to_numpy()
        return FoundRows(
            file=self.file,
            positions=self.positions[mask],
            incoming=self.incoming[mask],
            rows=self.rows.filter(row_mask),
        )


class KeyLookup:
    """Finds rows by key, through the key indexes of the files.

    The index of a file without one is built from its key columns. `folder` stores such indexes, and copies of files
    whose rows are read, for all processes of the machine; without a folder they are created each time. This process
    caches the indexes of small files.
    """

    def __init__(
        self,
        storage: Storage,
        reader: ParquetReader,
        vectors: VectorReader,
        folder: HotFolder | None,
    ) -> None:
        self._storage = storage
        self._vectors = vectors
        self._folder = folder
        self._small = ByteCache[str, KeyIndex](_SMALL_INDEXES_BYTES)
        self.copies = HotCopies(reader, folder)
        self.seconds = 0.0
        """What all look-ups took so far."""

    def find_rows(
        self, files: Sequence[DataFile], keys: pa.ChunkedArray, key: Sequence[str], schema: pa.Schema
    ) -> Iterator[FoundRows]:
        """The live rows with one of `keys`, for each file that has some. Raises CorruptFile.

        `keys`: canonical (`encode_keys` of `key`); keys may be repeated. `schema`: the columns of the
        returned rows, which include the key's. At most one row of a key is live, so a key that is found in one file is
        not searched in the next.
        """
        hashes = hash_keys(keys)
        key_array = keys.combine_chunks()
        missing = np.ones(len(hashes), dtype=np.bool_)
        for number, file in enumerate(files):
            hits = self._in_file(file, number, hashes, np.flatnonzero(missing), key, schema)
            if hits is None:
                continue
            same = pc.equal(encode_keys(hits.rows, key), key_array.take(pa.array(hits.incoming)))
            hits = hits if pc.all(same).as_py() else hits.at(same)
            if len(hits.incoming):
                yield hits
                missing[hits.incoming] = False

    def rows_of_hashes(
        self, files: Sequence[DataFile], hashes: Hashes, key: Sequence[str], schema: pa.Schema
    ) -> Iterator[FoundRows]:
        """The live rows whose keys have one of `hashes`, for each file that has some. Raises CorruptFile.

        The rows may have other keys than those of the caller: two keys rarely share a hash, but it happens.
        """
        every = np.arange(len(hashes))
        for number, file in enumerate(files):
            hits = self._in_file(file, number, hashes, every, key, schema)
            if hits is not None:
                yield hits

    def _in_file(
        self,
        file: DataFile,
        number: int,
        hashes: Hashes,
        missing: Positions,
        key: Sequence[str],
        schema: pa.Schema,
    ) -> FoundRows | None:
        began = time.perf_counter()
        try:
            incoming, positions = self._candidates(file, hashes, missing, key, schema)
            if not len(incoming):
                return None
            rows = self.copies.take(file, positions, schema)
        finally:
            self.seconds += time.perf_counter() - began
        return FoundRows(file=number, positions=positions, incoming=incoming, rows=rows)

    def _candidates(
        self, file: DataFile, hashes: Hashes, missing: Positions, key: Sequence[str], schema: pa.Schema
    ) -> tuple[Positions, Positions]:
        """Pairs of the number of a hash that is not found yet and the position of a live row with it, by position."""
        index = self._stored_index(file) if len(missing) else None
        if isinstance(index, BloomFilter):
            missing = missing[index.may_contain(hashes[missing])]
            index = None
        if not len(missing):
            return missing, missing
        if index is None:
            index = self._built_index(file, key, schema)
        numbers, positions = index.probe(hashes[missing])
        if file.deletion_vector is not None and len(positions):
            live = live_mask(self._vectors.read(file.deletion_vector), 0, file.row_count)[positions]
            numbers, positions = numbers[live], positions[live]
        order = np.argsort(positions)
        return missing[numbers[order]], positions[order]

    def _stored_index(self, file: DataFile) -> KeyIndex | BloomFilter | None:
        """The index that was written with the file."""
        if file.index_file is None:
            return None
        read = partial(read_index, self._storage, file.index_file)
        # Files on a local disk are mapped directly.
        return read() if isinstance(self._storage, LocalStorage) else self._kept(file.index_file.path, read)

    def _built_index(self, file: DataFile, key: Sequence[str], schema: pa.Schema) -> KeyIndex:
        def build() -> KeyIndex:
            fields = [schema.field(name) for name in roots(key, schema.names)]
            return KeyIndex.build(encode_keys(self.copies.read(file, pa.schema(fields)), key))

        if file.row_count < KEPT_ROWS_MIN:
            index = self._small.get(file.path)
            if index is None:
                index = build()
                self._small.put(file.path, index, index.hashes.nbytes + index.positions.nbytes)
            return index
        return cast(KeyIndex, self._kept(f"{file.path}{KEYS}", build))

    def _kept(self, name: str, make: Callable[[], KeyIndex | BloomFilter]) -> KeyIndex | BloomFilter:
        """The file of that name in the folder; created and stored if it is missing."""
        if self._folder is None:
            return make()
        mapped_file = self._folder.open(name)
        if mapped_file is not None:
            # Another process may have changed it.
            with suppress(pa.ArrowInvalid):
                return index_in(mapped_file)
        index = make()
        self._folder.put(name, partial(put_index, index=index))
        return index
