"""Pages of the feed, read and encoded once for all requests for the same page."""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeAlias

import msgspec

from app.core.catalog.values import Dataset
from app.core.changes.positions import FeedPosition, SnapshotPosition
from app.core.changes.schemas import commits_json
from app.core.changes.service.read_changes import FeedQuery
from app.core.changes.values import ChangePage
from app.http.limits.threads import Threads
from app.infra.sharing.byte_cache import ByteCache
from app.infra.sharing.single_flight import SingleFlight, landed

_KEPT_BYTES: Final = 32 * 1024 * 1024
_KEPT_SECONDS: Final = 2.0
_SETTLED_SECONDS: Final = 60.0
# A key without its query, and a page without events.
_PAGE_BYTES: Final = 1_536

Encode: TypeAlias = Callable[[ChangePage], bytes]
ReadPage: TypeAlias = Callable[[Dataset, FeedPosition, FeedQuery], ChangePage]
# The tenant, the dataset and its state: for a settled page the digest of its definition, and whether the feed begins
# before the page.
_Key: TypeAlias = tuple[str, str, tuple[int, int] | tuple[bytes, bool], FeedPosition, FeedQuery, Encode]


@dataclass(frozen=True, kw_only=True, slots=True)
class EncodedPage:
    """A page as it is sent, and where it stands in the feed (see ChangePage). `empty`: it has no event."""

    content: bytes
    empty: bool
    position: int | SnapshotPosition
    pending: int
    earliest: int
    schema_id: int
    complete: bool
    watermark: datetime | None = None
    commits: str = ""
    """Those of its changes that have metadata, as JSON; empty if there are none."""

    @property
    def settled(self) -> bool:
        """Whether it ends before the head, or where the request says: then no commit adds a change to it."""
        return self.pending > 0 or self.complete


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kept:
    """A page in the cache, since `since` in seconds of the event loop, until `expiry` drops it."""

    page: EncodedPage
    since: float
    expiry: asyncio.TimerHandle


class SharedPages:
    """Belongs to the event loop: its methods are called on its thread.

    Requests share a page if they have read the dataset in the same state before: at the same version, and with the same
    beginning of the feed. So the page has every change that any of them can know of.

    A page that is settled is the same at every later version of the same definition, but for what it states of the
    feed. So it is cached for longer. It is returned only while the feed still begins before it. A request that read the
    dataset some time ago does not know where the feed begins now, and gets only pages that were read just now.
    """

    def __init__(
        self,
        read: ReadPage,
        threads: Threads,
        *,
        kept_bytes: int = _KEPT_BYTES,
        kept_seconds: float = _KEPT_SECONDS,
        settled_seconds: float = _SETTLED_SECONDS,
    ) -> None:
        """`kept_bytes`, `kept_seconds`, `settled_seconds`: the memory of the pages that are cached for later requests,
        and their age, in seconds.
        """
        self._read = read
        self._threads = threads
        self._kept_seconds = kept_seconds
        self._settled_seconds = settled_seconds
        self._reads = SingleFlight[_Key, asyncio.Task[EncodedPage]]()
        self._cache = ByteCache[_Key, _Kept](kept_bytes, on_drop=lambda entry: entry.expiry.cancel())

    async def page(
        self,
        dataset: Dataset,
        since: FeedPosition,
        query: FeedQuery,
        encode: Encode,
        *,
        fresh: bool = False,
    ) -> EncodedPage:
        """The page from `since` on, as of when `dataset` was read or later. Raises what reading raises.

        `fresh`: whether the dataset was read for this request. A cancelled request does not cancel the page for the
        others.
        """
        state = (dataset.version, dataset.earliest_offset)
        key = (dataset.tenant_id, dataset.id, state, since, query, encode)
        if (cached_page := self._find(key, math.inf)) is not None:
            return cached_page
        if (settled_key := _settled_key(dataset, since, query, encode)) is not None:
            cached_page = self._find(settled_key, math.inf if fresh else self._kept_seconds)
            if cached_page is not None:
                return _as_of(cached_page, dataset)
        read = self._reads.join(
            key, lambda: asyncio.create_task(self._page(key, settled_key, dataset), name="page")
        )
        return await landed(read)

    async def _page(self, key: _Key, settled_key: _Key | None, dataset: Dataset) -> EncodedPage:
        """Reads the page and keeps it: under `settled_key` if there is such a key and the page is settled."""
        *_, since, query, encode = key
        page = await self._threads.run(_encoded, self._read, dataset, since, query, encode)
        if settled_key is not None and page.settled:
            self._keep(settled_key, page, self._settled_seconds)
        else:
            self._keep(key, page, self._kept_seconds)
        return page

    def _find(self, key: _Key, seconds: float) -> EncodedPage | None:
        """The cached page, unless it is older than this."""
        entry = self._cache.get(key)
        if entry is None or asyncio.get_running_loop().time() - entry.since > seconds:
            return None
        return entry.page

    def _keep(self, key: _Key, page: EncodedPage, seconds: float) -> None:
        # A filter may be longer than the page.
        size_bytes = len(page.content) + len(page.commits) + len(msgspec.msgpack.encode(key[4])) + _PAGE_BYTES
        loop = asyncio.get_running_loop()
        expiry = loop.call_later(seconds, self._cache.take, key)
        self._cache.put(key, _Kept(page=page, since=loop.time(), expiry=expiry), size_bytes)


def _as_of(page: EncodedPage, dataset: Dataset) -> EncodedPage:
    """A settled page with what is stated of the feed as it is now."""
    pending = max(dataset.next_offset - page.position, 0) if isinstance(page.position, int) else page.pending
    return replace(page, pending=pending, earliest=dataset.earliest_offset)


def _settled_key(dataset: Dataset, since: FeedPosition, query: FeedQuery, encode: Encode) -> _Key | None:
    """The key of a settled page; None for a position that depends on the state of the feed, or is no longer in it."""
    if not isinstance(since, int) or since < dataset.earliest_offset:
        return None
    # Everything in the definition counts: the name, the names of columns and the schema are part of pages. The first
    # half of a pair that the feed begins with is not.
    definition = hashlib.sha256(msgspec.msgpack.encode(dataset.definition)).digest()
    state = (definition, since > dataset.earliest_offset)
    return dataset.tenant_id, dataset.id, state, since, query, encode


def _encoded(
    read: ReadPage, dataset: Dataset, since: FeedPosition, query: FeedQuery, encode: Encode
) -> EncodedPage:
    page = read(dataset, since, query)
    return EncodedPage(
        content=encode(page),
        empty=not page.events.table.num_rows,
        position=page.position,
        pending=page.pending,
        earliest=page.earliest,
        schema_id=page.schema_id,
        complete=page.complete,
        watermark=page.watermark,
        commits=commits_json(page),
    )
