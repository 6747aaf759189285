"""Which small changelog files are merged into one: consecutive files of the feed, written under one schema.

Small files come in two classes. A run of the first class becomes a file of the second, sooner or later, and a run of
the second a file that is not small. So a change is rewritten a few times, and few small files are left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final

from app.kernel.format.definition.policy_rules import MERGED_FILES_MAX
from app.kernel.format.file_group import StoredFile

# What a segment counts, whatever its size: each has a row in the catalogue.
_SEGMENT_WEIGHT: Final = 1024
# The weights at which the classes of small files end. Files from the last on are not merged.
_CLASS_ENDS: Final = (256 * 1024, 8 * 1024 * 1024)
# The most that is merged at once.
_MERGED_WEIGHT_MAX: Final = 16 * 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class SmallFile:
    """A changelog file that holds the changes from `first_offset` on, in this number of segments."""

    file: StoredFile
    first_offset: int
    segments: int
    committed_at: datetime

    @property
    def end_offset(self) -> int:
        """The offset behind its last change."""
        return self.first_offset + self.file.row_count

    @property
    def weight(self) -> int:
        """Its bytes, or more if it has many segments."""
        return max(self.file.size_bytes, self.segments * _SEGMENT_WEIGHT)


def run_to_merge(files: Sequence[SmallFile], files_min: int) -> Sequence[SmallFile]:
    """The first run that is merged, at least two files; none if no class has `files_min` files in a row.

    `files`: by offset. Files that are not small may be among them or missing: both end a run.
    """
    for part in _adjacent(files, _CLASS_ENDS[-1]):
        begin = 0
        for end in _CLASS_ENDS:
            for run in _adjacent(part, end):
                if sum(file.weight >= begin for file in run) >= files_min:
                    short_run = _limited(run)
                    if len(short_run) > 1:
                        return short_run
            begin = end
    return ()


def settled_before(files: Sequence[SmallFile]) -> int:
    """The offset before which no file is ever merged, after `run_to_merge` has found none: the rest may still grow."""
    parts = list(_adjacent(files, _CLASS_ENDS[-1])) or [files[-1:]]
    return parts[-1][0].first_offset


def _adjacent(files: Sequence[SmallFile], end: int) -> Iterator[Sequence[SmallFile]]:
    """The longest sequences of adjacent files with one schema and weights below `end`."""
    start = 0
    for at, (file, following) in enumerate(pairwise(files), 1):
        if (
            following.first_offset != file.end_offset
            or following.file.schema_id != file.file.schema_id
            or (following.weight >= end) != (file.weight >= end)
        ):
            if file.weight < end:
                yield files[start:at]
            start = at
    if files and files[-1].weight < end:
        yield files[start:]


def _limited(run: Sequence[SmallFile]) -> Sequence[SmallFile]:
    """The beginning of the run, as far as it is merged at once."""
    weight = 0
    for number, file in enumerate(run[:MERGED_FILES_MAX]):
        weight += file.weight
        if weight > _MERGED_WEIGHT_MAX:
            return run[:number]
    return run[:MERGED_FILES_MAX]
