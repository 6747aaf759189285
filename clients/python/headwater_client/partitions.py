"""Partitions that are done, and their reports to a Hive metastore."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime

import msgspec

from headwater_client.connection import Connection, dataset_path, decoded
from headwater_client.pages import JSON
from headwater_client.values import Dataset


class PartitionMark(msgspec.Struct, frozen=True, kw_only=True):
    """A partition: the version that changed it last, and the version that completed it, if it is done."""

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
    """The progress of reports to the dataset's Hive table. `error`: the last failure, retried at `retry_at`."""

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
    """Marks partitions as done, and follows their events."""

    async def end_partitions(
        self, dataset: Dataset | str, partitions: Sequence[str]
    ) -> tuple[PartitionMark, ...]:
        """Marks partitions, by their paths, as done: they get no more input. All of them are marked, or none."""
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
        """Events of partitions, from event `since` on, up to the last one."""
        path = f"{dataset_path(dataset)}/partitions/events"
        while True:
            page: _Events = decoded(_Events, await self._get(path, {"since": since, "limit": 1_000}))
            for item in page.events:
                yield item
            since = page.next_since
            if not page.pending:
                return

    async def metastore_report(self, dataset: Dataset | str) -> MetastoreReport:
        """The progress of reports to the Hive table in the dataset's `services.metastore`."""
        found: MetastoreReport = decoded(
            MetastoreReport, await self._get(f"{dataset_path(dataset)}/metastore")
        )
        return found
