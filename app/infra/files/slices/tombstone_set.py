"""The tombstones of a file group while rows are merged into it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Self

import numpy as np
import pyarrow as pa

from app.infra.files.lookups.lookup import FoundRows, KeyLookup
from app.infra.files.slices.file_slice import FILE_COLUMN, POSITION_COLUMN, Block, SliceReader
from app.infra.files.slices.incoming import IncomingKeys
from app.kernel.commit.merge.outcome import MergeResult
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import DataFile, FileKind
from app.kernel.format.rows.meta_columns import resolved
from app.kernel.format.rows.placement import numbers_in
from app.kernel.format.rows.tombstones import dated, tombstone_schema

NEW: Final = -1
"""The number of no file, for tombstones of the merge itself."""

Find = Callable[[Sequence[DataFile], pa.ChunkedArray], Iterator[FoundRows]]
"""Finds the rows of canonical keys in files."""


def found_by(lookup: KeyLookup, dataset: DatasetDefinition) -> Find:
    """Finds tombstones with a lookup of keys."""
    schema = tombstone_schema(dataset)
    return lambda files, keys: lookup.find_rows(files, keys, dataset.record_key, schema)


class TombstoneSet:
    """The tombstones in a group's files that have not ended, and those that merges have left.

    Several merges may use it, one after another: each finds what the ones before it left.
    """

    def __init__(
        self,
        dataset: DatasetDefinition,
        files: Sequence[DataFile],
        blocks: Callable[[Sequence[int]], Iterator[Block]],
        find: Find | None = None,
    ) -> None:
        """`files`: those of the group. `blocks` reads the tombstones of these numbers of files. Without `find`, all
        tombstones are read.
        """
        self.numbers = [at for at, file in enumerate(files) if file.kind is FileKind.TOMBSTONE]
        self._schema = tombstone_schema(dataset)
        self._files = files
        self._blocks = blocks
        self._find = find
        self._ended: dict[int, list[np.ndarray]] = defaultdict(list)
        self._new: list[pa.Table] = []
        self._buckets: list[np.ndarray] = []

    @classmethod
    def read(
        cls,
        slices: SliceReader,
        dataset: DatasetDefinition,
        files: Sequence[DataFile],
        lookup: KeyLookup | None = None,
    ) -> Self:
        """The tombstones in files of a group. `lookup` finds those of few keys; without it, all are read."""
        schema = tombstone_schema(dataset)
        return cls(
            dataset,
            files,
            lambda numbers: slices.blocks(files, schema, numbers),
            None if lookup is None else found_by(lookup, dataset),
        )

    @property
    def is_empty(self) -> bool:
        """Whether there are no tombstones."""
        return not (self.numbers or self._new)

    @property
    def changed(self) -> bool:
        """Whether merges have ended tombstones or left new ones."""
        return bool(self._ended or self._new)

    def ended(self, number: int) -> np.ndarray:
        """The positions of the tombstones of this file that have ended (int64); NEW: of the new ones."""
        return np.concatenate([np.zeros(0, dtype=np.int64), *self._ended.get(number, ())])

    def ended_files(self) -> list[int]:
        """The numbers of the files with tombstones that have ended, ascending."""
        return sorted(number for number in self._ended if number != NEW)

    def new(self) -> tuple[pa.Table, np.ndarray]:
        """The tombstones that merges have left and that have not ended, and the numbers of the files in whose buckets
        their keys are, -1 for a key that was in none (int64).
        """
        rows = pa.concat_tables([self._schema.empty_table(), *self._new])
        left = self._left_in(NEW, np.arange(rows.num_rows))
        return rows.filter(pa.array(left)), self._new_buckets()[left]

    def left(self, number: int) -> Iterator[pa.Table]:
        """The tombstones of this file that have not ended, block by block. Raises CorruptFile."""
        for block in self._blocks([number]):
            yield block.at(self._left_in(number, block.positions)).rows

    def touched(self, keys: IncomingKeys) -> Iterator[Block]:
        """The tombstones of these keys, and possibly of others. Raises CorruptFile."""
        for block in self._read(keys) if self.numbers else ():
            left = block.at(self._left_in(block.file, block.positions))
            if left.rows.num_rows:
                yield left
        if self._new:
            rows = pa.concat_tables(self._new)
            positions = np.arange(rows.num_rows)
            yield Block(file=NEW, positions=positions, rows=rows).at(self._left_in(NEW, positions))

    def buckets(self, files: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """The numbers of the files in whose buckets the keys of the tombstones at these places are, -1 for a key that
        was in none (int64).
        """
        buckets = files.astype(np.int64)
        buckets[files == NEW] = self._new_buckets()[positions[files == NEW]]
        return buckets

    def take(self, result: MergeResult, touched: pa.Table | None, buckets: np.ndarray) -> None:
        """Takes the result of a merge. `touched`: the tombstones that it was given, with their places. `buckets`: as of
        `new`, for those that it has left.
        """
        if touched is not None:
            ended = touched.filter(pa.array(~result.tombstones_stay))
            files, positions = (ended.column(name).to_numpy() for name in (FILE_COLUMN, POSITION_COLUMN))
            for number in numbers_in(files):
                self._ended[int(number)].append(positions[files == number])
        if result.tombstones is not None:
            self._new.append(result.tombstones)
            self._buckets.append(buckets)

    def _new_buckets(self) -> np.ndarray:
        return np.concatenate([np.zeros(0, dtype=np.int64), *self._buckets])

    def _read(self, keys: IncomingKeys) -> Iterator[Block]:
        key_array = None if self._find is None else keys.keys()
        if self._find is None or key_array is None:
            yield from self._blocks(self.numbers)
            return
        for match in self._find([self._files[number] for number in self.numbers], key_array):
            file = self._files[self.numbers[match.file]]
            rows = dated(resolved(match.rows, file.written_version, None), file.written_at)
            yield Block(file=self.numbers[match.file], positions=match.positions, rows=rows)

    def _left_in(self, number: int, positions: np.ndarray) -> np.ndarray:
        left: np.ndarray = ~np.isin(positions, self.ended(number))
        return left
