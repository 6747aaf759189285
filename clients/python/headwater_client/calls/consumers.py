"""Consumers: positions in a feed that the service stores, with leases for their members."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any
from urllib.parse import quote

import httpx2
import msgspec

from headwater_client.calls.reading.reads import ReadCalls
from headwater_client.models import (
    ChangesPage,
    ConsumerPage,
    CreateLease,
    Dataset,
    FeedConsumer,
    Lease,
    MaxLag,
)
from headwater_client.problem import Problem
from headwater_client.transport.connection import dataset_path, decoded, given
from headwater_client.transport.pages import JSON
from headwater_client.transport.walk import FeedSince


class ConsumerCalls(ReadCalls):
    """Manages consumers and reads with them."""

    async def create_consumer(
        self,
        dataset: Dataset | str,
        name: str,
        *,
        offset: FeedSince | None = None,
        since_version: int | None = None,
        since_time: datetime | None = None,
        max_lag: MaxLag | None = None,
    ) -> FeedConsumer:
        """Creates a consumer. Raises Problem `precondition-failed` if there is already one of this name.

        It starts at `offset`, by default `earliest`, or at the first change of `since_version` or `since_time` or
        later. `snapshot` starts with the rows of the latest version, which the changes after it follow.
        """
        position = _position(offset, since_version, since_time) or {"offset": "earliest"}
        return await self._put(dataset, name, {**position, "max_lag": max_lag}, {"If-None-Match": "*"})

    async def get_consumer(self, dataset: Dataset | str, name: str) -> FeedConsumer:
        """The current state of a consumer."""
        return decoded(FeedConsumer, await self._get(_path(dataset, name)))

    def consumers(self, dataset: Dataset | str) -> AsyncGenerator[FeedConsumer, None]:
        """All consumers of the feed by name, including those of webhooks, exports and views."""
        return self._items(f"{dataset_path(dataset)}/consumers", ConsumerPage)

    async def commit(
        self,
        dataset: Dataset | str,
        consumer: FeedConsumer,
        offset: FeedSince | None = None,
        *,
        since_version: int | None = None,
        since_time: datetime | None = None,
        lease: Lease | None = None,
        reset: bool = False,
    ) -> FeedConsumer:
        """Commits all changes before `offset`, which is a page's `next_since`. Returns the consumer.

        Instead of `offset`, the position can be the first change of `since_version` or `since_time` or later.
        `consumer` is its state when that page was read. Raises Problem `precondition-failed` if it has changed since,
        `lease-lost` if another member holds it; TypeError for the name of a consumer. `reset` allows a lower offset.
        """
        tag = _tag(consumer)
        position = _position(offset, since_version, since_time)
        change = {**position, "reset": reset} | ({} if lease is None else {"lease": lease.token})
        return await self._put(dataset, consumer.name, change, {"If-Match": tag})

    async def bound_consumer(
        self, dataset: Dataset | str, consumer: FeedConsumer, max_lag: MaxLag | None
    ) -> FeedConsumer:
        """Changes the limit of the consumer's lag; None is no limit. Raises as `commit` does."""
        tag = _tag(consumer)
        return await self._put(dataset, consumer.name, {"max_lag": max_lag}, {"If-Match": tag})

    async def delete_consumer(self, dataset: Dataset | str, consumer: FeedConsumer | str) -> None:
        """Deletes a consumer, which then protects no changes from expiry."""
        name = consumer.name if isinstance(consumer, FeedConsumer) else consumer
        await self._send("DELETE", _path(dataset, name))

    async def lease_consumer(
        self,
        dataset: Dataset | str,
        name: str,
        *,
        member: str,
        seconds: int = 60,
        lease: Lease | None = None,
    ) -> Lease:
        """Leases a consumer, or extends the lease that is passed.

        Raises Problem `consumer-leased` if another member holds it, with `until` and `retry_after_seconds`.
        """
        new = CreateLease(member=member, seconds=seconds, token=None if lease is None else lease.token)
        # Without a token, a repeated request would end the lease of the first one, which does no harm.
        answer = await self._send(
            "POST",
            f"{_path(dataset, name)}/lease",
            body=msgspec.json.encode(new),
            headers={"Content-Type": JSON},
            repeatable=True,
        )
        return decoded(Lease, answer)

    async def release_consumer(self, dataset: Dataset | str, name: str, lease: Lease) -> None:
        """Releases the lease of a consumer."""
        params = {"token": lease.token}
        await self._send("DELETE", f"{_path(dataset, name)}/lease", params=params, repeatable=True)

    async def consume(
        self,
        dataset: Dataset | str,
        name: str,
        *,
        start: FeedSince | None = None,
        since_version: int | None = None,
        since_time: datetime | None = None,
        member: str | None = None,
        lease_seconds: int = 60,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        partitions: Sequence[str] | None = None,
        limit: int = 1_000,
        follow: bool = True,
        poll_seconds: int = 25,
    ) -> AsyncGenerator[ChangesPage, None]:
        """Pages of the feed from the consumer's position, each committed when the next one is requested.

        A reader that fails between two pages gets the last one again: every change is delivered at least once. A
        missing consumer is created at `start`, by default `earliest`, or at the first change of `since_version` or
        `since_time` or later; `snapshot` starts with the rows of the latest version. With `member` the consumer is
        leased for `lease_seconds` after each page (more than `poll_seconds`, and more than the processing of a page
        takes): other members get Problem `consumer-leased`, and this one gets `lease-lost` if its lease has expired
        and another member has taken it.
        """
        position = _position(start, since_version, since_time)
        consumer = await self._get_or_create(dataset, name, position)
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

    async def _get_or_create(
        self, dataset: Dataset | str, name: str, position: Mapping[str, Any]
    ) -> FeedConsumer:
        try:
            return await self.create_consumer(dataset, name, **position)
        except Problem as problem:
            if problem.code != "precondition-failed":
                raise
        return await self.get_consumer(dataset, name)

    async def _put(
        self, dataset: Dataset | str, name: str, change: dict[str, Any], headers: dict[str, str]
    ) -> FeedConsumer:
        answer = await self._send(
            "PUT",
            _path(dataset, name),
            body=msgspec.json.encode(change),
            headers={"Content-Type": JSON, **headers},
            # The condition prevents that it is committed twice.
            repeatable=True,
        )
        return decoded(FeedConsumer, answer)


