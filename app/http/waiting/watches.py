"""Looking once for everybody who waits for the same dataset."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Generic, TypeAlias, TypeVar

from app.format.errors import Unavailable
from app.http.threads import Threads
from app.http.waiting.wakeups import Wakeups

# A ring may be lost, so there is a look this often in any case.
LOOK_AGAIN_SECONDS: Final = 1.0

_Wanted = TypeVar("_Wanted")
_Found = TypeVar("_Found")

Look: TypeAlias = Callable[[str, str, Sequence[_Wanted]], Sequence[_Found | None]]
"""Called in a thread with tenant, dataset and what is waited for: what it found of each, None if that is not there."""


class Watches(Generic[_Wanted, _Found]):
    """Who waits for what of which dataset. Belongs to the event loop: every method is called on its thread.

    However many wait for a dataset, it is looked at once after each ring of its bell, and once a second without one.
    """

    def __init__(
        self,
        wakeups: Wakeups,
        threads: Threads,
        look: Look[_Wanted, _Found],
        *,
        gather_seconds: float = 0.0,
    ) -> None:
        """`gather_seconds`: how long whoever has just come waits for others, to be looked for together."""
        self._wakeups = wakeups
        self._threads = threads
        self._look = look
        self._gather_seconds = gather_seconds
        self._open: dict[tuple[str, str], _Watch[_Wanted, _Found]] = {}

    @contextmanager
    def join(self, tenant_id: str, dataset_id: str) -> Iterator[Watcher[_Wanted, _Found]]:
        """A place among those who wait for this dataset."""
        key = (tenant_id, dataset_id)
        watch = self._open.get(key)
        if watch is None:
            watch = _Watch(self._wakeups, self._threads, self._look, key, self._gather_seconds)
            self._open[key] = watch
        watch.watchers += 1
        try:
            yield Watcher(watch)
        finally:
            watch.watchers -= 1
            if not watch.watchers:
                del self._open[key]
                watch.close()


class Watcher(Generic[_Wanted, _Found]):
    """One who waits, again and again."""

    def __init__(self, watch: _Watch[_Wanted, _Found]) -> None:
        self._watch = watch
        # The last look that is known to have been for this one, too. What was known before it came may be old.
        self._seen = -1

    async def wait(self, wanted: _Wanted, seconds: float) -> _Found | None:
        """What a look found; None if none did in so many seconds, or when the process stops.

        A look that has begun since the last one whose answer was given here counts as a ring: nothing that was
        announced is missed between two waits. Raises what a look raises, but for Unavailable: then it is tried again.
        """
        watch, came = self._watch, self._watch.begun
        waiting = watch.add(wanted, unseen=self._seen != came)
        try:
            async with asyncio.timeout(seconds):
                self._seen, found = await waiting
                return found
        except TimeoutError:
            if waiting.done() and not waiting.cancelled():
                # It was told in the same turn of the loop in which its time ran out.
                self._seen, found = waiting.result()
                return found
            if watch.ended > came:
                self._seen = watch.ended
            return None
        finally:
            watch.remove(waiting)


class _Watch(Generic[_Wanted, _Found]):
    """Everybody who waits for one dataset. Looks are numbered from 1 and made one after another."""

    def __init__(
        self,
        wakeups: Wakeups,
        threads: Threads,
        look: Look[_Wanted, _Found],
        key: tuple[str, str],
        gather_seconds: float,
    ) -> None:
        self.watchers = 0
        self.begun = 0
        self.ended = 0
        self._wakeups = wakeups
        self._threads = threads
        self._look = look
        self._key = key
        self._gather_seconds = gather_seconds
        self._waiting: dict[asyncio.Future[tuple[int, _Found | None]], _Wanted] = {}
        self._bell = wakeups.hang(*key)
        self._looking: asyncio.Task[None] | None = None
        self._gathering: asyncio.TimerHandle | None = None

    def add(self, wanted: _Wanted, *, unseen: bool) -> asyncio.Future[tuple[int, _Found | None]]:
        """The number of a look, and what it found. `unseen`: one is to be made soon."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[tuple[int, _Found | None]] = loop.create_future()
        self._waiting[waiting] = wanted
        if unseen and self._gathering is None:
            self._gathering = loop.call_later(self._gather_seconds, self._bell.ring)
        if self._looking is None:
            self._looking = loop.create_task(self._look_for_all(), name="watch")
        return waiting

    def remove(self, waiting: asyncio.Future[tuple[int, _Found | None]]) -> None:
        del self._waiting[waiting]

    def close(self) -> None:
        """Nobody will wait any more."""
        self._wakeups.take_down(*self._key, self._bell)
        self._bell.ring()

    async def _look_for_all(self) -> None:
        try:
            while self._waiting and not self._wakeups.closed:
                await self._bell.wait(LOOK_AGAIN_SECONDS)
                # Counted also if nobody is there: whoever comes then knows that the ring was taken.
                self.begun += 1
                if self._gathering is not None:
                    self._gathering.cancel()
                    self._gathering = None
                await self._answer(dict(self._waiting))
        finally:
            self._looking = None
            for waiting in self._waiting:
                _tell(waiting, (self.ended, None))

    async def _answer(self, asked: dict[asyncio.Future[tuple[int, _Found | None]], _Wanted]) -> None:
        if not asked:
            return
        try:
            found = await self._threads.run(self._look, *self._key, list(asked.values()))
        except Unavailable:
            # Thousands who are told so and come back at once are the last thing that a database needs.
            return
        except Exception as error:
            for waiting in asked:
                if not waiting.done():
                    waiting.set_exception(error)
            return
        self.ended = self.begun
        for waiting, one in zip(asked, found, strict=True):
            if one is not None:
                _tell(waiting, (self.ended, one))


def _tell(waiting: asyncio.Future[_Found], found: _Found) -> None:
    # One that was cancelled, or has timed out meanwhile, is told no more.
    if not waiting.done():
        waiting.set_result(found)
