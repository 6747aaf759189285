"""The client for programs that run in an event loop of asyncio."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

import httpx2

from headwater_client.calls.reading.read_jobs import ReadOptions
from headwater_client.models import Dataset
from headwater_client.operations import Operations
from headwater_client.tables import AsyncTable
from headwater_client.transport.driver import AsyncDriver, credentials

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class AsyncHeadwater(Operations):
    """A connection to the service with one credential, for use with `await` and `async for`.

    It has the methods of `Headwater`, which describes them.
    """

    def __init__(self, url: str, api_key: str, *, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        driver = AsyncDriver(url, api_key, transport)
        super().__init__(driver)
        self._connections = driver

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The client for HEADWATER_URL and HEADWATER_API_KEY. Raises LookupError unless both are set."""
        return cls(*credentials(environment))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def table(
        self, dataset: Dataset | str, *, wait: float = 600, **options: Unpack[ReadOptions]
    ) -> AsyncTable:
        """A dataset as a table, at a version, for pyarrow, pandas, polars or DuckDB: see `ReadOptions`."""
        return AsyncTable(self, dataset, wait, options)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._connections.aclose()
