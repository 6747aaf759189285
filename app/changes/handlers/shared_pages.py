"""Pages of the feed, read and encoded once for all concurrent requests for the same page."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from app.catalog.values import Dataset
from app.changes.positions import StartingPosition
from app.changes.service.read_changes import FeedQuery
from app.changes.values import ChangePage
from app.http.limits.threads import Threads

_KEPT_BYTES: Final = 8 * 1024 * 1024
_KEPT_SECONDS: Final = 2.0

Encode: TypeAlias = Callable[[ChangePage], bytes]
ReadPage: TypeAlias = Callable[[Dataset, int | StartingPosition, FeedQuery], ChangePage]
_Key: TypeAlias = tuple[str, str, tuple[int, int], int | StartingPosition, FeedQuery, Encode]


@dataclass(frozen=True, kw_only=True, slots=True)
class EncodedPage:
    """A page as it is sent, and where it stands in the feed (see ChangePage). `empty`: it has no event."""

    content: bytes
    empty: bool
    next_since: int
    pending: int
    earliest: int
    schema_id: int
    complete: bool


class SharedPages:
    """Belongs to the event loop: its methods are called on its thread.

    Requests share a page if they have read the dataset in the same state before: at the same version, and with the same
    beginning of the feed. So the page has every change that any of them can know of.
    """

    def __init__(
        self,
        read: ReadPage,
        threads: Threads,
        *,
        kept_bytes: int = _KEPT_BYTES,
        kept_seconds: float = _KEPT_SECONDS,
    ) -> None:
        """`kept_bytes`, `kept_seconds`: size and age in seconds of the pages that are cached for later requests."""
        self._read = read
        self._threads = threads
        self._kept_bytes = kept_bytes
        self._kept_seconds = kept_seconds
        self._under_way: dict[_Key, asyncio.Task[EncodedPage]] = {}
        self._kept: OrderedDict[_Key, EncodedPage] = OrderedDict()
        self._bytes = 0

    async def page(
        self, dataset: Dataset, since: int | StartingPosition, query: FeedQuery, encode: Encode
    ) -> EncodedPage:
        """The page from `since` on, as of when `dataset` was read or later. Raises what reading raises.

        A cancelled request does not cancel the page for the others.
        """
        state = (dataset.version, dataset.earliest_offset)
        key = (dataset.tenant_id, dataset.id, state, since, query, encode)
        if (kept := self._kept.get(key)) is not None:
            return kept
        reading = self._under_way.get(key)
        if reading is None:
            reading = asyncio.create_task(self._page(key, dataset), name="page")
            self._under_way[key] = reading
            reading.add_done_callback(_retrieve_exception)
        return await asyncio.shield(reading)

    async def _page(self, key: _Key, dataset: Dataset) -> EncodedPage:
        *_, since, query, encode = key
        try:
            page = await self._threads.run(_encoded, self._read, dataset, since, query, encode)
        finally:
            del self._under_way[key]
        self._keep(key, page)
        return page

    def _keep(self, key: _Key, page: EncodedPage) -> None:
        self._kept[key] = page
        self._bytes += len(page.content)
        asyncio.get_running_loop().call_later(self._kept_seconds, self._drop, key)
        while self._bytes > self._kept_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: _Key) -> None:
        if (page := self._kept.pop(key, None)) is not None:
            self._bytes -= len(page.content)


def _encoded(
    read: ReadPage, dataset: Dataset, since: int | StartingPosition, query: FeedQuery, encode: Encode
) -> EncodedPage:
    page = read(dataset, since, query)
    return EncodedPage(
        content=encode(page),
        empty=not page.events.table.num_rows,
        next_since=page.next_since,
        pending=page.pending,
        earliest=page.earliest,
        schema_id=page.schema_id,
        complete=page.complete,
    )


def _retrieve_exception(reading: asyncio.Task[EncodedPage]) -> None:
    # Otherwise asyncio logs a warning if all requests for the page were cancelled.
    if not reading.cancelled():
        reading.exception()
