"""The one planning of reads: which files of a version may have the rows that are selected.

Partitions are chosen first, by their paths, so that files of other partitions are never read from the catalogue.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from app.core.catalog.values import Dataset
from app.core.timeline.ports import VersionGroups
from app.core.timeline.service.live_groups import LiveGroups
from app.kernel.commit.read_plan import GroupScan, plan_read
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import DataFile, FileKind
from app.kernel.sql.conditions.tree import Filter


class FileSelection(msgspec.Struct, frozen=True, kw_only=True):
    """What a read selects: rows in files of these kinds for which `where` is true, of partitions that match one of the
    globs. None selects everything.
    """

    kinds: tuple[FileKind, ...] = tuple(FileKind)
    where: Filter | None = None
    globs: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FilePlanner:
    """Plans reads of a version. `definition`: the dataset under the schema that the read has.

    Raises VersionExpired, NotFound (dataset gone) throughout.
    """

    timeline: VersionGroups

    def batches(
        self, dataset: Dataset, definition: DatasetDefinition, version: int, selection: FileSelection
    ) -> Iterator[Sequence[DataFile]]:
        """The files of whole groups, some groups at a time, ordered by group and path.

        Those of partitions that certainly have no selected row are left out.
        """
        groups = LiveGroups(
            timeline=self.timeline,
            tenant_id=dataset.tenant_id,
            dataset_id=dataset.id,
            version=version,
            kinds=selection.kinds,
        )
        yield from groups.reached(definition, where=selection.where, globs=selection.globs).batches()

    def scans(
        self, dataset: Dataset, definition: DatasetDefinition, version: int, selection: FileSelection
    ) -> Iterator[GroupScan]:
        """The groups that may have selected rows, by name, each with the ranges of rows to read."""
        for files in self.batches(dataset, definition, version, selection):
            yield from plan_read(definition, files, where=selection.where, partitions=selection.globs)
