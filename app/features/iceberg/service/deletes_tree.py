"""Deleted rows of data files as objects below the location of a table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from app.access.errors import NotFound
from app.core.timeline.repository.file_blocks import FileBlockStore
from app.features.iceberg.service.delete_files import DeleteFiles
from app.features.iceberg.service.objects import UnrenderedObject, etag_of
from app.features.iceberg.service.table_form import (
    DELETES_SEGMENT,
    FORMAT_VERSIONS,
    TableForms,
    stored_suffix,
)
from app.features.objects.ports import ObjectContent, ServedTable
from app.features.objects.service.unlisted_tree import UnlistedTree
from app.kernel.format.file_group import FileKind
from app.kernel.format.paths import data_folder, dataset_prefix

_DELETED: Final = re.compile(r"([1-9]\d{0,17})/(.+)\.(?:puffin|parquet)", re.ASCII | re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class DeletesTree(UnlistedTree):
    """`deletes/`: the deleted rows of data files, by the version since which they are deleted."""

    blocks: FileBlockStore
    forms: TableForms
    deletes: DeleteFiles

    @property
    def segment(self) -> str:
        """The first segment of the paths."""
        return DELETES_SEGMENT

    def find(self, table: ServedTable, path: str) -> ObjectContent:
        """The deleted rows of a file, for who sees the whole dataset. They are there as long as the file is served in
        which they are deleted. Raises NotFound.
        """
        dataset, variant = table.dataset, table.variant
        match = _DELETED.fullmatch(path)
        if table.access.restricted or variant not in FORMAT_VERSIONS or match is None or "\0" in path:
            raise _no_such(path)
        if not path.endswith(stored_suffix(variant)):
            raise _no_such(path)
        path_of_file = f"{data_folder(dataset_prefix(dataset.tenant_id, dataset.id))}/{match[2]}"
        file = self.blocks.file(dataset.tenant_id, dataset.id, path_of_file, int(match[1]))
        if file is None or file.kind is not FileKind.BASE or file.deletion_vector is None:
            raise _no_such(path)
        form = self.forms.of(table)
        return UnrenderedObject(
            size_bytes=self.deletes.size_bytes(form, file),
            etag=etag_of(form.data_path(file), path),
            media_type="application/octet-stream",
            render=lambda: self.deletes.content(form, file),
        )


def _no_such(path: str) -> NotFound:
    return NotFound(f"there are no deleted rows {path[:200]!r}: load the table again")
