"""Tables of Iceberg without a service: as a principal sees them, and what renders them from the stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.core.catalog.values import Dataset
from app.core.timeline.repository.file_blocks import FileBlockStore
from app.core.timeline.repository.version_groups import VersionGroupStore
from app.core.timeline.service.plan_files import FilePlanner
from app.features.iceberg.service.delete_files import DeleteFiles
from app.features.iceberg.service.manifests import SnapshotManifests
from app.features.iceberg.service.part_manifests import PartManifests
from app.features.iceberg.service.table_form import TableForms
from app.features.iceberg.service.visible_files import VisibleFiles
from app.features.objects.ports import ServedTable
from app.features.objects.repository.table_files import TableFileStore
from app.features.objects.service.published_files import FilePublication
from app.features.objects.service.renderings import Renderings
from app.features.rendered_files.values import RenderedFile
from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.storage import LocalStorage
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import DataFile
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess
from tests.support.store_fixtures import Stores


def served(dataset: Dataset, variant: str = "v3", access: RowAccess = EVERYTHING) -> ServedTable:
    """The table of a dataset."""
    return ServedTable(dataset=dataset, variant=variant, access=access)


@dataclass(kw_only=True)
class KnownRenderer:
    """Files whose rendering the test states. `render`: None for a file without a visible row."""

    render: Callable[[Dataset, DataFile], RenderedFile | None]

    def require(
        self,
        dataset: Dataset,
        definition: DatasetDefinition,
        access: RowAccess,
        files: Sequence[DataFile],
    ) -> list[RenderedFile]:
        return [each for file in files if (each := self.render(dataset, file)) is not None]


def known_files(stores: Stores) -> FilePlanner:
    """Plans reads of versions that are kept, or have expired lately."""
    return FilePlanner(timeline=VersionGroupStore.of_known_files(stores.database))


def visible_files(stores: Stores, render: Callable[[Dataset, DataFile], RenderedFile | None]) -> VisibleFiles:
    """The visible files of versions."""
    return VisibleFiles(
        planner=known_files(stores),
        timeline=stores.timeline,
        renderer=KnownRenderer(render=render),
    )


def nothing_visible(dataset: Dataset, file: DataFile) -> None:
    """No row of a file."""


def table_forms(stores: Stores) -> TableForms:
    """The forms of tables."""
    renderings = Renderings(stores.catalog, TableFileStore(stores.database))
    return TableForms(publication=FilePublication(renderings=renderings))


def snapshot_manifests(
    stores: Stores,
    directory: Path,
    render: Callable[[Dataset, DataFile], RenderedFile | None] = nothing_visible,
) -> SnapshotManifests:
    """What renders manifests, with nothing cached. `directory`: the storage."""
    return SnapshotManifests(
        blocks=FileBlockStore(stores.database),
        forms=table_forms(stores),
        deletes=DeleteFiles(vectors=VectorReader(LocalStorage(directory))),
        parts=PartManifests(files=visible_files(stores, render)),
    )
