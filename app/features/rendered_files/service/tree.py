"""Rendered files below the location of a table: `rendered/{view}/{content}.parquet`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.access.errors import NotFound
from app.features.objects.ports import ObjectContent, ServedTable
from app.features.objects.values import ObjectEntry
from app.features.rendered_files.service.files import RenderedFiles
from app.features.rendered_files.values import RENDERED_SEGMENT, object_path

_PATH: Final = re.compile(r"([0-9a-f]{16})/([0-9a-f]{32})\.parquet")


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderedTree:
    """The files that were rendered for readers who see the same of a table as the owner of the key (`ObjectTree`)."""

    files: RenderedFiles
    segment: str = RENDERED_SEGMENT

    def find(self, table: ServedTable, path: str) -> ObjectContent:
        """See `ObjectTree`. Raises GrantNotApplicable, too."""
        digests = _PATH.fullmatch(path)
        if digests is None:
            raise NotFound("the table has no such object")
        return self.files.find(table.dataset, table.access, digests[1], digests[2])

    def listing(self, table: ServedTable, prefix: str, after: str, limit: int) -> Sequence[ObjectEntry]:
        """See `ObjectTree`."""
        dataset = table.dataset
        views = self.files.visible_views(dataset, table.access)
        if not views:
            return []
        store = self.files.objects.store
        sizes = store.listing(dataset.tenant_id, dataset.id, views, prefix, after, limit)
        return [
            ObjectEntry(path=object_path(view, content), size_bytes=size_bytes, etag=content)
            for (view, content), size_bytes in sizes.items()
        ]
