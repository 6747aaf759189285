"""The placement of a file group's rows: their bucket, and under key_dynamic their partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from app.kernel.format.dataset import BucketMode, DatasetDefinition
from app.kernel.format.file_group import DataFile, Slot
from app.kernel.format.partition.row_partitions import partition_codes


def numbers_in(files: np.ndarray) -> np.ndarray:
    """The distinct file numbers, ascending, with -1 for no file; many times faster than sorting them."""
    return np.flatnonzero(np.bincount(files + 1)) - 1


class Placement:
    """Assigns slots to rows of one file group.

    A row that was in a file stays in its bucket; a part of a bucket that is halved takes it. Under the modes that open
    buckets by size, a new row goes to the first bucket with room. If all are full, a new bucket opens; at the greatest
    number of buckets, the emptiest takes the row. A tombstone keeps the room of its row.
    Segment `s` of `count` owns the buckets s, s + count, s + 2 count …, so groups never share a bucket.
    """

    def __init__(self, dataset: DatasetDefinition, group: Slot, files: Sequence[DataFile]) -> None:
        self._dataset = dataset
        self._group = group
        self._files = files
        self._rows: Counter[Slot] = Counter()
        for file in files:
            if not file.kind.is_pending:
                self._rows[file.slot] += file.live_rows

    def of_file(self, number: int) -> Slot:
        """The slot of the rows in this file of the slice."""
        return self._group if self._dataset.bucket.halves else self._files[number].slot

    def split(self, rows: pa.Table, former: np.ndarray) -> Iterator[tuple[Slot, pa.Table]]:
        """The rows by their slots, in order within each slot.

        `former`: the number of the file that had each row's key, as a row or a tombstone, -1 for a new key (int64,
        shape (rows,)).
        """
        if self._dataset.has_one_slot:
            if rows.num_rows:
                yield self._group, rows
            return
        codes, paths = self._partitions(rows)
        for code, path in enumerate(paths):
            here = codes == code
            for number in numbers_in(former[here]):
                row_numbers = np.flatnonzero(here & (former == number))
                old = None if number < 0 else self.of_file(int(number))
                part = rows.take(pa.array(row_numbers)) if len(row_numbers) < rows.num_rows else rows
                if old is not None and old.partition_path == path:
                    yield old, part
                else:
                    yield from self._new(path, part)

    def split_tombstones(self, rows: pa.Table, former: np.ndarray) -> Iterator[tuple[Slot, pa.Table]]:
        """As `split`, for tombstones. Those of keys that move between partitions have the slot of the group."""
        if self._dataset.bucket.mode is BucketMode.KEY_DYNAMIC and self._dataset.partition_by:
            yield self._group, rows
        else:
            yield from self.split(rows, former)

    def _partitions(self, rows: pa.Table) -> tuple[np.ndarray, Sequence[str]]:
        if self._dataset.bucket.mode is BucketMode.KEY_DYNAMIC:
            return partition_codes(rows, self._dataset.partition_by)
        return np.zeros(rows.num_rows, dtype=np.int32), [self._group.partition_path]

    def _new(self, path: str, rows: pa.Table) -> Iterator[tuple[Slot, pa.Table]]:
        target = self._dataset.bucket.target_rows
        if target is None or not self._dataset.bucket.opens_by_size:
            yield Slot(partition_path=path, bucket=self._group.bucket, of=self._group.of), rows
            return
        start = 0
        while start < rows.num_rows:
            slot, room = self._with_room(path, target)
            part = rows.slice(start, room)
            self._rows[slot] += part.num_rows
            start += part.num_rows
            yield slot, part

    def _with_room(self, path: str, target: int) -> tuple[Slot, int]:
        """A bucket for new rows of the partition, and the number of rows it takes."""
        open_slots = sorted(slot for slot in self._rows if slot.partition_path == path)
        for slot in open_slots:
            if self._rows[slot] < target:
                return slot, target - self._rows[slot]
        if len(open_slots) < self._buckets_max():
            return Slot(partition_path=path, bucket=self._next_bucket(open_slots)), target
        # All are full and no more may open: the emptiest bucket exceeds its target, one row after another.
        return min(open_slots, key=lambda slot: (self._rows[slot], slot)), target

    def _buckets_max(self) -> int:
        """The group's share of the greatest number of buckets of a partition."""
        most = self._dataset.bucket.max_buckets
        if most is None:
            return np.iinfo(np.int32).max
        count = self._dataset.bucket.segments
        return max((most - self._group.bucket + count - 1) // count, 1)

    def _next_bucket(self, open_slots: Iterable[Slot]) -> int:
        buckets = [slot.bucket for slot in open_slots]
        return max(buckets) + self._dataset.bucket.segments if buckets else self._group.bucket
