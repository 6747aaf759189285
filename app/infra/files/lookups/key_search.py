"""Searches the current rows of keys in a file group, for callers that do not write."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.log_file import logged
from app.infra.files.lookups.file_finder import FileFinder
from app.infra.files.lookups.hot_folder import HotFolder
from app.infra.files.lookups.lookup import KeyLookup
from app.infra.files.parquet_file import ParquetReader
from app.infra.files.slices.file_slice import Block, SliceReader
from app.infra.files.slices.incoming import IncomingKeys
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.slice_merge import merge_incoming
from app.infra.files.slices.tombstone_set import TombstoneSet
from app.infra.files.storage import Storage
from app.kernel.codecs.json.objects import to_objects
from app.kernel.commit.storing import Storing
from app.kernel.commit.write_plan import WriteScope
from app.kernel.format.dataset import DatasetDefinition, has_tombstones
from app.kernel.format.file_group import DataFile, FileKind
from app.kernel.format.index.index_answer import FileAnswer
from app.kernel.format.index.key_hash import hash_keys
from app.kernel.format.index.live_key import KeyTombstone, LiveKey
from app.kernel.format.partition.members import key_fields
from app.kernel.format.rows.meta_columns import (
    META_FIELDS,
    OFFSET_COLUMN,
    VERSION_COLUMN,
    resolved,
    stored_schema,
)
from app.kernel.format.rows.record_key import encode_keys
from app.kernel.format.rows.tombstones import DELETED_AT_FIELD, KEEP_FIELD, ORDERING_COLUMN


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundTombstone:
    """The tombstone of a key: the ordering value and the version of the delete, and the last time of a commit whose
    rows are compared with it. `file`: the number of the file in whose bucket the key is; None for a key without one.
    """

    value: pa.Scalar
    version: int | None
    until: datetime
    file: int | None

    def keeps_away(self, value: object) -> bool:
        """Whether a row with this ordering value changes nothing. Null is less than any other."""
        own = self.value.as_py()
        return own is not None and (value is None or value < own)

    def described(self) -> KeyTombstone:
        """The tombstone for users."""
        [ordering_value] = to_objects(pa.array([self.value.as_py()], self.value.type))
        return KeyTombstone(ordering_value=ordering_value, version=self.version, until=self.until)


class KeySearch:
    """Searches the indexes of files, and reads the rows of the keys found. Safe to use from any thread."""

    def __init__(
        self, storage: Storage, reader: ParquetReader, memory: MemoryBudget, hot: HotFolder | None = None
    ) -> None:
        """`memory`: the limit for one search to merge the log rows of its keys. `hot`: the folder for copies of files
        in which rows are often looked up.
        """
        vectors = VectorReader(storage)
        self._reader = reader
        self._memory = memory
        self._slices = SliceReader(reader, vectors)
        self._finder = FileFinder(storage, self._slices)
        self._lookup = KeyLookup(storage, reader, vectors, hot)

    def answers(
        self,
        dataset: DatasetDefinition,
        files: Sequence[DataFile],
        keys: pa.ChunkedArray,
        scope: WriteScope | None,
        storing: Storing,
    ) -> dict[int, FileAnswer]:
        """For the base files of a group, by number, whether a write of these keys must read each. Raises CorruptFile.

        `keys`: canonical, `large_binary`.
        """
        hashes = np.unique(hash_keys(keys))
        return self._finder.answers(dataset, files, hashes, scope=scope, storing=storing)

    def live(
        self, dataset: DatasetDefinition, files: Sequence[DataFile], keys: pa.ChunkedArray
    ) -> dict[bytes, LiveKey]:
        """The canonical `keys` that have a live row, with logs merged in. `files`: a group's, by commit.

        Raises CorruptFile.
        """
        arrow_schema = dataset.schema.to_arrow()
        schema = pa.schema([*(arrow_schema.field(name) for name in key_fields(dataset)), *META_FIELDS])
        live_keys: dict[bytes, LiveKey] = {}
        for block in self._blocks(dataset, files, keys, schema):
            columns = (
                encode_keys(block.rows, dataset.record_key),
                block.rows.column(VERSION_COLUMN),
                block.rows.column(OFFSET_COLUMN),
            )
            places = zip(block.positions.tolist(), *(column.to_pylist() for column in columns), strict=True)
            for position, key, version, offset in places:
                live_keys[key] = LiveKey(
                    file=None if block.file < 0 else block.file,
                    position=None if block.file < 0 else position,
                    version=version,
                    offset=None if offset is None or offset < 0 else offset,
                )
        return live_keys

    def rows(
        self,
        dataset: DatasetDefinition,
        files: Sequence[DataFile],
        keys: pa.ChunkedArray,
        schema: pa.Schema,
    ) -> pa.Table:
        """The live rows of the canonical `keys`, with logs merged in, in any order. `files`: a group's, by commit.

        `schema`: the columns of the rows: some of the dataset's with the key among them, and meta columns, which are
        resolved. Raises CorruptFile.
        """
        blocks = self._blocks(dataset, files, keys, schema)
        return pa.concat_tables(
            [schema.empty_table(), *(block.rows.select(schema.names).cast(schema) for block in blocks)]
        )

    def tombstones(
        self, dataset: DatasetDefinition, files: Sequence[DataFile], keys: pa.ChunkedArray
    ) -> dict[bytes, FoundTombstone]:
        """The tombstones of those of the canonical `keys` that have one, with logs merged in. `files`: a group's, by
        commit.

        Raises CorruptFile.
        """
        if not has_tombstones(dataset.ordering_field, dataset.merge_mode):
            return {}
        unique = pa.chunked_array([keys.unique()])
        tombstones = TombstoneSet.read(self._slices, dataset, files, self._lookup)
        logs = [file for file in files if file.kind is FileKind.LOG]
        if logs:
            # The tombstones are complete once the logs have been merged.
            deque(self._logged(dataset, files, logs, unique, tombstones), maxlen=0)
        tombstones_by_key: dict[bytes, FoundTombstone] = {}
        wanted = set(unique.to_pylist())
        incoming_keys = IncomingKeys(hashes=np.unique(hash_keys(unique)), encoded_keys=[unique])
        for block in () if tombstones.is_empty else tombstones.touched(incoming_keys):
            numbers = np.full(len(block.positions), block.file)
            columns = zip(
                tombstones.buckets(numbers, block.positions).tolist(),
                encode_keys(block.rows, dataset.record_key).to_pylist(),
                block.rows.column(ORDERING_COLUMN),
                block.rows.column(VERSION_COLUMN).to_pylist(),
                block.rows.column(DELETED_AT_FIELD.name).to_pylist(),
                block.rows.column(KEEP_FIELD.name).to_pylist(),
                strict=True,
            )
            for file, key, value, version, deleted_at, keep_seconds in columns:
                if key in wanted and deleted_at is not None:
                    until = deleted_at + timedelta(seconds=keep_seconds)
                    tombstones_by_key[key] = FoundTombstone(
                        value=value, version=version, until=until, file=None if file < 0 else file
                    )
        return tombstones_by_key

    def _blocks(
        self,
        dataset: DatasetDefinition,
        files: Sequence[DataFile],
        keys: pa.ChunkedArray,
        schema: pa.Schema,
    ) -> Iterator[Block]:
        """The live rows of the keys, with these columns at least."""
        unique = pa.chunked_array([keys.unique()])
        logs = [file for file in files if file.kind is FileKind.LOG]
        if logs:
            tombstones = TombstoneSet.read(self._slices, dataset, files, self._lookup)
            return self._logged(dataset, files, logs, unique, tombstones)
        return self._based(dataset, files, unique, schema)

    def _based(
        self,
        dataset: DatasetDefinition,
        files: Sequence[DataFile],
        keys: pa.ChunkedArray,
        schema: pa.Schema,
    ) -> Iterator[Block]:
        """The rows of the keys in base files."""
        numbers = [number for number, file in enumerate(files) if file.kind is FileKind.BASE]
        base = [files[number] for number in numbers]
        for hits in self._lookup.find_rows(base, keys, dataset.record_key, schema):
            file = base[hits.file]
            rows = resolved(hits.rows, file.written_version, file.first_offset)
            yield Block(file=numbers[hits.file], positions=hits.positions, rows=rows)

    def _logged(
        self,
        dataset: DatasetDefinition,
        files: Sequence[DataFile],
        logs: Sequence[DataFile],
        keys: pa.ChunkedArray,
        tombstones: TombstoneSet,
    ) -> Iterator[Block]:
        log_rows = logged(self._reader, dataset, logs)
        incoming = replace(log_rows, tables=_of_keys(log_rows.tables, dataset, keys))
        schema = stored_schema(dataset)
        parts = merge_incoming(
            dataset,
            lambda _: self._based(dataset, files, keys, schema),
            incoming,
            self._memory,
            live_rows=sum(file.live_rows for file in files),
            tombstones=tombstones,
        )
        for item in parts:
            if isinstance(item, Block):
                yield item
                continue
            yield from item.kept_blocks()
            rows = item.result.rows
            yield Block(file=-1, positions=np.full(rows.num_rows, -1, dtype=np.int64), rows=rows)


def _of_keys(
    tables: Iterable[pa.Table], dataset: DatasetDefinition, keys: pa.ChunkedArray
) -> Iterator[pa.Table]:
    key_set = keys.combine_chunks()
    for rows in tables:
        matches = rows.filter(pc.is_in(encode_keys(rows, dataset.record_key), value_set=key_set))
        if matches.num_rows:
            yield matches
