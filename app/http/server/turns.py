"""In which order requests begin that were sent before the response of an earlier one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

_TURNS_MAX: Final = 4
"""The most such requests that begin in one round of the event loop."""


class Turns:
    """Lets connections go on, in the order in which they came, a few in each round of the event loop.

    A round thus ends soon, however many connections wait: what other connections do is part of the same rounds. It is
    used on the event loop only.
    """

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()

    def wait(self, go_on: Callable[[], None]) -> None:
        """Calls `go_on` in a later round."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._run)
        self._waiting.append(go_on)

    def _run(self) -> None:
        for _ in range(min(len(self._waiting), _TURNS_MAX)):
            self._waiting.popleft()()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._run)
