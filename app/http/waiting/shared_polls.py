"""Looking once for everybody who waits for the same dataset."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Generic, TypeAlias, TypeVar

from app.format.errors import Unavailable
from app.http.threads import Threads
from app.http.waiting.subscriptions import Subscriptions

# A ring may be lost, so there is a look this often in any case.
POLL_SECONDS: Final = 1.0

_Wanted = TypeVar("_Wanted")
_Found = TypeVar("_Found")

Fetch: TypeAlias = Callable[[str, str, Sequence[_Wanted]], Sequence[_Found | None]]
"""Called in a thread with tenant, dataset and what is waited for: what it found of each, None if that is not there."""


class SharedPolls(Generic[_Wanted, _Found]):
    """Who waits for what of which dataset. Belongs to the event loop: every method is called on its thread.

    However many wait for a dataset, it is looked at once after each ring of its bell, and once a second without one.
    """

    def __init__(
        self,
        subscriptions: Subscriptions,
        threads: Threads,
        fetch: Fetch[_Wanted, _Found],
        *,
        gather_seconds: float = 0.0,
    ) -> None:
        """`gather_seconds`: how long whoever has just come waits for others, to be looked for together."""
        self._wakeups = subscriptions
        self._threads = threads
        self._fetch = fetch
        self._gather_seconds = gather_seconds
        self._open: dict[tuple[str, str], _SharedPoll[_Wanted, _Found]] = {}

    @contextmanager
    def join(self, tenant_id: str, dataset_id: str) -> Iterator[Waiter[_Wanted, _Found]]:
        """A place among those who wait for this dataset."""
        key = (tenant_id, dataset_id)
        poll = self._open.get(key)
        if poll is None:
            poll = _SharedPoll(self._wakeups, self._threads, self._fetch, key, self._gather_seconds)
            self._open[key] = poll
        poll.waiters += 1
        try:
            yield Waiter(poll)
        finally:
            poll.waiters -= 1
            if not poll.waiters:
                del self._open[key]
                poll.close()


class Waiter(Generic[_Wanted, _Found]):
    """One who waits, again and again."""

    def __init__(self, poll: _SharedPoll[_Wanted, _Found]) -> None:
        self._poll = poll
        # The last look that is known to have been for this one, too. What was known before it came may be old.
        self._seen = -1

    async def wait(self, wanted: _Wanted, seconds: float) -> _Found | None:
        """What a look found; None if none did in so many seconds, or when the process stops.

        A look that has begun since the last one whose answer was given here counts as a ring: nothing that was
        announced is missed between two waits. Raises what a look raises, but for Unavailable: then it is tried again.
        """
        poll, polls_before = self._poll, self._poll.polls_started
        waiting = poll.add(wanted, unseen=self._seen != polls_before)
        try:
            async with asyncio.timeout(seconds):
                self._seen, found = await waiting
                return found
        except TimeoutError:
            if waiting.done() and not waiting.cancelled():
                # It was told in the same turn of the loop in which its time ran out.
                self._seen, found = waiting.result()
                return found
            if poll.polls_ended > polls_before:
                self._seen = poll.polls_ended
            return None
        finally:
            poll.remove(waiting)


class _SharedPoll(Generic[_Wanted, _Found]):
    """Everybody who waits for one dataset. Looks are numbered from 1 and made one after another."""

    def __init__(
        self,
        subscriptions: Subscriptions,
        threads: Threads,
        fetch: Fetch[_Wanted, _Found],
        key: tuple[str, str],
        gather_seconds: float,
    ) -> None:
        self.waiters = 0
        self.polls_started = 0
        self.polls_ended = 0
        self._wakeups = subscriptions
        self._threads = threads
        self._fetch = fetch
        self._key = key
        self._gather_seconds = gather_seconds
        self._waiting: dict[asyncio.Future[tuple[int, _Found | None]], _Wanted] = {}
        self._subscription = subscriptions.subscribe(*key)
        self._polling: asyncio.Task[None] | None = None
        self._gathering: asyncio.TimerHandle | None = None

    def add(self, wanted: _Wanted, *, unseen: bool) -> asyncio.Future[tuple[int, _Found | None]]:
        """The number of a look, and what it found. `unseen`: one is to be made soon."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[tuple[int, _Found | None]] = loop.create_future()
        self._waiting[waiting] = wanted
        if unseen and self._gathering is None:
            self._gathering = loop.call_later(self._gather_seconds, self._subscription.notify)
        if self._polling is None:
            self._polling = loop.create_task(self._poll_for_all(), name="watch")
        return waiting

    def remove(self, waiting: asyncio.Future[tuple[int, _Found | None]]) -> None:
        del self._waiting[waiting]

    def close(self) -> None:
        """Nobody will wait any more."""
        self._wakeups.unsubscribe(*self._key, self._subscription)
        self._subscription.notify()

    async def _poll_for_all(self) -> None:
        try:
            while self._waiting and not self._wakeups.closed:
                await self._subscription.wait(POLL_SECONDS)
                # Counted also if nobody is there: whoever comes then knows that the ring was taken.
                self.polls_started += 1
                if self._gathering is not None:
                    self._gathering.cancel()
                    self._gathering = None
                await self._answer(dict(self._waiting))
        finally:
            self._polling = None
            for waiting in self._waiting:
                _deliver(waiting, (self.polls_ended, None))

    async def _answer(self, requests: dict[asyncio.Future[tuple[int, _Found | None]], _Wanted]) -> None:
        if not requests:
            return
        try:
            found = await self._threads.run(self._fetch, *self._key, list(requests.values()))
        except Unavailable:
            # Thousands who are told so and come back at once are the last thing that a database needs.
            return
        except Exception as error:
            for waiting in requests:
                if not waiting.done():
                    waiting.set_exception(error)
            return
        self.polls_ended = self.polls_started
        for waiting, one in zip(requests, found, strict=True):
            if one is not None:
                _deliver(waiting, (self.polls_ended, one))


def _deliver(waiting: asyncio.Future[_Found], found: _Found) -> None:
    # One that was cancelled, or has timed out meanwhile, is told no more.
    if not waiting.done():
        waiting.set_result(found)
