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
    """Registers, finds and ends datasets, and changes their schemas."""

    async def create_dataset(self, new: NewDataset) -> Dataset:
        """Registers a dataset."""
        body = msgspec.json.encode(new.document())
        answer = await self._send("POST", "/datasets", body=body, headers={"Content-Type": JSON})
        return decoded(Dataset, answer)

    async def get_dataset(self, dataset: Dataset | str) -> Dataset:
        """A dataset as it stands now."""
        return decoded(Dataset, await self._get(dataset_path(dataset)))

    async def datasets(self) -> AsyncGenerator[Dataset, None]:
        """The tenant's datasets by name."""
        decode = partial(decoded, DatasetPage)
        async for page in walk_list(partial(self._get, "/datasets"), decode, {"page_size": 1_000}):
            for item in page.items:
                yield item

    async def delete_dataset(self, dataset: Dataset | str) -> None:
        """Ends a dataset and cancels its jobs."""
        await self._send("DELETE", dataset_path(dataset))

    async def change_schema(
        self, dataset: Dataset | str, *changes: SchemaChange, version: int | None = None
    ) -> Dataset:
        """The dataset under its next schema: all of the changes one after another, or none.

        `version` is the one that the changes were made for; unless said, that of the value `dataset`, or the one that
        the dataset is at now. Raises Problem `precondition-failed` where it is at another.
        """
        return await self._change(dataset, {"changes": changes}, version)

    async def change_retention(
        self, dataset: Dataset | str, retention: Retention | None, *, version: int | None = None
    ) -> Dataset:
        """The dataset with its feed kept for another time; None keeps it for ever. `version`: see `change_schema`."""
        return await self._change(dataset, {"changelog": {"retention": retention}}, version)

    async def change_services(
        self, dataset: Dataset | str, services: Mapping[str, Any], *, version: int | None = None
    ) -> Dataset:
        """The dataset with other table services, as its JSON form has them. `version`: see `change_schema`."""
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
        """The schema of a dataset, or one that it had."""
        params: dict[str, Any] = {} if schema_id is None else {"id": schema_id}
        answer = await self._get(f"{dataset_path(dataset)}/schema", params)
        return decoded(Schema, answer)

    async def schemas(self, dataset: Dataset | str) -> AsyncGenerator[Schema, None]:
        """Every schema that the dataset had, the latest first."""
        fetch = partial(self._get, f"{dataset_path(dataset)}/schemas")
        async for page in walk_list(fetch, partial(decoded, SchemaPage), {"page_size": 1_000}):
            for item in page.items:
                yield item
