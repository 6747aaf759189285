"""Rendered files of tables of `versioned_tables`, whose rows of the catalogue are in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from app.core.catalog.values import Dataset
from app.features.rendered_files.service.files import RenderedFiles
from app.features.rendered_files.service.objects import RenderedObjects
from app.features.rendered_files.service.threads import RenderingThreads
from app.features.rendered_files.values import RenderingEntry, RenderingOrigin, StoredRendering
from app.infra.files.ports import ObjectStorage
from app.infra.files.slices.file_slice import SliceReader
from app.kernel.format.schema.schema import Schema
from tests.support.versioned_tables import VersionedTable


class _Entries:
    """What `RenderingStore` keeps, with the data files of one table."""

    def __init__(self, versioned: VersionedTable) -> None:
        self._versioned = versioned
        self._entries: dict[bytes, tuple[RenderingEntry, RenderingOrigin]] = {}

    def find(self, tenant_id: str, dataset_id: str, keys: Collection[bytes]) -> dict[bytes, RenderingEntry]:
        return {key: self._entries[key][0] for key in keys if key in self._entries}

    def touch(self, *_: Any) -> None:
        pass

    def put(
        self, tenant_id: str, dataset_id: str, entry: RenderingEntry, origin: RenderingOrigin
    ) -> RenderingEntry:
        present, _ = self._entries.get(entry.key, (entry, origin))
        kept = entry if present.path is None else present
        self._entries[entry.key] = kept, origin
        return kept

    def drop_object(self, tenant_id: str, dataset_id: str, entry: RenderingEntry) -> None:
        present, origin = self._entries[entry.key]
        self._entries[entry.key] = msgspec.structs.replace(present, path=None), origin

    def with_content(
        self, tenant_id: str, dataset_id: str, view: str, content: str
    ) -> Sequence[StoredRendering]:
        files = {(file.path, file.added_version): file for each in self._versioned.files for file in each}
        return [
            StoredRendering(
                entry=entry,
                source=files[origin.data_path, origin.version],
                schema_id=origin.schema_id,
            )
            for entry, origin in self._entries.values()
            if (entry.view, entry.content) == (view, content)
            and origin.data_path is not None
            and origin.schema_id is not None
        ]


class _Schemas:
    """The schemas that the dataset of a table had."""

    def __init__(self, versioned: VersionedTable) -> None:
        self._versioned = versioned

    def schemas(self, dataset: Dataset) -> tuple[Schema, ...]:
        known = {each.id: each for each in self._versioned.schemas.values()}
        return tuple({**known, dataset.definition.schema.id: dataset.definition.schema}.values())


def rendered_files_of(
    versioned: VersionedTable, storage: ObjectStorage, slices: SliceReader
) -> RenderedFiles:
    """Renders the files of a table into its storage."""
    objects = RenderedObjects(
        store=_Entries(versioned),  # type: ignore[arg-type]
        storage=storage,
        threads=RenderingThreads(),
    )
    return RenderedFiles(
        objects=objects,
        renderings=_Schemas(versioned),  # type: ignore[arg-type]
        slices=slices,
    )
