"""The file groups of a version one after another, read as far as they are needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final

from app.core.timeline.ports import VersionGroups
from app.kernel.commit.read_plan import prunes_partitions, reaches_partition
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import PARTITION_END, DataFile, FileKind
from app.kernel.sql.conditions.prune import RowFilter
from app.kernel.sql.conditions.tree import Filter

_FILES_MIN: Final = 64
_FILES_MAX: Final = 4_096
# Sorts after the name of every file group.
AFTER_ALL: Final = "\U0010ffff"


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveGroups:
    """The groups of a version that have files of these kinds. They are ordered by name, and numbered in this order.

    `ranges`: those of the names that are wanted, one after another, without their ends; None for all. Groups have
    numbers only without. `where`: base files that have no selected row by their statistics are left out; None for no
    filter.
    """

    timeline: VersionGroups
    tenant_id: str
    dataset_id: str
    version: int
    kinds: Collection[FileKind]
    ranges: Sequence[tuple[str, str]] | None = None
    where: RowFilter | None = None
    _numbers: dict[str, int] = field(default_factory=dict)

    def reached(
        self,
        definition: DatasetDefinition,
        *,
        where: Filter | None,
        globs: Sequence[str] | None,
        rank: Callable[[str], bytes] | None = None,
    ) -> LiveGroups:
        """Those of partitions that may have rows which are selected. Raises VersionExpired, NotFound.

        `rank`: the order of the partitions by their paths, where groups have partitions; None for that of the paths.
        """
        if rank is None and not prunes_partitions(definition, where=where, globs=globs):
            return self
        paths = self.timeline.partition_paths(self.tenant_id, self.dataset_id, self.version)
        selection = {path for path in paths if reaches_partition(definition, path, where=where, globs=globs)}
        if rank is None:
            return self.of_partitions(paths, selection)
        ranges = [(f"{path}/", path + PARTITION_END) for path in sorted(selection, key=rank)]
        return replace(self, ranges=ranges)

    def of_partitions(self, paths: Collection[str], selection: Collection[str]) -> LiveGroups:
        """Those of the wanted ones among the partitions of the version."""
        # Neighbours have one range.
        runs = groupby(sorted(f"{path}/" for path in paths), key=lambda path: path[:-1] in selection)
        ranges = [(run[0], run[-1][:-1] + PARTITION_END) for in_selection, (*run,) in runs if in_selection]
        return replace(self, ranges=ranges)

    def name(self, number: int) -> str | None:
        """The name of a group by its number; None if there are fewer groups. Raises VersionExpired, NotFound."""
        group = self.timeline.group_at(*self._at, number)
        if group is not None:
            self._numbers[group] = number
        return group

    def batches(self, first: str = "", number: int = 0) -> Iterator[Sequence[DataFile]]:
        """The files of some whole groups at a time, from the group `first` on, whose number is `number`.

        Raises VersionExpired, NotFound.
        """
        limit = _FILES_MIN
        for start, end in self._ranges_from(first):
            first, more = max(first, start) if start <= first < end else start, True
            while more:
                batch = self.timeline.files_of_groups(*self._at, first, end, limit, self.where)
                for name, _ in groupby(batch.files, key=lambda file: file.file_group):
                    self._numbers[name] = number
                    number += 1
                yield batch.files
                more = batch.more
                if more:
                    # No name is between: none contains a control character.
                    first = batch.files[-1].file_group + "\1"
                limit = min(limit * 4, _FILES_MAX)

    def _ranges_from(self, first: str) -> Sequence[tuple[str, str]]:
        """The ranges from the one with a name on. Between two, in the order of names, it is the next one."""
        if self.ranges is None:
            return [("", AFTER_ALL)] if first < AFTER_ALL else []
        for number, (start, end) in enumerate(self.ranges):
            if start <= first < end:
                return self.ranges[number:]
        return [each for each in self.ranges if each[0] >= first]

    def number(self, name: str) -> int:
        """The number of a group that was found."""
        return self._numbers[name]

    def rows_from(self, first: str) -> int:
        """The number of live rows in the files of the group `first` and of all behind it.

        Raises VersionExpired, NotFound.
        """
        return self.timeline.rows_from(*self._at, first)

    @property
    def _at(self) -> tuple[str, str, int, Collection[FileKind]]:
        return self.tenant_id, self.dataset_id, self.version, self.kinds
