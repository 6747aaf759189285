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
    done: Collection[str] = (),
) -> list[DataFile]:
    """The files of the file groups that rows may go to, without the groups that are `done`, ordered by path.

    Raises VersionExpired, NotFound.
    """
    touched = touched_groups(dataset.definition, writes, done)
    live = timeline.live_files(dataset.tenant_id, dataset.id, version, touched.names, touched.partitions)
    opened = touched.open_partitions({*done, *(file.file_group for file in live)})
    if not opened:
        return live
    partitions = (*touched.partitions, *opened)
    return timeline.live_files(dataset.tenant_id, dataset.id, version, touched.names, partitions)
