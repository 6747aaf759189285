"""One poll of a dataset for all requests that wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Generic, TypeAlias, TypeVar
from zlib import crc32

from app.http.waiting.request_credential import RequestCredential
from app.http.waiting.subscriptions import Subscriptions
from app.infra.errors import Unavailable

# How often a dataset is polled for what is not announced, and for everything while no announcements arrive.
POLL_SECONDS: Final = 1.0
# How often it is polled otherwise: an announcement may still be lost.
ANNOUNCED_POLL_SECONDS: Final = 10.0

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

Fetch: TypeAlias = Callable[[str, str, Sequence[_Item]], Awaitable[Sequence[_Result | None]]]
"""Called with tenant, dataset and the awaited items. Returns the result for each; None if not there yet."""


class SharedPolls(Generic[_Item, _Result]):
    """The waiting requests by dataset. Belongs to the event loop: every method is called on its thread.

    A dataset is polled once after each notification, and without one every few seconds, for all who wait for it.
    """

    def __init__(
        self,
        subscriptions: Subscriptions,
        fetch: Fetch[_Item, _Result],
        *,
        is_silent: Callable[[_Item], bool] = lambda _: False,
        gather_seconds: float = 0.0,
    ) -> None:
        """`is_silent`: whether what is awaited may come without a notification.

        `gather_seconds`: how long the poll for a new request is delayed, so that later requests share it.
        """
        self._wakeups = subscriptions
        self._fetch = fetch
        self._is_silent = is_silent
        self._gather_seconds = gather_seconds
        self._open: dict[tuple[str, str], _SharedPoll[_Item, _Result]] = {}

    @contextmanager
    def join(
        self, tenant_id: str, dataset_id: str, credential: RequestCredential
    ) -> Iterator[Waiter[_Item, _Result]]:
        """A waiter for this dataset, valid until the context ends. `credential`: that of the request."""
        credential.shows(dataset_id)
        key = (tenant_id, dataset_id)
        poll = self._open.get(key)
        if poll is None:
            poll = _SharedPoll(self._wakeups, self._fetch, self._is_silent, key, self._gather_seconds)
            self._open[key] = poll
        poll.waiters += 1
        try:
            yield Waiter(poll, credential)
        finally:
            poll.waiters -= 1
            if not poll.waiters:
                del self._open[key]
                poll.close()


class Waiter(Generic[_Item, _Result]):
    """A request that waits for a dataset, possibly several times in a row."""

    def __init__(self, poll: _SharedPoll[_Item, _Result], credential: RequestCredential) -> None:
        self._poll = poll
        self._credential = credential
        # The last poll whose result this waiter has received. Results of polls before it joined may be outdated.
        self._seen = -1

    async def wait(self, item: _Item, seconds: float) -> _Result | None:
        """The result of a poll; None if no poll has one within `seconds`, or when the process stops.

        If a poll has started since the last result that this waiter received, another one is made at once, so no
        notification between two waits is missed. Raises CredentialEnded, and what a poll raises, except Unavailable:
        then it is repeated.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + seconds
        while True:
            valid_seconds = await self._credential.seconds_to_wait()
            remaining_seconds = deadline - clock()
            result = await self._wait(item, min(remaining_seconds, valid_seconds))
            if result is not None or clock() >= deadline or self._poll.stopped:
                return result

    async def _wait(self, item: _Item, seconds: float) -> _Result | None:
        poll, polls_before = self._poll, self._poll.polls_started
        waiting = poll.add(item, urgent=self._seen != polls_before)
        try:
            async with asyncio.timeout(seconds) as limit:
                with self._credential.waking(limit):
                    self._seen, result = await waiting
                    return result
        except TimeoutError:
            if waiting.done() and not waiting.cancelled():
                # The result arrived in the same iteration of the event loop as the timeout.
                self._seen, result = waiting.result()
                return result
            if poll.polls_ended > polls_before:
                self._seen = poll.polls_ended
            return None
        finally:
            poll.remove(waiting)


