"""Datasets and their schemas."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from functools import partial
from typing import Any

import msgspec

from headwater_client.connection import Connection, dataset_path, decoded
from headwater_client.feed import walk_list
from headwater_client.pages import JSON
from headwater_client.schema_changes import SchemaChange
from headwater_client.values import (
    Dataset,
    DatasetPage,
    NewDataset,
    Retention,
    Schema,
    SchemaPage,
)


class DatasetCalls(Connection):
    """Registers, lists and deletes datasets, and changes their schemas."""

    async def create_dataset(self, new: NewDataset) -> Dataset:
        """Registers a dataset."""
        body = msgspec.json.encode(new.document())
        answer = await self._send("POST", "/datasets", body=body, headers={"Content-Type": JSON})
        return decoded(Dataset, answer)

    async def get_dataset(self, dataset: Dataset | str) -> Dataset:
        """The current state of a dataset."""
        return decoded(Dataset, await self._get(dataset_path(dataset)))

    async def datasets(self) -> AsyncGenerator[Dataset, None]:
        """The tenant's datasets by name."""
        decode = partial(decoded, DatasetPage)
        async for page in walk_list(partial(self._get, "/datasets"), decode, {"page_size": 1_000}):
            for item in page.items:
                yield item

    async def delete_dataset(self, dataset: Dataset | str) -> None:
        """Deletes a dataset and cancels its jobs."""
        await self._send("DELETE", dataset_path(dataset))

    async def change_schema(
        self, dataset: Dataset | str, *changes: SchemaChange, version: int | None = None
    ) -> Dataset:
        """Applies all of the changes to the schema in order, or none. Returns the dataset.

        `version` is the version for which the changes were made; by default that of the value `dataset`, or the current
        one. Raises Problem `precondition-failed` if the dataset is at another version.
        """
        return await self._change(dataset, {"changes": changes}, version)

    async def change_retention(
        self, dataset: Dataset | str, retention: Retention | None, *, version: int | None = None
    ) -> Dataset:
        """Changes the retention of the dataset's feed; None never expires. `version`: see `change_schema`."""
        return await self._change(dataset, {"changelog": {"retention": retention}}, version)

    async def change_services(
        self, dataset: Dataset | str, services: Mapping[str, Any], *, version: int | None = None
    ) -> Dataset:
        """Changes the table services of the dataset, in their JSON form. `version`: see `change_schema`."""
        return await self._change(dataset, {"services": services}, version)

    async def _change(self, dataset: Dataset | str, change: dict[str, Any], version: int | None) -> Dataset:
        if version is None:
            found = dataset if isinstance(dataset, Dataset) else await self.get_dataset(dataset)
            version = found.version
        answer = await self._send(
            "PATCH",
            dataset_path(dataset),
            body=msgspec.json.encode(change),
            headers={"Content-Type": JSON, "If-Match": f'"{version}"'},
        )
        return decoded(Dataset, answer)

    async def get_schema(self, dataset: Dataset | str, schema_id: int | None = None) -> Schema:
        """The current schema of a dataset, or an earlier one."""
        params: dict[str, Any] = {} if schema_id is None else {"id": schema_id}
        answer = await self._get(f"{dataset_path(dataset)}/schema", params)
        return decoded(Schema, answer)

    async def schemas(self, dataset: Dataset | str) -> AsyncGenerator[Schema, None]:
        """All schemas of the dataset, the latest first."""
        fetch = partial(self._get, f"{dataset_path(dataset)}/schemas")
        async for page in walk_list(fetch, partial(decoded, SchemaPage), {"page_size": 1_000}):
            for item in page.items:
                yield item
