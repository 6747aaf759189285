"""Metadata documents, manifest lists and manifests as objects below the location of a table."""

from __future__ import annotations

from dataclasses import dataclass

from app.access.errors import NotFound
from app.features.iceberg.service.manifests import METADATA_SEGMENT, SnapshotManifests
from app.features.iceberg.service.objects import RenderedObject, etag_of
from app.features.iceberg.service.rendered_tables import DocumentName, RenderedTables, document_name
from app.features.iceberg.service.table_form import FORMAT_VERSIONS
from app.features.objects.ports import ObjectContent, ServedTable
from app.features.objects.service.unlisted_tree import UnlistedTree


@dataclass(frozen=True, kw_only=True, slots=True)
class MetadataTree(UnlistedTree):
    """`metadata/`: the documents of `tables`, which some clients fetch, and manifests."""

    tables: RenderedTables
    manifests: SnapshotManifests

    @property
    def segment(self) -> str:
        """The first segment of the paths."""
        return METADATA_SEGMENT

    def find(self, table: ServedTable, path: str) -> ObjectContent:
        """The document or manifest at a path, also one of before later commits and cleans. Raises NotFound."""
        if table.variant not in FORMAT_VERSIONS:
            raise _no_such(path)
        name = document_name(path)
        if name is not None:
            return self._document(table, path, name)
        content = self.manifests.find(table, path)
        tag = etag_of(table.variant, table.dataset.id, path)
        return RenderedObject(content=content, etag=tag, media_type="avro/binary")

    def _document(self, table: ServedTable, path: str, name: DocumentName) -> RenderedObject:
        dataset, earliest = table.dataset, name.earliest_version
        if not (earliest <= name.version <= dataset.version and earliest <= dataset.earliest_version):
            raise _no_such(path)
        document = self.tables.named(table, name)
        if document is None:
            raise _no_such(path)
        return RenderedObject(content=document.metadata.text, etag=name.digest, media_type="application/json")


def _no_such(path: str) -> NotFound:
    return NotFound(f"there is no metadata {path[:200]!r}: load the table again")
