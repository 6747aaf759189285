"""The blocks of files that a version has, each with the counts of its commits.

The counts of a table are cached with their version. At a later one only those of commits are read whose files have
changed since.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from app.core.catalog.values import Dataset
from app.core.timeline.errors import VersionExpired
from app.core.timeline.repository.file_blocks import FileBlockStore
from app.core.timeline.values import FileBlock, FileCounts
from app.infra.sharing.byte_cache import ByteCache
from app.kernel.iceberg.file_cuts import Cut, cut_files

BLOCK_FILES: Final = 1_000
"""How many files a block has, at most; one commit may have more."""
_END: Final = 2**62
# Commits that are counted together: most have few files.
_STEP: Final = 64
# Of changed counts: all are read at once rather than more of them one by one.
_STEPS_MAX: Final = 8
_COUNTS_BYTES: Final = 256
_CACHE_BYTES: Final = 8 * 1024 * 1024
_At = tuple[str, str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockCounts:
    """Counts the files of blocks. May be called by many threads at once."""

    store: FileBlockStore
    _latest: ByteCache[str, tuple[int, dict[int, FileCounts]]] = field(
        default_factory=lambda: ByteCache(_CACHE_BYTES)
    )

    def of(self, dataset: Dataset, version: int) -> list[tuple[FileBlock, list[FileCounts]]]:
        """The blocks of a version, in their order. Raises VersionExpired if some of its files are not
        known any more, NotFound (dataset gone).
        """
        at = dataset.tenant_id, dataset.id, version
        counts = self._by_step(at)
        dense = [each.first for each in counts if each.files > BLOCK_FILES]
        if dense:
            # Of these commits each is counted.
            single = self.store.counts(*at, first=dense[0], end=dense[-1] + _STEP, step=1, parts=1)
            counts = sorted([each for each in counts if each.first not in dense] + _within(single, dense))
        cuts = list(cut_files([(each.first, each.files) for each in counts], BLOCK_FILES, _STEP))
        large = [cut for cut in cuts if cut.parts > 1]
        of_parts: list[FileCounts] = []
        if large:
            parts = max(cut.parts for cut in large)
            first, end = large[0].first, large[-1].end
            of_parts = self.store.counts(*at, first=first, end=end, step=1, parts=parts)
        return list(_blocks(cuts, counts, of_parts))

    def _by_step(self, at: _At) -> list[FileCounts]:
        """The counts of each step, ascending."""
        _, dataset_id, version = at
        since, known = self._latest.get(dataset_id) or (0, {})
        steps = self._changed_steps(at, since) if 0 < since <= version else None
        if steps is None:
            counts = {
                each.first: each for each in self.store.counts(*at, first=0, end=_END, step=_STEP, parts=1)
            }
        else:
            counts = {first: each for first, each in known.items() if first not in steps}
            for step in steps:
                found = self.store.counts(*at, first=step, end=step + _STEP, step=_STEP, parts=1)
                counts |= {each.first: each for each in found}
        if version > since:
            self._latest.put(dataset_id, (version, counts), _COUNTS_BYTES * len(counts))
        return sorted(counts.values())

    def _changed_steps(self, at: _At, since: int) -> Sequence[int] | None:
        """The steps whose files have changed since a version; None if they are many, or are not known any more."""
        try:
            steps = self.store.changed_steps(*at, since=since, step=_STEP, limit=_STEPS_MAX + 1)
        except VersionExpired:
            return None
        return steps if len(steps) <= _STEPS_MAX else None


def _within(counts: Sequence[FileCounts], dense: Sequence[int]) -> list[FileCounts]:
    """The counts of commits in these steps."""
    return [each for each in counts if each.first - each.first % _STEP in set(dense)]


def _blocks(
    cuts: Sequence[Cut], counts: Sequence[FileCounts], of_parts: Sequence[FileCounts]
) -> Iterable[tuple[FileBlock, list[FileCounts]]]:
    """`counts`: by commit, ascending. `of_parts`: by commit and part, of the commits that are cut into parts."""
    remaining = iter(counts)
    pending = next(remaining, None)
    for cut in cuts:
        mine = []
        while pending is not None and pending.first < cut.end:
            mine.append(pending)
            pending = next(remaining, None)
        if cut.parts == 1:
            yield FileBlock(cut.first, cut.end), mine
            continue
        parts = sorted((each.part & (cut.parts - 1), each) for each in of_parts if each.first == cut.first)
        for part, group in groupby(parts, key=lambda pair: pair[0]):
            yield FileBlock(cut.first, cut.end, part, cut.parts), [each for _, each in group]
