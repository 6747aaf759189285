"""Which messages a round reads: a share of each partition, and groups of ranges that are read by one client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.infra.kafka.messages import OffsetRange


def share(available: Mapping[int, int], rows_max: int) -> dict[int, int]:
    """How many messages to read of each partition, `rows_max` in all, evenly; what one does not need goes to others.

    `available`: how many there are. A partition without a message to read is left out.

    >>> share({0: 10, 1: 2, 2: 0}, 8)
    {1: 2, 0: 6}
    """
    shares: dict[int, int] = {}
    remaining_rows = rows_max
    waiting = sorted((count, partition) for partition, count in available.items() if count > 0)
    for number, (count, partition) in enumerate(waiting):
        shares[partition] = min(count, -(-remaining_rows // (len(waiting) - number)))
        remaining_rows -= shares[partition]
    return {partition: count for partition, count in shares.items() if count}


def split(ranges: Sequence[OffsetRange], groups_max: int, rows_min: int) -> list[list[OffsetRange]]:
    """The ranges in groups of about equal size, at most `groups_max`; fewer if they would have less than `rows_min`
    messages.
    """
    rows = sum(part.end - part.start for part in ranges)
    count = max(1, min(groups_max, len(ranges), rows // rows_min))
    groups: list[list[OffsetRange]] = [[] for _ in range(count)]
    sizes = [0] * count
    for part in sorted(ranges, key=lambda each: each.start - each.end):
        smallest = sizes.index(min(sizes))
        groups[smallest].append(part)
        sizes[smallest] += part.end - part.start
    return [sorted(group) for group in groups if group]
