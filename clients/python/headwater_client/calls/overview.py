"""Overviews of a table: its timeline, its files, its partitions, and its statistics."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime

from headwater_client.models import (
    Dataset,
    File,
    FilePage,
    Instant,
    InstantPage,
    Partition,
    PartitionPage,
    Statistics,
)
from headwater_client.transport.connection import Connection, dataset_path, decoded


class OverviewCalls(Connection):
    """Overviews of tables, without reading their rows."""

    def timeline(
        self,
        dataset: Dataset | str,
        *,
        actions: Sequence[str] | None = None,
        states: Sequence[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        version: int | None = None,
        from_version: int | None = None,
        to_version: int | None = None,
    ) -> AsyncGenerator[Instant, None]:
        """Attempts to change the dataset, the latest request first; of some kinds, or requested in [since, until).

        With `version` those of one version, with `from_version` and `to_version` those of a range, both ends included.
        """
        wanted = {
            "action": None if actions is None else list(actions),
            "state": None if states is None else list(states),
            "since_time": None if since is None else since.isoformat(),
            "until_time": None if until is None else until.isoformat(),
            "version": version,
            "from_version": from_version,
            "to_version": to_version,
        }
        return self._items(f"{dataset_path(dataset)}/timeline", InstantPage, wanted)

    def files(
        self,
        dataset: Dataset | str,
        *,
        version: int | None = None,
        tag: str | None = None,
        partition: str | None = None,
        kind: str | None = None,
        statistics: bool = False,
    ) -> AsyncGenerator[File, None]:
        """The data files of a version, by default the latest; of one partition by its path, of one kind."""
        wanted = {
            "version": version,
            "tag": tag,
            "partition": partition,
            "kind": kind,
            "statistics": "true" if statistics else None,
        }
        return self._items(f"{dataset_path(dataset)}/files", FilePage, wanted)

    def partitions(
        self, dataset: Dataset | str, *, version: int | None = None, tag: str | None = None
    ) -> AsyncGenerator[Partition, None]:
        """The partitions of a version, by default the latest."""
        wanted = {"version": version, "tag": tag}
        return self._items(f"{dataset_path(dataset)}/partitions", PartitionPage, wanted)

    async def statistics(self, dataset: Dataset | str, *, columns: Sequence[str] | None = None) -> Statistics:
        """Statistics of the table, with bounds and nulls of the named columns."""
        params = {} if columns is None else {"columns": list(columns)}
        return decoded(Statistics, await self._get(f"{dataset_path(dataset)}/statistics", params))
