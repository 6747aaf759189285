"""The one planning of reads: which files of a version may have the rows that are selected.

Partitions are chosen first, by their paths, so that files of other partitions are never read from the catalogue. Then
Postgres leaves out base files by their statistics (`app.core.timeline.repository.pruning`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import msgspec

from app.core.catalog.values import Dataset
from app.core.timeline.ports import VersionGroups
from app.core.timeline.service.live_groups import LiveGroups
from app.kernel.commit.read_plan import GroupScan, plan_read
from app.kernel.commit.write_plan import WriteScope, reaches
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import DataFile, FileKind
from app.kernel.sql.conditions.prune import RowFilter
from app.kernel.sql.conditions.tree import Filter


class FileSelection(msgspec.Struct, frozen=True, kw_only=True):
    """What a read selects: rows in files of these kinds for which `where` is true, of partitions that match one of the
    globs. None selects everything.
    """

    kinds: tuple[FileKind, ...] = tuple(FileKind)
    where: Filter | None = None
    globs: tuple[str, ...] | None = None


class ReachedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The base files of a file group that may have selected rows. `comparisons`: of how many."""

    name: str
    files: Sequence[DataFile]
    comparisons: int


def reached_groups(
    definition: DatasetDefinition, files: Iterable[DataFile], where: Filter | None
) -> Iterator[ReachedGroup]:
    """The groups of files that are in the order of their groups, each with those that may have selected rows."""
    scope = WriteScope(where=where)
    for name, of_group in groupby(files, key=lambda file: file.file_group):
        candidates = list(of_group)
        selection = [file for file in candidates if reaches(scope, definition, file)]
        yield ReachedGroup(name=name, files=selection, comparisons=len(candidates))


@dataclass(frozen=True, kw_only=True, slots=True)
class FilePlanner:
    """Plans reads of a version. `definition`: the dataset under the schema that the read has.

    Raises VersionExpired, NotFound (dataset gone) throughout.
    """

    timeline: VersionGroups

    def scans(
        self, dataset: Dataset, definition: DatasetDefinition, version: int, selection: FileSelection
    ) -> Iterator[GroupScan]:
        """The groups that may have selected rows, by name, each with the ranges of rows to read."""
        where, globs = selection.where, selection.globs
        groups = self._groups(dataset, version, selection.kinds)
        for files in groups.reached(definition, where=where, globs=globs).batches():
            yield from plan_read(definition, files, where=where, partitions=globs)

    def base_files(
        self,
        dataset: Dataset,
        definition: DatasetDefinition,
        version: int,
        where: Filter | None,
        first: str = "",
    ) -> Iterator[ReachedGroup]:
        """The base files that may have rows for which `where` is true, by group from the name `first` on, and by path.

        A group may have none.
        """
        groups = self._groups(dataset, version, (FileKind.BASE,))
        if where is not None:
            groups = replace(groups, where=RowFilter(where=where, schema=definition.schema))
        for files in groups.reached(definition, where=where, globs=None).batches(first):
            # What Postgres cannot compare is left for the rules in full.
            yield from reached_groups(definition, files, where)

    def _groups(self, dataset: Dataset, version: int, kinds: tuple[FileKind, ...]) -> LiveGroups:
        return LiveGroups(
            timeline=self.timeline,
            tenant_id=dataset.tenant_id,
            dataset_id=dataset.id,
            version=version,
            kinds=kinds,
        )
