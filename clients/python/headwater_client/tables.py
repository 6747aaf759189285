"""Tables and feeds as values of pyarrow, pandas, polars and DuckDB, as coroutines over the operations."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import httpx2

from headwater_client.arrow import ArrowData
from headwater_client.calls.reading.read_jobs import ReadOptions
from headwater_client.html import html_table
from headwater_client.models import Dataset
from headwater_client.operations import Operations
from headwater_client.problem import Problem
from headwater_client.transport.pages import ChangeTable
from headwater_client.transport.walk import FeedSince

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_UNAVAILABLE: Final = frozenset({429, 502, 503, 504})
_PAUSE_SECONDS: Final = 2.0


class AsyncTableValues(ABC):
    """What is read as one table. All of its rows are in memory."""

    @abstractmethod
    async def _read(self) -> ArrowData: ...

    # The blocking client calls these methods of this class, so they are not overridden.
    async def read(self) -> ArrowData:
        """The rows as Arrow data. Raises Problem, JobUnfinished."""
        return await self._read()

    async def to_arrow(self) -> pa.Table:
        """A pyarrow table. Raises MissingPackage, Problem."""
        return (await self.read()).to_arrow()

    async def to_pandas(self) -> pd.DataFrame:
        """A pandas data frame. Raises MissingPackage, Problem."""
        return (await self.read()).to_pandas()

    async def to_polars(self) -> pl.DataFrame:
        """A polars data frame. Raises MissingPackage, Problem."""
        return (await self.read()).to_polars()

    async def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """A DuckDB relation, by default of the default connection. Raises MissingPackage, Problem."""
        return (await self.read()).to_duckdb(connection)


class AsyncTable(AsyncTableValues):
    """A dataset as a table: see `ReadOptions`."""

    def __init__(
        self, operations: Operations, dataset: Dataset | str, wait: float, options: ReadOptions
    ) -> None:
        self._operations = operations
        self._dataset = dataset
        self._wait = wait
        self._options = options

    async def _read(self) -> ArrowData:
        """The rows of a scan, or of a read job where that has to read them. Raises Problem, JobUnfinished."""
        scan = await self._operations.scan_unless_job(self._dataset, self._options)
        # Only the result of a job says of which types the columns of no rows are.
        if scan is not None and scan.parts:
            return await self._operations.read_scan(scan)
        return await self._operations.read(self._dataset, wait=self._wait, **self._options)

    def _repr_html_(self) -> str:
        """How notebooks show the table: what would be read. Nothing is requested."""
        name = self._dataset.name if isinstance(self._dataset, Dataset) else self._dataset
        options = [{"option": option, "value": value} for option, value in self._options.items()]
        how = "read with to_arrow(), to_pandas(), to_polars() or to_duckdb()"
        return html_table(f"table {name}: {how}", options, ("option", "value"))

    def changes(
        self,
        *,
        since: FeedSince | None = None,
        since_version: int | None = None,
        since_time: datetime | None = None,
        until: int | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        partitions: Sequence[str] | None = None,
    ) -> AsyncChanges:
        """The changes from a position on, up to `until`: see `change_pages`. The options of the table do not apply."""
        selection = _selection(since, since_version, since_time, until, columns, where, partitions)
        return AsyncChanges(self._operations, self._dataset, selection)


class AsyncChanges(AsyncTableValues):
    """The changes of a dataset as a table, whose columns `ChangeTable` lists."""

    def __init__(self, operations: Operations, dataset: Dataset | str, selection: Mapping[str, Any]) -> None:
        self._operations = operations
        self._dataset = dataset
        self._selection = selection

    async def _read(self) -> ArrowData:
        """The changes from the position on to `until`, or to what is the head when the last page is read."""
        pages = self._operations.change_tables(self._dataset, **self._selection)
        return ArrowData(parts=tuple([part async for page in pages for part in page.parts]))

    async def follow(
        self, *, poll_seconds: int = 25, outage_seconds: float = 3_600
    ) -> AsyncGenerator[ChangeTable, None]:
        """Pages of the changes, for ever: each is returned as soon as there is a change.

        Store the `next_since` of a page together with the result of the page, and resume with it as `since`. While the
        service cannot be reached, the iteration waits. Raises Problem, or httpx2.TransportError after an outage of
        `outage_seconds`; ValueError with `until`.
        """
        if "until" in self._selection:
            raise ValueError("following a feed has no end: leave `until` out")
        selection = dict(self._selection)
        available_at = time.monotonic()
        while True:
            try:
                pages = self._operations.change_tables(
                    self._dataset, follow=True, poll_seconds=poll_seconds, **selection
                )
                async with aclosing(pages):
                    async for page in pages:
                        selection = _resumed(selection, page.next_since)
                        yield page
                        available_at = time.monotonic()
            except (httpx2.TransportError, Problem) as error:
                lasting = isinstance(error, Problem) and error.status not in _UNAVAILABLE
                if lasting or time.monotonic() - available_at > outage_seconds:
                    raise
            await self._operations._driver.sleep(_PAUSE_SECONDS)


def _selection(
    since: FeedSince | None,
    since_version: int | None,
    since_time: datetime | None,
    until: int | None,
    columns: Sequence[str] | None,
    where: str | None,
    partitions: Sequence[str] | None,
) -> dict[str, Any]:
    """The parameters of `change_tables` that are set."""
    chosen = {
        "since": since,
        "since_version": since_version,
        "since_time": since_time,
        "until": until,
        "columns": columns,
        "where": where,
        "partitions": partitions,
    }
    return {name: value for name, value in chosen.items() if value is not None}


def _resumed(selection: Mapping[str, Any], since: FeedSince) -> dict[str, Any]:
    kept = {name: value for name, value in selection.items() if not name.startswith("since")}
    return {**kept, "since": since}
