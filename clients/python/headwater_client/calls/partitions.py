"""Partitions that are done, and their reports to a Hive metastore."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import msgspec

from headwater_client.models import (
    Dataset,
    EndPartitions,
    MetastoreReport,
    PartitionEvent,
    PartitionEventPage,
    PartitionMark,
    PartitionMarkList,
)
from headwater_client.transport.connection import Connection, dataset_path, decoded
from headwater_client.transport.pages import JSON


class PartitionCalls(Connection):
    """Marks partitions as done, and follows their events."""

    async def end_partitions(
        self, dataset: Dataset | str, partitions: Sequence[str]
    ) -> tuple[PartitionMark, ...]:
        """Marks partitions, by their paths, as done: they get no more input. All of them are marked, or none."""
        answer = await self._send(
            "POST",
            f"{dataset_path(dataset)}/partitions/done",
            body=msgspec.json.encode(EndPartitions(partitions=tuple(partitions))),
            headers={"Content-Type": JSON},
            repeatable=True,
        )
        return decoded(PartitionMarkList, answer).items

    async def partition_events(
        self, dataset: Dataset | str, *, since: int = 0
    ) -> AsyncGenerator[PartitionEvent, None]:
        """Events of partitions, from event `since` on, up to the last one."""
        path = f"{dataset_path(dataset)}/partitions/events"
        while True:
            page = decoded(PartitionEventPage, await self._get(path, {"since": since, "limit": 1_000}))
            for item in page.events:
                yield item
            since = page.next_since
            if not page.pending:
                return

    async def metastore_report(self, dataset: Dataset | str) -> MetastoreReport:
        """The progress of reports to the Hive table in the dataset's `services.metastore`."""
        return decoded(MetastoreReport, await self._get(f"{dataset_path(dataset)}/metastore"))
