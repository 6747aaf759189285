"""Composes the use cases of the Iceberg catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.core.feature.api import ApiProcess
from app.core.timeline.repository.file_blocks import FileBlockStore
from app.core.timeline.repository.pending_writes import PendingWriteStore
from app.core.timeline.repository.version_groups import VersionGroupStore
from app.core.timeline.service.plan_files import FilePlanner
from app.features.iceberg.repository.table_versions import TableVersionStore
from app.features.iceberg.service.delete_files import DeleteFiles
from app.features.iceberg.service.deletes_tree import DeletesTree
from app.features.iceberg.service.manifests import SnapshotManifests
from app.features.iceberg.service.metadata_tree import MetadataTree
from app.features.iceberg.service.part_manifests import PartManifests
from app.features.iceberg.service.plans import PlanScans
from app.features.iceberg.service.rendered_tables import RenderedTables
from app.features.iceberg.service.table_form import TableForms
from app.features.iceberg.service.visible_files import VisibleFiles
from app.features.objects.compose import renderings
from app.features.objects.ports import ObjectTree
from app.features.objects.service.published_files import FilePublication
from app.features.rendered_files.compose import rendered_files
from app.infra.files.deletion_vector_file import VectorReader
from app.infra.settings import MEBIBYTE
from app.infra.sharing.byte_cache import ByteCache

_CACHE_BYTES: Final = 32 * MEBIBYTE


@dataclass(frozen=True, kw_only=True, slots=True)
class Tables:
    """What renders tables, of which a process has one."""

    forms: TableForms
    documents: RenderedTables
    deletes: DeleteFiles
    planner: FilePlanner
    visible: VisibleFiles
    blocks: FileBlockStore
    manifests: SnapshotManifests


def rendered_tables(process: ApiProcess) -> Tables:
    """What renders the tables of the process, for `ApiProcess.once`."""
    platform = process.platform
    forms = TableForms(publication=FilePublication(renderings=process.once(renderings)))
    documents = RenderedTables(
        versions=TableVersionStore(platform.database),
        pending_writes=PendingWriteStore(platform.database),
        forms=forms,
        documents=ByteCache(_CACHE_BYTES),
        snapshots=ByteCache(_CACHE_BYTES),
    )
    deletes = DeleteFiles(vectors=VectorReader(platform.storage))
    timeline = platform.stores.timeline
    blocks = FileBlockStore(platform.database)
    planner = FilePlanner(timeline=VersionGroupStore.of_known_files(platform.database))
    visible = VisibleFiles(
        planner=planner,
        timeline=timeline,
        renderer=process.once(rendered_files),
    )
    manifests = SnapshotManifests(
        blocks=blocks, forms=forms, deletes=deletes, parts=PartManifests(files=visible)
    )
    return Tables(
        forms=forms,
        documents=documents,
        deletes=deletes,
        planner=planner,
        visible=visible,
        blocks=blocks,
        manifests=manifests,
    )


def plan_scans(process: ApiProcess) -> PlanScans:
    """What plans scans."""
    of_process = process.once(rendered_tables)
    timeline = process.platform.stores.timeline
    return PlanScans(
        planner=of_process.planner,
        timeline=timeline,
        forms=of_process.forms,
        deletes=of_process.deletes,
        visible=of_process.visible,
    )


def object_trees(process: ApiProcess) -> list[ObjectTree]:
    """What is rendered below the location of a table."""
    of_process = process.once(rendered_tables)
    return [
        MetadataTree(tables=of_process.documents, manifests=of_process.manifests),
        DeletesTree(blocks=of_process.blocks, forms=of_process.forms, deletes=of_process.deletes),
    ]
