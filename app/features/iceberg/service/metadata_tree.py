"""Metadata documents as objects below the location of a table: some clients fetch them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from app.access.errors import NotFound
from app.features.iceberg.service.rendered_tables import RenderedTables
from app.features.iceberg.service.table_form import is_open
from app.features.objects.ports import ObjectContent, ObjectTree, ServedTable
from app.features.objects.values import ObjectEntry

_DOCUMENT: Final = re.compile(r"v(\d{1,18})-(\d{1,18})-([0-9a-f]{16})\.metadata\.json", re.ASCII)


class MetadataDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A metadata document as an object."""

    text: bytes
    etag: str
    media_type: str = "application/json"

    @property
    def size_bytes(self) -> int:
        """The size of the document."""
        return len(self.text)

    def read(self, start: int, count: int) -> bytes:
        """A part of the document."""
        return self.text[start : start + count]


@dataclass(frozen=True, kw_only=True, slots=True)
class MetadataTree:
    """What is below `metadata/`: the documents of this room, and `manifests`, which makes all else."""

    tables: RenderedTables
    manifests: ObjectTree

    @property
    def segment(self) -> str:
        """The first segment of the paths."""
        return "metadata"

    def find(self, table: ServedTable, path: str) -> ObjectContent:
        """The document or manifest at a path, also one of before later commits and cleans. Raises NotFound."""
        if not is_open(table):
            raise _no_such(path)
        path_match = _DOCUMENT.fullmatch(path)
        if path_match is None:
            return self.manifests.find(table, path)
        dataset = table.dataset
        version, earliest, digest = int(path_match[1]), int(path_match[2]), path_match[3]
        if not (earliest <= version <= dataset.version and earliest <= dataset.earliest_version):
            raise _no_such(path)
        document = self.tables.of_state(dataset, table.variant, version, earliest, digest)
        if document is None:
            raise _no_such(path)
        return MetadataDocument(text=document.metadata.text, etag=digest)

    def listing(self, table: ServedTable, prefix: str, after: str, limit: int) -> Sequence[ObjectEntry]:
        """The manifests. Documents are not listed: each request for the table may make another one."""
        return self.manifests.listing(table, prefix, after, limit)


def _no_such(path: str) -> NotFound:
    return NotFound(f"there is no metadata {path[:200]!r}: load the table again")
