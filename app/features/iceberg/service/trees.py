"""The objects below the location of a table that are rendered: its manifests, and the deleted rows of its files."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from app.access.errors import NotFound
from app.core.timeline.repository.file_blocks import FileBlockStore
from app.features.iceberg.service.delete_files import DeleteFiles
from app.features.iceberg.service.manifests import METADATA_SEGMENT, SnapshotManifests
from app.features.iceberg.service.table_form import DELETES_SEGMENT, TableForms, is_open, stored_suffix
from app.features.objects.ports import ObjectContent, ServedTable
from app.features.objects.values import ObjectEntry
from app.kernel.format.paths import data_folder, dataset_prefix

_DELETED: Final = re.compile(r"([1-9]\d{0,17})/(.+)\.(?:puffin|parquet)", re.ASCII | re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderedObject:
    """An object whose bytes are made when they are read first. `etag`: of a path, which has the same bytes for ever."""

    size_bytes: int
    etag: str
    media_type: str
    content: Callable[[], bytes]

    def read(self, start: int, count: int) -> bytes:
        """Bytes of the object."""
        return self.content()[start : start + count]


@dataclass(frozen=True, kw_only=True, slots=True)
class ManifestTree:
    """`metadata/`: manifest lists and manifests."""

    manifests: SnapshotManifests

    @property
    def segment(self) -> str:
        """The first segment of the paths."""
        return METADATA_SEGMENT

    def find(self, table: ServedTable, path: str) -> ObjectContent:
        """The object with a name. Raises NotFound for one that is not rendered at this time."""
        content = self.manifests.find(table.dataset, table.variant, path)
        return RenderedObject(
            size_bytes=len(content),
            etag=_etag(table.variant, table.dataset.id, path),
            media_type="avro/binary",
            content=lambda: content,
        )

    def listing(
        self,
        table: ServedTable,  # noqa: ARG002
        prefix: str,  # noqa: ARG002
        after: str,  # noqa: ARG002
        limit: int,  # noqa: ARG002
    ) -> Sequence[ObjectEntry]:
        """Nothing: readers find metadata by the catalogue, and each list would render all of it."""
        return ()


@dataclass(frozen=True, kw_only=True, slots=True)
class DeletesTree:
    """`deletes/`: the deleted rows of data files, by the version since which they are deleted."""

    blocks: FileBlockStore
    forms: TableForms
    deletes: DeleteFiles

    @property
    def segment(self) -> str:
        """The first segment of the paths."""
        return DELETES_SEGMENT

    def find(self, table: ServedTable, path: str) -> ObjectContent:
        """The deleted rows of a file, for who sees the whole dataset. Raises NotFound for rows that no version has."""
        dataset, variant = table.dataset, table.variant
        match = _DELETED.fullmatch(path)
        if not is_open(table) or match is None or "\0" in path:
            raise _no_such(path)
        if not path.endswith(stored_suffix(variant)):
            raise _no_such(path)
        path_of_file = f"{data_folder(dataset_prefix(dataset.tenant_id, dataset.id))}/{match[2]}"
        file = self.blocks.file(dataset.tenant_id, dataset.id, path_of_file, int(match[1]))
        if file is None or file.deletion_vector is None:
            raise _no_such(path)
        form = self.forms.of(dataset, variant)
        return RenderedObject(
            size_bytes=self.deletes.size_bytes(form, file),
            etag=_etag(form.data_path(file), path),
            media_type="application/octet-stream",
            content=lambda: self.deletes.content(form, file),
        )

    def listing(
        self,
        table: ServedTable,  # noqa: ARG002
        prefix: str,  # noqa: ARG002
        after: str,  # noqa: ARG002
        limit: int,  # noqa: ARG002
    ) -> Sequence[ObjectEntry]:
        """Nothing: readers find deleted rows by manifests."""
        return ()


def _etag(*parts: str) -> str:
    return blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


def _no_such(path: str) -> NotFound:
    return NotFound(f"there are no deleted rows {path[:200]!r}: load the table again")