class _SharedPoll(Generic[_Item, _Result]):
    """The poll that the waiters of one dataset share. Polls are numbered from 1 and run one after another."""

    def __init__(
        self,
        subscriptions: Subscriptions,
        fetch: Fetch[_Item, _Result],
        is_silent: Callable[[_Item], bool],
        key: tuple[str, str],
        gather_seconds: float,
    ) -> None:
        self.waiters = 0
        self.polls_started = 0
        self.polls_ended = 0
        self._wakeups = subscriptions
        self._fetch = fetch
        self._is_silent = is_silent
        self._key = key
        # Where in its seconds a tenant is polled: its datasets together, and not all tenants at once.
        self._phase = crc32(key[0].encode()) / 2**32 * ANNOUNCED_POLL_SECONDS
        self._gather_seconds = gather_seconds
        self._waiting: dict[asyncio.Future[tuple[int, _Result | None]], _Item] = {}
        self._subscription = subscriptions.subscribe(*key)
        self._polling: asyncio.Task[None] | None = None
        self._gathering: asyncio.TimerHandle | None = None

    @property
    def stopped(self) -> bool:
        """Whether the process is about to stop."""
        return self._wakeups.closed

    def add(self, item: _Item, *, urgent: bool) -> asyncio.Future[tuple[int, _Result | None]]:
        """A future with the number of a poll and its result. `urgent`: a poll is required soon."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[tuple[int, _Result | None]] = loop.create_future()
        self._waiting[waiting] = item
        if urgent and self._gathering is None:
            self._gathering = loop.call_later(self._gather_seconds, self._subscription.notify)
        if self._polling is None:
            self._polling = loop.create_task(self._poll_for_all(), name="shared-poll")
        return waiting

    def remove(self, waiting: asyncio.Future[tuple[int, _Result | None]]) -> None:
        del self._waiting[waiting]

    def close(self) -> None:
        """Unsubscribes and ends the polling; called when the last waiter has left."""
        self._wakeups.unsubscribe(*self._key, self._subscription)
        self._subscription.notify()

    async def _poll_for_all(self) -> None:
        clock = asyncio.get_running_loop().time
        try:
            while self._waiting and not self._wakeups.closed:
                await self._subscription.wait(self._seconds_to_poll(clock()))
                # Counted even without waiters: the next waiter then knows that the notification was consumed.
                self.polls_started += 1
                if self._gathering is not None:
                    self._gathering.cancel()
                    self._gathering = None
                await self._answer(dict(self._waiting))
        finally:
            self._polling = None
            for waiting in self._waiting:
                _deliver(waiting, (self.polls_ended, None))

    def _seconds_to_poll(self, now: float) -> float:
        """How long the next poll waits for a notification. Requests that were just answered count: they wait again."""
        has_notices = self._wakeups.hears and not any(map(self._is_silent, self._waiting.values()))
        every = ANNOUNCED_POLL_SECONDS if has_notices else POLL_SECONDS
        return every - (now + self._phase) % every

    async def _answer(self, requests: dict[asyncio.Future[tuple[int, _Result | None]], _Item]) -> None:
        if not requests:
            return
        try:
            results = await self._fetch(*self._key, list(requests.values()))
        except Unavailable:
            # Waiters keep waiting: thousands of clients that retry at once would overload the database.
            return
        except Exception as error:
            for waiting in requests:
                if not waiting.done():
                    waiting.set_exception(error)
            return
        self.polls_ended = self.polls_started
        for waiting, one in zip(requests, results, strict=True):
            if one is not None:
                _deliver(waiting, (self.polls_ended, one))


def _deliver(waiting: asyncio.Future[_Result], result: _Result) -> None:
    # A waiter that was cancelled or has timed out meanwhile receives nothing.
    if not waiting.done():
        waiting.set_result(result)
