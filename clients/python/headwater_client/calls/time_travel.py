"""Named versions, restores of earlier versions, and comparisons of two versions."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote

from headwater_client.calls.jobs import JobCalls
from headwater_client.models import (
    CreateNamedVersion,
    CreateRestore,
    CreateRollback,
    Dataset,
    Job,
    NamedVersion,
    NamedVersionPage,
)
from headwater_client.transport.connection import dataset_path, made_up

Kind = Literal["savepoints", "tags"]
Point = int | str | datetime
"""A version, the name of a tag or savepoint, or a time, which means the last version committed by then."""


class TimeTravelCalls(JobCalls):
    """Names versions, and restores datasets to them."""

    async def create_savepoint(
        self,
        dataset: Dataset | str,
        name: str,
        *,
        version: int | None = None,
        keep_seconds: int | None = None,
        idempotency_key: str | None = None,
        wait: float = 0,
    ) -> Job:
        """Keeps a version (by default the latest when the job runs) for restores, and the feed since then."""
        body = CreateNamedVersion(name=name, version=version, keep_seconds=keep_seconds)
        return await self._ask(dataset, "savepoints", body, idempotency_key, wait)

    async def create_tag(
        self,
        dataset: Dataset | str,
        name: str,
        *,
        version: int | None = None,
        keep_seconds: int | None = None,
        idempotency_key: str | None = None,
        wait: float = 0,
    ) -> Job:
        """Names a version (by default the latest when the job runs) for reads."""
        body = CreateNamedVersion(name=name, version=version, keep_seconds=keep_seconds)
        return await self._ask(dataset, "tags", body, idempotency_key, wait)

    def savepoints(self, dataset: Dataset | str) -> AsyncGenerator[NamedVersion, None]:
        """The savepoints of a dataset by name."""
        return self._named(dataset, "savepoints")

    def tags(self, dataset: Dataset | str) -> AsyncGenerator[NamedVersion, None]:
        """The tags of a dataset by name."""
        return self._named(dataset, "tags")

    async def delete_savepoint(self, dataset: Dataset | str, name: str) -> None:
        """Ends a savepoint: its version is kept no longer than the history says."""
        await self._delete(dataset, "savepoints", name)

    async def delete_tag(self, dataset: Dataset | str, name: str) -> None:
        """Ends a tag: its version is kept no longer than the history says."""
        await self._delete(dataset, "tags", name)

    async def restore(
        self,
        dataset: Dataset | str,
        to: Point,
        *,
        expected_version: int | None = None,
        idempotency_key: str | None = None,
        wait: float = 0,
    ) -> Job:
        """Restores the rows of an earlier version, by a write whose changes are in the feed."""
        body = CreateRestore(**_point(to), expected_version=expected_version)
        return await self._ask(dataset, "restores", body, idempotency_key, wait)

    async def roll_back(
        self,
        dataset: Dataset | str,
        instants: int = 1,
        *,
        expected_version: int | None = None,
        idempotency_key: str | None = None,
        wait: float = 0,
    ) -> Job:
        """Undoes the newest versions that writes have made."""
        body = CreateRollback(instants=instants, expected_version=expected_version)
        return await self._ask(dataset, "rollbacks", body, idempotency_key, wait)

    async def compare(
        self,
        dataset: Dataset | str,
        since: Point | None = None,
        until: Point | None = None,
        *,
        idempotency_key: str | None = None,
        wait: float = 0,
    ) -> Job:
        """Compares two versions: the job's `result` has the changes from `since` to `until`, by default the latest."""
        body = {
            f"{side}_{name}": value
            for side, point in (("from", since), ("to", until))
            for name, value in _point(point).items()
        }
        return await self._ask(dataset, "comparisons", body, idempotency_key, wait)

    async def _ask(self, dataset: Dataset | str, what: str, body: Any, key: str | None, wait: float) -> Job:
        return await self._start(
            f"{dataset_path(dataset)}/{what}",
            body,
            idempotency_key=made_up(key),
            wait=wait,
        )

    def _named(self, dataset: Dataset | str, kind: Kind) -> AsyncGenerator[NamedVersion, None]:
        return self._items(f"{dataset_path(dataset)}/{kind}", NamedVersionPage)

    async def _delete(self, dataset: Dataset | str, kind: Kind, name: str) -> None:
        path = f"{dataset_path(dataset)}/{kind}/{quote(name, safe='')}"
        await self._send("DELETE", path)


def _point(point: Point | None) -> dict[str, Any]:
    match point:
        case None:
            return {}
        case datetime():
            return {"as_of": point}
        case str():
            return {"tag": point}
        case _:
            return {"version": point}
