"""Whether the server of a database answers, and connections that do not wait for one that has fallen silent.

A server that stands still keeps its connections open, so that neither the network nor a timeout of its own ends a
statement.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any, Final

from psycopg import Connection, OperationalError

SILENCE_SECONDS: Final = 5.0
"""After this time without an answer to the smallest statement, the server counts as silent."""
BEAT_SECONDS: Final = 1.0
"""How often a process finds out whether the server answers."""
CONNECT_SECONDS: Final = 5
"""For how long a connection is awaited."""


class SilentError(OperationalError):
    """The server has not answered for too long. The connection is closed."""


class Answers:
    """Whether the server answers. Set by one thread (`Database.beat`), read by any."""

    def __init__(self) -> None:
        self.silent = False


class PatientConnection(Connection[Any]):
    """A connection that waits for its server for as long as `impatient` is false."""

    impatient: Callable[[], bool] = staticmethod(lambda: False)

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """As the driver does; raises SilentError, within the interval, once `impatient` is true."""
        return super().wait(self._watching(gen), interval, timeout)

    def _watching(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        try:
            state = next(gen)
            while True:
                ready = yield state
                # An answer that has arrived meanwhile counts.
                if not ready and self.impatient():
                    self.pgconn.finish()
                    raise SilentError("the server does not answer")
                state = gen.send(ready)
        except StopIteration as end:
            return end.value


def after_silence() -> Callable[[], bool]:
    """A function that is true once SILENCE_SECONDS have passed."""
    ends = time.monotonic() + SILENCE_SECONDS
    return lambda: time.monotonic() > ends
