"""The live files that a plan of writes reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from app.core.catalog.values import Dataset
from app.core.timeline.ports import VersionReader
from app.kernel.commit.write_plan import touched_groups
from app.kernel.format.file_group import DataFile
from app.kernel.format.rows.staged import StagedFile


def touched_files(
    timeline: VersionReader,
    dataset: Dataset,
    version: int,
    writes: Mapping[int, Sequence[StagedFile]],
    done_groups: Collection[str] = (),
) -> list[DataFile]:
    """The files of the file groups that rows may go to, without `done_groups`, ordered by path.

    Raises VersionExpired, NotFound.
    """
    groups = touched_groups(dataset.definition, writes, done_groups)
    live = timeline.live_files(dataset.tenant_id, dataset.id, version, groups.names, groups.partitions)
    more_partitions = groups.open_partitions({*done_groups, *(file.file_group for file in live)})
    if not more_partitions:
        return live
    partitions = (*groups.partitions, *more_partitions)
    return timeline.live_files(dataset.tenant_id, dataset.id, version, groups.names, partitions)
