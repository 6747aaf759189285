"""Consumers: positions in a feed that the service stores, with leases for their members."""

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
    """The lag of a consumer: the number of changes that it has not committed, and the age of the oldest of them."""

    changes: int
    seconds: float


class MaxLag(msgspec.Struct, frozen=True, kw_only=True):
    """How far behind a consumer may be and still protect its unread changes from expiry; None is no limit."""

    changes: int | None = None
    seconds: int | None = None


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """The member that holds the lease of a consumer, and the end of the lease."""

    member: str
    until: datetime


class Consumer(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer: the changes before `offset` are processed. `revision` counts its updates.

    `expired`: some changes that it has not committed have expired. `kind` is `reader`; the service itself moves the
    positions of webhooks, exports and views.
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
    """A lease of a consumer at `offset`. Its token is part of commits."""

    token: str
    until: datetime
    offset: int
    revision: int


class ConsumerCalls(ReadCalls):
    """Manages consumers and reads with them."""

    async def create_consumer(
        self,
        dataset: Dataset | str,
        name: str,
        *,
        offset: Start = "earliest",
        max_lag: MaxLag | None = None,
    ) -> Consumer:
        """Creates a consumer. Raises Problem `precondition-failed` if there is already one of this name."""
        change = {"offset": offset, "max_lag": max_lag}
        return await self._put(dataset, name, change, {"If-None-Match": "*"})

    async def get_consumer(self, dataset: Dataset | str, name: str) -> Consumer:
        """The current state of a consumer."""
        return decoded(Consumer, await self._get(_path(dataset, name)))

    async def consumers(self, dataset: Dataset | str) -> AsyncGenerator[Consumer, None]:
        """All consumers of the feed by name, including those of webhooks, exports and views."""
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
        """Commits all changes before `offset`, which is a page's `next_since`. Returns the consumer.

        `consumer` is its state when that page was read. Raises Problem `precondition-failed` if it has changed since,
        `lease-lost` if another member holds it. `reset` allows a lower offset.
        """
        change = {"offset": offset, "reset": reset} | ({} if lease is None else {"lease": lease.token})
        return await self._put(dataset, consumer.name, change, {"If-Match": f'"{consumer.revision}"'})

    async def bound_consumer(
        self, dataset: Dataset | str, consumer: Consumer, max_lag: MaxLag | None
    ) -> Consumer:
        """Changes the limit of the consumer's lag; None is no limit."""
        headers = {"If-Match": f'"{consumer.revision}"'}
        return await self._put(dataset, consumer.name, {"max_lag": max_lag}, headers)

    async def delete_consumer(self, dataset: Dataset | str, consumer: Consumer | str) -> None:
        """Deletes a consumer, which then protects no changes from expiry."""
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
        """Leases a consumer, or extends the lease that is passed.

        Raises Problem `consumer-leased` if another member holds it, with `until` and `retry_after_seconds`.
        """
        body = {"member": member, "seconds": seconds} | ({} if lease is None else {"token": lease.token})
        # Without a token, a repeated request would end the lease of the first one, which does no harm.
        answer = await self._send(
            "POST",
            f"{_path(dataset, name)}/lease",
            body=msgspec.json.encode(body),
            headers={"Content-Type": JSON},
            repeatable=True,
        )
        return decoded(ConsumerLease, answer)

    async def release_consumer(self, dataset: Dataset | str, name: str, lease: ConsumerLease) -> None:
        """Releases the lease of a consumer."""
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
        """Pages of the feed from the consumer's position, each committed when the next one is requested.

        A reader that fails between two pages gets the last one again: every change is delivered at least once. A
        missing consumer is created at `start`. With `member` the consumer is leased for `lease_seconds` after each page
        (more than `poll_seconds`, and more than the processing of a page takes): other members get Problem
        `consumer-leased`, and this one gets `lease-lost` if its lease has expired and another member has taken it.
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
            # The condition prevents that it is committed twice.
            repeatable=True,
        )
        return decoded(Consumer, answer)


class _Turn:
    """One member's reading of a consumer from page to page."""

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
        """The position of the consumer."""
        return self._consumer.offset

    async def done(self, next_since: int) -> None:
        """Commits a page and extends the lease."""
        if next_since != self.offset:
            self._consumer = await self._commit(next_since)
        if self._member is not None and time.monotonic() > self._extend_at:
            await self._hold(self._member)

    async def end(self) -> None:
        """Releases the lease."""
        if self._lease is not None:
            # The lease expires by itself.
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
                # The response to the first attempt was lost.
                return found
            if found.offset != self.offset:
                raise
        # Its limits have changed, not its position.
        return await self._calls.commit(self._dataset, found, offset, lease=self._lease)


def _path(dataset: Dataset | str, name: str) -> str:
    return f"{dataset_path(dataset)}/consumers/{quote(name, safe='')}"
