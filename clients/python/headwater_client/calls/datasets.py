"""Datasets and their schemas."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Literal
from urllib.parse import urlencode

from headwater_client.models import (
    CreateRetention,
    CreateVocabulary,
    Dataset,
    DatasetPage,
    DatasetSchema,
    FileCompression,
    SchemaChange,
    SchemaPage,
)
from headwater_client.new_dataset import NewDataset
from headwater_client.transport.connection import Connection, dataset_path, decoded, given


class DatasetCalls(Connection):
    """Registers, lists and deletes datasets, and changes their schemas."""

    async def create_dataset(self, new: NewDataset, *, idempotency_key: str | None = None) -> Dataset:
        """Registers a dataset."""
        return decoded(Dataset, await self._create("/datasets", new.document(), idempotency_key))

    async def get_dataset(self, dataset: Dataset | str) -> Dataset:
        """The current state of a dataset."""
        return decoded(Dataset, await self._get(dataset_path(dataset)))

    def datasets(self, *, labels: Mapping[str, str] | None = None) -> AsyncGenerator[Dataset, None]:
        """The tenant's datasets by name, those that have all of the labels."""
        selectors = [f"{key}:{value}" for key, value in (labels or {}).items()]
        return self._items("/datasets", DatasetPage, {"label": selectors or None})

    async def delete_dataset(self, dataset: Dataset | str) -> None:
        """Deletes a dataset and cancels its jobs."""
        await self._send("DELETE", dataset_path(dataset))

    async def rename_dataset(
        self, dataset: Dataset | str, name: str, *, version: int | None = None
    ) -> Dataset:
        """Gives the dataset another name; it keeps its id. Raises Problem `dataset-exists` if the name is in use.

        `version`: see `change_schema`.
        """
        return await self._change_dataset(dataset, {"name": name}, version)

    async def change_schema(
        self,
        dataset: Dataset | str,
        *changes: SchemaChange,
        version: int | None = None,
        cascade: Literal["pause"] | None = None,
        dry_run: bool = False,
    ) -> Dataset:
        """Applies all of the changes to the schema in order, or none. Returns the dataset.

        `cascade`: "pause" to pause the views, sources, exports and webhooks that the change breaks. Without it such a
        change raises Problem `schema-in-use`. `version` is the version for which the changes were made; by default that
        of the value `dataset`, or the current one. Raises Problem `precondition-failed` if the
        dataset is at another version. `dry_run`: nothing is changed, and the dataset is returned as it would be; with
        `cascade`, its member `broken` is what would break.
        """
        options = given({"cascade": cascade, "dry_run": "true" if dry_run else None})
        return await self._change_dataset(dataset, {"changes": changes}, version, options)

    async def change_retention(
        self, dataset: Dataset | str, retention: CreateRetention | None, *, version: int | None = None
    ) -> Dataset:
        """Changes the retention of the dataset's feed; None never expires. `version`: see `change_schema`."""
        return await self._change_dataset(dataset, {"changelog": {"retention": retention}}, version)

    async def change_vocabulary(
        self, dataset: Dataset | str, vocabulary: CreateVocabulary, *, version: int | None = None
    ) -> Dataset:
        """Changes the names of what the dataset's feed adds to rows. `version`: see `change_schema`."""
        return await self._change_dataset(dataset, {"changelog": {"vocabulary": vocabulary}}, version)

    async def change_services(
        self, dataset: Dataset | str, services: Mapping[str, Any], *, version: int | None = None
    ) -> Dataset:
        """Changes the table services of the dataset, in their JSON form. `version`: see `change_schema`."""
        return await self._change_dataset(dataset, {"services": services}, version)

    async def change_compression(
        self, dataset: Dataset | str, compression: FileCompression, *, version: int | None = None
    ) -> Dataset:
        """Changes how new files of the dataset are compressed. `version`: see `change_schema`."""
        return await self._change_dataset(dataset, {"compression": compression}, version)

    async def change_keep_seconds(
        self, dataset: Dataset | str, keep_seconds: int, *, version: int | None = None
    ) -> Dataset:
        """Changes how long the tombstones of later deletes last; 0 leaves none. `version`: see `change_schema`."""
        return await self._change_dataset(dataset, {"deletes": {"keep_seconds": keep_seconds}}, version)

    async def change_description(
        self, dataset: Dataset | str, description: str | None, *, version: int | None = None
    ) -> Dataset:
        """Changes what the dataset is described as; None removes it. `version`: see `change_schema`; it stays."""
        return await self._change_dataset(dataset, {"description": description}, version)

    async def change_labels(
        self, dataset: Dataset | str, labels: Mapping[str, str], *, version: int | None = None
    ) -> Dataset:
        """Replaces the labels of the dataset. `version`: see `change_schema`; it stays."""
        return await self._change_dataset(dataset, {"labels": labels}, version)

    async def _change_dataset(
        self,
        dataset: Dataset | str,
        change: dict[str, Any],
        version: int | None,
        options: Mapping[str, Any] | None = None,
    ) -> Dataset:
        if version is None:
            found = dataset if isinstance(dataset, Dataset) else await self.get_dataset(dataset)
            version = found.version
        query = f"?{urlencode(options)}" if options else ""
        return decoded(Dataset, await self._change(dataset_path(dataset) + query, change, f'"{version}"'))

    async def get_schema(self, dataset: Dataset | str, schema_id: int | None = None) -> DatasetSchema:
        """The current schema of a dataset, with what names its columns, or an earlier one."""
        answer = await self._get(f"{dataset_path(dataset)}/schema", given({"id": schema_id}))
        return decoded(DatasetSchema, answer)

    def schemas(self, dataset: Dataset | str) -> AsyncGenerator[DatasetSchema, None]:
        """All schemas of the dataset, the latest first."""
        return self._items(f"{dataset_path(dataset)}/schemas", SchemaPage)
