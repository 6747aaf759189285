"""Consumers: positions in a feed that the service keeps, and members that take turns at one."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, Literal
from urllib.parse import quote

import httpx
import msgspec

from headwater_client.connection import dataset_path, decoded
from headwater_client.feed import walk_list
from headwater_client.pages import JSON, ChangePage
from headwater_client.problem import Problem
from headwater_client.reads import ReadCalls
from headwater_client.values import Dataset

Start = int | Literal["earliest", "now"]


class Lag(msgspec.Struct, frozen=True, kw_only=True):
    """How far a consumer is behind: changes that it has not committed, and the age of the oldest of them."""

    changes: int
    seconds: float


class MaxLag(msgspec.Struct, frozen=True, kw_only=True):
    """How far behind a consumer may be and still keep what it has not read; None is no bound."""

    changes: int | None = None
    seconds: int | None = None


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """The member that holds a consumer, and until when unless it extends its lease."""

    member: str
    until: datetime


class Consumer(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer: the changes before `offset` are done with. `revision` counts what became of it.

    `expired`: some changes that it has not committed are gone. `kind` is `reader`; those of webhooks, exports and views
    are theirs to move.
    """

    name: str
    kind: str
    revision: int
    offset: int
    head: int
    earliest: int
    lag: Lag
    max_lag: MaxLag | None
    expired: bool
    lease: Holder | None
    created_at: datetime
    moved_at: datetime


class ConsumerPage(msgspec.Struct, frozen=True, kw_only=True):
    """Consumers by name."""

    items: tuple[Consumer, ...]
    next_page_token: str | None


class ConsumerLease(msgspec.Struct, frozen=True, kw_only=True):
    """A hold on a consumer at `offset`. Its token goes with commits."""

    token: str
    until: datetime
    offset: int
    revision: int


class ConsumerCalls(ReadCalls):
    """Keeps positions in feeds."""

    async def create_consumer(
        self,
        dataset: Dataset | str,
        name: str,
        *,
        offset: Start = "earliest",
        max_lag: MaxLag | None = None,
    ) -> Consumer:
        """A new consumer. Raises Problem `precondition-failed` where there is one of the name."""
        change = {"offset": offset, "max_lag": max_lag}
        return await self._put(dataset, name, change, {"If-None-Match": "*"})

    async def get_consumer(self, dataset: Dataset | str, name: str) -> Consumer:
        """A consumer as it stands now."""
        return decoded(Consumer, await self._get(_path(dataset, name)))

    async def consumers(self, dataset: Dataset | str) -> AsyncGenerator[Consumer, None]:
        """Every position in the feed that is kept, by name; those of webhooks, exports and views, too."""
        fetch = partial(self._get, f"{dataset_path(dataset)}/consumers")
        async for page in walk_list(fetch, partial(decoded, ConsumerPage), {"page_size": 1_000}):
            for item in page.items:
                yield item

    async def commit(
        self,
        dataset: Dataset | str,
        consumer: Consumer,
        offset: Start,
        *,
        lease: ConsumerLease | None = None,
        reset: bool = False,
    ) -> Consumer:
        """The consumer with all changes before `offset` done with: a page's `next_since`.

        `consumer` is how it stood when that was read. Raises Problem `precondition-failed` where it has changed since,
        `lease-lost` where another member has come. `reset` lets it go back.
        """
        change = {"offset": offset, "reset": reset} | ({} if lease is None else {"lease": lease.token})
        return await self._put(dataset, consumer.name, change, {"If-Match": f'"{consumer.revision}"'})

    async def bound_consumer(
        self, dataset: Dataset | str, consumer: Consumer, max_lag: MaxLag | None
    ) -> Consumer:
        """The consumer with another bound on its lag; None for none."""
        headers = {"If-Match": f'"{consumer.revision}"'}
        return await self._put(dataset, consumer.name, {"max_lag": max_lag}, headers)

    async def delete_consumer(self, dataset: Dataset | str, consumer: Consumer | str) -> None:
        """Forgets a position. It keeps no changes any more."""
        name = consumer.name if isinstance(consumer, Consumer) else consumer
        await self._send("DELETE", _path(dataset, name))

    async def lease_consumer(
        self,
        dataset: Dataset | str,
        name: str,
        *,
        member: str,
        seconds: int = 60,
        lease: ConsumerLease | None = None,
    ) -> ConsumerLease:
        """Holds a consumer, or holds it longer where the lease is given.

        Raises Problem `consumer-leased` where another member holds it, with `until` and `retry_after_seconds`.
        """
        body = {"member": member, "seconds": seconds} | ({} if lease is None else {"token": lease.token})
        # Without a token the second of two requests would end the lease that the first one got: it does no harm.
        answer = await self._send(
            "POST",
            f"{_path(dataset, name)}/lease",
            body=msgspec.json.encode(body),
            headers={"Content-Type": JSON},
            repeatable=True,
        )
        return decoded(ConsumerLease, answer)

    async def release_consumer(self, dataset: Dataset | str, name: str, lease: ConsumerLease) -> None:
        """Lets go of a consumer."""
        params = {"token": lease.token}
        await self._send("DELETE", f"{_path(dataset, name)}/lease", params=params, repeatable=True)

    async def consume(
        self,
        dataset: Dataset | str,
        name: str,
        *,
        start: Start = "earliest",
        member: str | None = None,
        lease_seconds: int = 60,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        partitions: Sequence[str] | None = None,
        limit: int = 1_000,
        follow: bool = True,
        poll_seconds: int = 25,
    ) -> AsyncGenerator[ChangePage, None]:
        """Pages of the feed from where the consumer stands, each committed once the next one is asked for.

        So whoever dies between two pages gets the last one again: every change comes at least once. The consumer is
        made if there is none, at `start`. With `member` it is held, for `lease_seconds` after each page (more than
        `poll_seconds`, and than the work on a page takes): others that consume under the same name are refused with
        Problem `consumer-leased`, and this one with `lease-lost` where it was too slow and another has come.
        """
        consumer = await self._get_or_create(dataset, name, start)
        turn = await _Turn.begin(self, dataset, consumer, member, lease_seconds)
        try:
            pages = self.change_pages(
                dataset,
                since=turn.offset,
                columns=columns,
                where=where,
                partitions=partitions,
                limit=limit,
                follow=follow,
                poll_seconds=poll_seconds,
            )
            async for page in pages:
                yield page
                await turn.done(page.next_since)
        finally:
            await turn.end()

    async def _get_or_create(self, dataset: Dataset | str, name: str, start: Start) -> Consumer:
        try:
            return await self.create_consumer(dataset, name, offset=start)
        except Problem as problem:
            if problem.code != "precondition-failed":
                raise
        return await self.get_consumer(dataset, name)

    async def _put(
        self, dataset: Dataset | str, name: str, change: dict[str, Any], headers: dict[str, str]
    ) -> Consumer:
        answer = await self._send(
            "PUT",
            _path(dataset, name),
            body=msgspec.json.encode(change),
            headers={"Content-Type": JSON, **headers},
            # The condition keeps it from being done twice.
            repeatable=True,
        )
        return decoded(Consumer, answer)


