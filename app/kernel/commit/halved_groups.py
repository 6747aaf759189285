"""The file groups that a write touches where buckets are halved as they grow.

A bucket whose rows or bytes exceed the bound, with those of the write, is halved by that write, as often as necessary.
Each part is a file group of its own. All of them read the files of the bucket, and each keeps its own rows. No other
bucket is rewritten.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from app.kernel.format.dataset import (
    FIRST_BUCKETS,
    FIRST_HALVED_BYTES,
    FIRST_HALVED_ROWS,
    HALVED_BYTES,
    HALVED_MAX,
    DatasetDefinition,
)
from app.kernel.format.file_group import DataFile, Slot, bucket_file_group
from app.kernel.format.halving import cover, overlap, parts_of


class StagedBucket(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of writes in one staged bucket: those that may stay in the table, and the numbers of all keys.

    `numbers`: None if they are not known.
    """

    rows: int = 0
    size_bytes: int = 0
    numbers: frozenset[int] | None = None

    def reaches(self, slot: Slot) -> bool:
        """Whether rows may go to the bucket, which has keys in common with the staged one."""
        of = slot.of or 1
        return self.numbers is None or any(number % of == slot.bucket for number in self.numbers)


class HalvedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A bucket with a task: the files that the task reads, and the staged buckets with rows for it."""

    slot: Slot
    files: Sequence[DataFile]
    staged_slots: Sequence[Slot]


def halved_groups(
    dataset: DatasetDefinition,
    staged_buckets: Mapping[Slot, StagedBucket],
    files: Mapping[str, Sequence[DataFile]],
    slots: Iterable[Slot],
    groups_in_scope: Collection[str],
) -> Iterator[HalvedGroup]:
    """The buckets with a task.

    `staged_buckets`: the staged buckets of the writes. `files`: by file group. `slots`: all buckets that have files, or
    that have been merged before. `groups_in_scope`: file groups with rows that the write may retract without naming
    their keys.
    """
    slots_by_path, staged_by_path = _by_partition(slots), _by_partition(staged_buckets)
    for path in sorted({*staged_by_path, *(files[name][0].slot.partition_path for name in groups_in_scope)}):
        here = slots_by_path.get(path, [])
        for bucket in cover(path, here):
            name = bucket_file_group(bucket)
            bucket_files = files.get(name, ())
            coming = [
                slot for slot in staged_by_path.get(path, ()) if _brings(slot, staged_buckets[slot], bucket)
            ]
            if not coming and name not in groups_in_scope:
                continue
            # The files of a bucket may be left out of the plan; then it is not divided.
            whole = bucket in here and not bucket_files
            contents = {slot: staged_buckets[slot] for slot in coming}
            count = 1 if whole else _parts(dataset, bucket, bucket_files, contents)
            for part in parts_of(bucket, count):
                own = [slot for slot in coming if _brings(slot, staged_buckets[slot], part)]
                # Every part of a bucket with files has a task: together they have all rows of the files.
                if bucket_files or own:
                    yield HalvedGroup(slot=part, files=bucket_files, staged_slots=own)


def _brings(slot: Slot, staged_bucket: StagedBucket, bucket: Slot) -> bool:
    """Whether rows of the staged bucket may go to the bucket."""
    return overlap(slot, bucket) and staged_bucket.reaches(bucket)


def _by_partition(slots: Iterable[Slot]) -> dict[str, list[Slot]]:
    slots_by_path: dict[str, list[Slot]] = {}
    for slot in slots:
        slots_by_path.setdefault(slot.partition_path, []).append(slot)
    return slots_by_path


def _parts(
    dataset: DatasetDefinition, bucket: Slot, files: Sequence[DataFile], coming: Mapping[Slot, StagedBucket]
) -> int:
    """Into how many parts the bucket is divided: 1, or a power of two."""
    of = bucket.of or 1
    row_files = [file for file in files if file.kind.holds_rows]
    rows = sum(file.live_rows for file in row_files)
    size = sum(file.size_bytes for file in row_files)
    for slot, staged_bucket in coming.items():
        # A larger staged bucket has rows of several.
        share = max(of // (slot.of or 1), 1)
        rows += staged_bucket.rows // share
        size += staged_bucket.size_bytes // share
    parts = 1
    while of * parts < HALVED_MAX and _exceeds(dataset, of * parts, rows / parts, size / parts):
        parts *= 2
    return parts


def _exceeds(dataset: DatasetDefinition, of: int, rows: float, size: float) -> bool:
    """Whether a bucket of `of` has too many rows or bytes."""
    rows_max = dataset.bucket.target_rows or rows
    if of >= FIRST_BUCKETS:
        return rows > rows_max or size > HALVED_BYTES
    return rows > min(rows_max, FIRST_HALVED_ROWS) or size > FIRST_HALVED_BYTES
