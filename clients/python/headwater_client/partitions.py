"""Partitions that are done, and what a Hive metastore was told of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime

import msgspec

from headwater_client.connection import Connection, dataset_path, decoded
from headwater_client.pages import JSON
from headwater_client.values import Dataset


class PartitionMark(msgspec.Struct, frozen=True, kw_only=True):
    """A partition: the version that changed it last, and the one that has all of its data, if it is done."""

    path: str
    changed_version: int
    changed_at: datetime
    done_version: int | None
    done_at: datetime | None


class PartitionEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A partition was done (for a `reason`: `ended` or `idle`), or reopened, as of a version."""

    number: int
    kind: str
    partition: str
    version: int
    reason: str | None
    at: datetime


class MetastoreReport(msgspec.Struct, frozen=True, kw_only=True):
    """How far a dataset was reported to its Hive table. `error`: why it is not further, tried again at `retry_at`."""

    database: str
    table: str
    version: int | None
    head: int
    reported_at: datetime | None
    error: str | None
    failures: int
    retry_at: datetime | None


class _Marks(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[PartitionMark, ...]


class _Events(msgspec.Struct, frozen=True, kw_only=True):
    events: tuple[PartitionEvent, ...]
    next_since: int
    pending: int


class PartitionCalls(Connection):
    """Says which partitions are done, and follows what becomes of them."""

    async def end_partitions(
        self, dataset: Dataset | str, partitions: Sequence[str]
    ) -> tuple[PartitionMark, ...]:
        """Marks partitions, by their paths, as done: they get no more input. All of them, or none."""
        answer = await self._send(
            "POST",
            f"{dataset_path(dataset)}/partitions/done",
            body=msgspec.json.encode({"partitions": partitions}),
            headers={"Content-Type": JSON},
            repeatable=True,
        )
        found: _Marks = decoded(_Marks, answer)
        return found.items

    async def partition_events(
        self, dataset: Dataset | str, *, since: int = 0
    ) -> AsyncGenerator[PartitionEvent, None]:
        """What became of partitions, from event `since` on, up to the last that there is."""
        path = f"{dataset_path(dataset)}/partitions/events"
        while True:
            page: _Events = decoded(_Events, await self._get(path, {"since": since, "limit": 1_000}))
            for item in page.events:
                yield item
            since = page.next_since
            if not page.pending:
                return

    async def metastore_report(self, dataset: Dataset | str) -> MetastoreReport:
        """How far the dataset was reported to the Hive table that its `services.metastore` names."""
        found: MetastoreReport = decoded(
            MetastoreReport, await self._get(f"{dataset_path(dataset)}/metastore")
        )
        return found
