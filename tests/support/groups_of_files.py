"""The file groups of the versions of a table in memory, as the timeline has them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

from app.core.timeline.values import GroupFiles
from app.kernel.format.file_group import DataFile, FileKind
from app.kernel.sql.conditions.prune import RowFilter


class GroupsOfFiles(ABC):
    """`VersionGroups` of the files that a class has at its versions."""

    @abstractmethod
    def files_at(self, version: int) -> Sequence[DataFile]:
        """All files of a version."""

    def files_of_groups(
        self,
        tenant_id: str,
        dataset_id: str,
        version: int,
        kinds: Collection[FileKind],
        first: str,
        end: str,
        limit: int,
        where: RowFilter | None = None,
    ) -> GroupFiles:
        """Those of one group, so that all others are read with further calls. Nothing is left out by statistics."""
        found = [
            file for file in self.files_at(version) if file.kind in kinds and first <= file.file_group < end
        ]
        group = min((file.file_group for file in found), default="")
        files = sorted((file for file in found if file.file_group == group), key=lambda file: file.path)
        return GroupFiles(files=files, more=len(files) < len(found))

    def partition_paths(self, tenant_id: str, dataset_id: str, version: int) -> list[str]:
        return list({file.slot.partition_path for file in self.files_at(version)} - {""})

    def group_at(
        self, tenant_id: str, dataset_id: str, version: int, kinds: Collection[FileKind], number: int
    ) -> str | None:
        names = sorted({file.file_group for file in self.files_at(version) if file.kind in kinds})
        return names[number] if number < len(names) else None

    def rows_from(
        self, tenant_id: str, dataset_id: str, version: int, kinds: Collection[FileKind], first: str
    ) -> int:
        return sum(
            file.live_rows
            for file in self.files_at(version)
            if file.kind in kinds and file.file_group >= first
        )
