"""Buckets that are halved as a table grows.

Bucket `b` of `n` has the keys whose number is `b` modulo `n`, where `n` is a power of two. Its halves are the buckets
`b` and `b + n` of `2 n`. A partition begins with bucket 0 of 1. At each version, the buckets of a partition that have
files are disjoint; a bucket that has lost all its rows has no files, and therefore no fixed size.

>>> root = Slot(partition_path="", bucket=0, of=1)
>>> [f"{each.bucket} of {each.of}" for each in parts_of(root, 4)]
['0 of 4', '1 of 4', '2 of 4', '3 of 4']
>>> one, other = halves(root)
>>> [f"{each.bucket} of {each.of}" for each in cover("", [one])]
['0 of 2', '1 of 2']
>>> overlap(root, other), overlap(one, other)
(True, False)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from math import gcd

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.kernel.format.dataset import HALVED_MAX, DatasetDefinition
from app.kernel.format.file_group import Slot, bucket_file_group, halved_slot
from app.kernel.format.rows.record_key import bucket_numbers


def halves(slot: Slot) -> tuple[Slot, Slot]:
    """The two halves of a bucket."""
    of = slot.of or 1
    return (
        Slot(partition_path=slot.partition_path, bucket=slot.bucket, of=2 * of),
        Slot(partition_path=slot.partition_path, bucket=slot.bucket + of, of=2 * of),
    )


def around(partition_path: str, number: int) -> Iterator[Slot]:
    """The buckets of all sizes that have the keys of a number, the largest first: one of them at most has files."""
    of = 1
    while of <= HALVED_MAX:
        yield Slot(partition_path=partition_path, bucket=number % of, of=of)
        of *= 2


def parts_of(slot: Slot, count: int) -> list[Slot]:
    """The bucket in `count` parts, a power of two, in order of their numbers."""
    of = slot.of or 1
    return [
        Slot(partition_path=slot.partition_path, bucket=slot.bucket + number * of, of=count * of)
        for number in range(count)
    ]


def overlap(one: Slot, other: Slot) -> bool:
    """Whether the two buckets have keys in common. Buckets that are not halved are equal, or have none."""
    if one.partition_path != other.partition_path:
        return False
    if one.of is None or other.of is None:
        return one == other
    return (one.bucket - other.bucket) % min(one.of, other.of) == 0


def overlaps_within(slots: Iterable[Slot]) -> bool:
    """Whether some of these buckets of one partition are parts of others. Equal ones count once."""
    distinct = sorted({slot for slot in slots if slot.of is not None}, key=lambda slot: slot.of or 1)
    buckets: set[tuple[int, int]] = set()
    for slot in distinct:
        of = slot.of or 1
        while of >= 1:
            if (slot.bucket % of, of) in buckets:
                return True
            of //= 2
        buckets.add((slot.bucket, slot.of or 1))
    return False


def largest(file_groups: Iterable[str]) -> dict[str, str]:
    """Of each file group the one of these with all of its keys: a bucket that it is a part of, or itself."""
    names = set(file_groups)
    return {name: _largest(name, names) for name in names}


def _largest(file_group: str, names: Collection[str]) -> str:
    slot = halved_slot(file_group)
    of = 1
    while slot is not None and of < (slot.of or 1):
        name = bucket_file_group(Slot(partition_path=slot.partition_path, bucket=slot.bucket % of, of=of))
        if name in names:
            return name
        of *= 2
    return file_group


def cover(partition_path: str, slots: Collection[Slot]) -> list[Slot]:
    """Disjoint buckets with all keys of a partition: the `slots`, and the largest ones beside them."""
    return list(_cover(Slot(partition_path=partition_path, bucket=0, of=1), frozenset(slots)))


def _cover(slot: Slot, slots: frozenset[Slot]) -> Iterator[Slot]:
    inside = frozenset(each for each in slots if overlap(slot, each))
    if not inside or slot in inside:
        yield slot
        return
    for half in halves(slot):
        yield from _cover(half, inside)


def file_groups_of(partition_path: str, numbers: Iterable[int]) -> list[str]:
    """All file groups that may have keys with these numbers, which are modulo HALVED_MAX."""
    distinct = list(numbers)
    counts = [1 << power for power in range(HALVED_MAX.bit_length())]
    slots = {(number % of, of) for of in counts for number in distinct}
    return [bucket_file_group(Slot(partition_path=partition_path, bucket=at, of=of)) for at, of in slots]


def in_share(slot: Slot, share: int, shares: int) -> bool:
    """Whether the bucket has keys whose number is `share` modulo `shares`."""
    return (slot.bucket - share) % gcd(slot.of or 1, shares) == 0


def key_numbers(rows: pa.Table, dataset: DatasetDefinition) -> tuple[int, ...] | None:
    """The distinct numbers of the keys modulo HALVED_MAX, ascending; None where buckets are not halved."""
    if not dataset.bucket.halves:
        return None
    numbers = bucket_numbers(rows, dataset.bucket_key, HALVED_MAX, dataset.bucket.function)
    return tuple(np.unique(numbers).tolist())


def inside(rows: pa.Table, dataset: DatasetDefinition, slot: Slot) -> npt.NDArray[np.bool_]:
    """Which of the rows belong to the bucket: bool, shape (rows,). `rows`: with the bucket key."""
    numbers = bucket_numbers(rows, dataset.bucket_key, slot.of or 1, dataset.bucket.function)
    return np.asarray(numbers == slot.bucket)
