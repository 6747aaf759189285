"""Composes the use cases of the Iceberg catalogue."""

from __future__ import annotations

from typing import Final

from app.core.platform import Platform
from app.core.timeline.repository.file_blocks import FileBlockStore
from app.core.timeline.service.plan_files import FilePlanner
from app.features.iceberg.repository.table_versions import TableVersionStore
from app.features.iceberg.service.delete_files import DeleteFiles
from app.features.iceberg.service.manifests import SnapshotManifests
from app.features.iceberg.service.metadata_tree import MetadataTree
from app.features.iceberg.service.plans import PlanScans
from app.features.iceberg.service.rendered_tables import RenderedTables
from app.features.iceberg.service.table_form import TableForms
from app.features.iceberg.service.trees import DeletesTree, ManifestTree
from app.features.objects.compose import renderings
from app.features.objects.ports import ObjectTree
from app.features.objects.service.published_files import FilePublication
from app.infra.files.deletion_vector_file import VectorReader
from app.infra.settings import MEBIBYTE
from app.infra.sharing.byte_cache import ByteCache

_CACHE_BYTES: Final = 32 * MEBIBYTE


def table_forms(platform: Platform) -> TableForms:
    """The forms of tables."""
    stores = platform.stores
    publication = FilePublication(catalog=stores.catalog, renderings=renderings(platform))
    return TableForms(publication=publication)


def rendered_tables(platform: Platform) -> RenderedTables:
    """What renders metadata documents, with a cache of its own."""
    return RenderedTables(
        versions=TableVersionStore(platform.database),
        forms=table_forms(platform),
        documents=ByteCache(_CACHE_BYTES),
        snapshots=ByteCache(_CACHE_BYTES),
    )


def delete_files(platform: Platform) -> DeleteFiles:
    """What renders deleted rows, with a cache of its own."""
    return DeleteFiles(vectors=VectorReader(platform.storage))


def plan_scans(platform: Platform) -> PlanScans:
    """What plans scans."""
    timeline = platform.stores.timeline
    return PlanScans(
        planner=FilePlanner(timeline=timeline),
        timeline=timeline,
        forms=table_forms(platform),
        deletes=delete_files(platform),
        versions=platform.leases,
    )


def object_trees(platform: Platform) -> list[ObjectTree]:
    """What is rendered below the location of a table."""
    blocks, forms = FileBlockStore(platform.database), table_forms(platform)
    deletes = delete_files(platform)
    manifests = SnapshotManifests(blocks=blocks, forms=forms, deletes=deletes)
    return [
        MetadataTree(tables=rendered_tables(platform), manifests=ManifestTree(manifests=manifests)),
        DeletesTree(blocks=blocks, forms=forms, deletes=deletes),
    ]
