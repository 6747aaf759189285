"""Overviews of a table: its timeline, its files, its partitions, and its statistics."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from headwater_client.connection import Connection, dataset_path, decoded
from headwater_client.feed import walk_list
from headwater_client.values import Dataset, RowCounts


class Instant(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a timeline: an attempt to change the dataset.

    `actor`: the id of the API key that requested it, None for actions of the service. `parameters`: the options of the
    request. `error`: the problem document of the failure.
    """

    id: str
    action: str
    operation: str
    state: str
    job_id: str | None
    transaction_id: str | None
    actor: str | None
    actor_name: str | None
    writer_id: str | None
    batch_id: int | None
    parameters: dict[str, Any]
    version: int | None
    schema_id: int | None
    requested_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    rows: RowCounts
    files_added: int
    files_removed: int
    bytes_added: int
    bytes_removed: int
    first_offset: int | None
    last_offset: int | None
    error: dict[str, Any] | None


class ColumnBounds(msgspec.Struct, frozen=True, kw_only=True):
    """The statistics of a column in one file; None where unknown."""

    minimum: Any = None
    maximum: Any = None
    null_count: int | None = None


class TableFile(msgspec.Struct, frozen=True, kw_only=True):
    """A data file at a version. `live_rows`: those that no deletion vector has deleted."""

    name: str
    kind: str
    partition: str
    bucket: int
    file_group: str
    size_bytes: int
    rows: int
    live_rows: int
    checksum: str
    schema_id: int
    added_version: int
    written_version: int
    index: str | None
    statistics: dict[str, ColumnBounds] | None


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition at a version. `rows` is the number of visible rows if `exact`; otherwise there are also logs."""

    path: str
    values: dict[str, str | None]
    base_files: int
    logs: int
    postponed: int
    rows: int
    exact: bool
    log_rows: int
    postponed_rows: int
    size_bytes: int
    written_version: int
    written_at: datetime
    changed_version: int | None
    changed_at: datetime | None
    done_version: int | None
    done_at: datetime | None


class RowSums(msgspec.Struct, frozen=True, kw_only=True):
    """`live`: rows of base files that no deletion vector has deleted, which are the visible rows if `exact`."""

    live: int
    exact: bool
    deleted: int
    deleted_ratio: float
    in_logs: int
    postponed: int


class SizeClass(msgspec.Struct, frozen=True, kw_only=True):
    """Base files with fewer bytes than `below`, and at least those of the previous class."""

    below: int | None
    files: int
    size_bytes: int


class FileSums(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of files by kind, and of base files by size."""

    base: int
    logs: int
    postponed: int
    small: int
    sizes: tuple[SizeClass, ...]


class ByteSums(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes by kind, and the total `written` so far."""

    base: int
    logs: int
    postponed: int
    deletion_vectors: int
    indexes: int
    changelog: int
    written: int
    write_amplification: float | None


class ColumnSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A column in all base files; None where a file has no statistics."""

    name: str
    minimum: Any
    maximum: Any
    null_count: int | None


class TableStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of a table."""

    version: int
    committed_at: datetime | None
    rows: RowSums
    files: FileSums
    partitions: int
    file_groups: int
    size_bytes: ByteSums
    changelog: dict[str, int]
    versions: dict[str, Any]
    served_at: dict[str, datetime | None]
    consumers: dict[str, int | None]
    jobs: dict[str, int]
    columns: tuple[ColumnSummary, ...]


class InstantPage(msgspec.Struct, frozen=True, kw_only=True):
    """Instants, the latest request first."""

    items: tuple[Instant, ...]
    next_page_token: str | None


class FilePage(msgspec.Struct, frozen=True, kw_only=True):
    """Files of a version, in the order of their paths."""

    items: tuple[TableFile, ...]
    version: int
    next_page_token: str | None


class PartitionPage(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions of a version by path."""

    items: tuple[Partition, ...]
    version: int
    next_page_token: str | None


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
    ) -> AsyncGenerator[Instant, None]:
        """Attempts to change the dataset, the latest request first; of some kinds, or requested in [since, until)."""
        wanted = {
            "action": None if actions is None else list(actions),
            "state": None if states is None else list(states),
            "since_time": None if since is None else since.isoformat(),
            "until_time": None if until is None else until.isoformat(),
        }
        return self._walk(f"{dataset_path(dataset)}/timeline", InstantPage, wanted)

    def files(
        self,
        dataset: Dataset | str,
        *,
        version: int | None = None,
        tag: str | None = None,
        partition: str | None = None,
        kind: str | None = None,
        statistics: bool = False,
    ) -> AsyncGenerator[TableFile, None]:
        """The data files of a version, by default the latest; of one partition by its path, of one kind."""
        wanted = {
            "version": version,
            "tag": tag,
            "partition": partition,
            "kind": kind,
            "statistics": "true" if statistics else None,
        }
        return self._walk(f"{dataset_path(dataset)}/files", FilePage, wanted)

    def partitions(
        self, dataset: Dataset | str, *, version: int | None = None, tag: str | None = None
    ) -> AsyncGenerator[Partition, None]:
        """The partitions of a version, by default the latest."""
        wanted = {"version": version, "tag": tag}
        return self._walk(f"{dataset_path(dataset)}/partitions", PartitionPage, wanted)

    async def statistics(
        self, dataset: Dataset | str, *, columns: Sequence[str] | None = None
    ) -> TableStatistics:
        """Statistics of the table, with bounds and nulls of the named columns."""
        params = {} if columns is None else {"columns": list(columns)}
        found: TableStatistics = decoded(
            TableStatistics, await self._get(f"{dataset_path(dataset)}/statistics", params)
        )
        return found

    async def _walk(
        self, path: str, page_type: type[Any], wanted: dict[str, Any]
    ) -> AsyncGenerator[Any, None]:
        params = {"page_size": 1_000, **{name: value for name, value in wanted.items() if value is not None}}
        async for page in walk_list(partial(self._get, path), partial(decoded, page_type), params):
            for item in page.items:
                yield item