class _Turn:
    """What one member does with a consumer from page to page."""

    def __init__(
        self,
        calls: ConsumerCalls,
        dataset: Dataset | str,
        consumer: Consumer,
        member: str | None,
        lease_seconds: int,
    ) -> None:
        self._calls = calls
        self._dataset = dataset
        self._member = member
        self._lease_seconds = lease_seconds
        self._lease: ConsumerLease | None = None
        self._extend_at = 0.0
        self._consumer = consumer

    @classmethod
    async def begin(
        cls,
        calls: ConsumerCalls,
        dataset: Dataset | str,
        consumer: Consumer,
        member: str | None,
        lease_seconds: int,
    ) -> _Turn:
        """Leases the consumer if there is a member."""
        turn = cls(calls, dataset, consumer, member, lease_seconds)
        if member is not None:
            await turn._hold(member)
            # Another member may have moved it before its lease ended.
            turn._consumer = await calls.get_consumer(dataset, consumer.name)
        return turn

    @property
    def offset(self) -> int:
        """Where the consumer stands."""
        return self._consumer.offset

    async def done(self, next_since: int) -> None:
        """Commits a page, and holds the consumer for another while."""
        if next_since != self.offset:
            self._consumer = await self._commit(next_since)
        if self._member is not None and time.monotonic() > self._extend_at:
            await self._hold(self._member)

    async def end(self) -> None:
        """Lets go of the consumer."""
        if self._lease is not None:
            # It runs out by itself.
            with suppress(Problem, httpx.TransportError):
                await self._calls.release_consumer(self._dataset, self._consumer.name, self._lease)

    async def _hold(self, member: str) -> None:
        self._lease = await self._calls.lease_consumer(
            self._dataset, self._consumer.name, member=member, seconds=self._lease_seconds, lease=self._lease
        )
        self._extend_at = time.monotonic() + self._lease_seconds / 3

    async def _commit(self, offset: int) -> Consumer:
        try:
            return await self._calls.commit(self._dataset, self._consumer, offset, lease=self._lease)
        except Problem as problem:
            if problem.code != "precondition-failed":
                raise
            found = await self._calls.get_consumer(self._dataset, self._consumer.name)
            if found.offset == offset:
                # The answer to the first attempt was lost.
                return found
            if found.offset != self.offset:
                raise
        # Its bounds have changed, not its position.
        return await self._calls.commit(self._dataset, found, offset, lease=self._lease)


def _path(dataset: Dataset | str, name: str) -> str:
    return f"{dataset_path(dataset)}/consumers/{quote(name, safe='')}"
