"""The file groups of a version one after another, read as far as they are needed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from app.format.file_group import DataFile, FileKind
from app.timeline.ports import VersionGroups

_FILES_MIN: Final = 64
_FILES_MAX: Final = 4_096
# Sorts after the name of every file group.
AFTER_ALL: Final = "\U0010ffff"


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveGroups:
    """The groups of a version that have files of these kinds. They are ordered by name, and numbered in this order."""

    timeline: VersionGroups
    tenant_id: str
    dataset_id: str
    version: int
    kinds: Collection[FileKind]
    _numbers: dict[str, int] = field(default_factory=dict)

    def name(self, number: int) -> str | None:
        """The name of a group by its number; None if there are not so many groups. Raises VersionExpired, NotFound."""
        at = self.tenant_id, self.dataset_id, self.version, self.kinds
        found = self.timeline.group_at(*at, number)
        if found is not None:
            self._numbers[found] = number
        return found

    def batches(self, first: str = "", number: int = 0) -> Iterator[Sequence[DataFile]]:
        """The files of some whole groups at a time, from the group `first` on, whose number is `number`.

        Raises VersionExpired, NotFound.
        """
        limit = _FILES_MIN
        while True:
            at = self.tenant_id, self.dataset_id, self.version, self.kinds
            found = self.timeline.files_of_groups(*at, first, limit)
            for name, _ in groupby(found.files, key=lambda file: file.file_group):
                self._numbers[name] = number
                number += 1
            yield found.files
            if not found.more:
                return
            # No name is between: none contains a control character.
            first = found.files[-1].file_group + "\1"
            limit = min(limit * 4, _FILES_MAX)

    def number(self, name: str) -> int:
        """The number of a group that was found."""
        return self._numbers[name]