class _Turn:
    """One member's reading of a consumer from page to page."""

    def __init__(
        self,
        calls: ConsumerCalls,
        dataset: Dataset | str,
        consumer: FeedConsumer,
        member: str | None,
        lease_seconds: int,
    ) -> None:
        self._calls = calls
        self._dataset = dataset
        self._member = member
        self._lease_seconds = lease_seconds
        self._lease: Lease | None = None
        self._extend_at = 0.0
        self._consumer = consumer

    @classmethod
    async def begin(
        cls,
        calls: ConsumerCalls,
        dataset: Dataset | str,
        consumer: FeedConsumer,
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
    def offset(self) -> FeedSince:
        """The position of the consumer."""
        return self._consumer.offset

    async def done(self, next_since: FeedSince) -> None:
        """Commits a page and extends the lease."""
        if next_since != self.offset:
            self._consumer = await self._commit(next_since)
        if self._member is not None and time.monotonic() > self._extend_at:
            await self._hold(self._member)

    async def end(self) -> None:
        """Releases the lease."""
        if self._lease is not None:
            # The lease expires by itself.
            with suppress(Problem, httpx2.TransportError):
                await self._calls.release_consumer(self._dataset, self._consumer.name, self._lease)

    async def _hold(self, member: str) -> None:
        self._lease = await self._calls.lease_consumer(
            self._dataset, self._consumer.name, member=member, seconds=self._lease_seconds, lease=self._lease
        )
        self._extend_at = time.monotonic() + self._lease_seconds / 3

    async def _commit(self, offset: FeedSince) -> FeedConsumer:
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


def _tag(consumer: FeedConsumer) -> str:
    """The ETag of the state that a change is made for. Raises TypeError."""
    if not isinstance(consumer, FeedConsumer):
        raise TypeError(
            f"expected a FeedConsumer, whose revision the change is made for, got {type(consumer).__name__}: "
            "pass what get_consumer, create_consumer or commit returned"
        )
    return f'"{consumer.revision}"'


def _position(offset: FeedSince | None, version: int | None, at: datetime | None) -> dict[str, Any]:
    return given({"offset": offset, "since_version": version, "since_time": at})


def _path(dataset: Dataset | str, name: str) -> str:
    return f"{dataset_path(dataset)}/consumers/{quote(name, safe='')}"
