"""Where handlers run the synchronous use cases: bounded threads, so that the event loop never waits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread

THREADS_MAX: Final = 40
# Receivers of webhooks and their name servers take their time; they get these threads and no others.
OUTBOUND_THREADS_MAX: Final = 4

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Threads:
    """Runs calls in a limited number of threads; further calls wait without a thread."""

    def __init__(self, threads_max: int = THREADS_MAX) -> None:
        self._limiter = CapacityLimiter(threads_max)

    async def run(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """What the call returns or raises. A cancelled request waits for it: it may hold a transaction."""
        return await to_thread.run_sync(partial(function, *args, **kwargs), limiter=self._limiter)
