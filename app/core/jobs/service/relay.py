"""The relay: sends the messages of the outbox to their receivers, soon after their commit."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final

from app.core.jobs.repository.outbox import OutboxStore
from app.core.jobs.values import OutboxMessage

_log = logging.getLogger(__name__)

_BATCH_MESSAGES_MAX: Final = 500
# Between two rounds. A message after a pause is sent at once; those of a busy service share rounds.
APART_SECONDS: Final = 0.02


class Relay:
    """Runs in a loop of its own, in any number of processes; each message is claimed by one of them.

    A message is sent at least once. Equal messages of one batch are sent once.
    """

    def __init__(self, outbox: OutboxStore, send: Callable[[Sequence[OutboxMessage]], None]) -> None:
        self._outbox = outbox
        self._send = send
        self.woken = threading.Event()

    def wake(self) -> None:
        """Starts the next round of the relay: a message was committed. Callable from any thread; returns at once."""
        self.woken.set()

    def run(self) -> None:
        """Sends all messages that wait. Raises the exception of Postgres or Redis, if one is out of reach: then the
        messages stay in the outbox, and receivers poll.
        """
        while self._relay_batch() == _BATCH_MESSAGES_MAX:
            pass

    def finish(self) -> None:
        """Sends what waits as the process stops: its loop has ended. What cannot be sent is left to other processes."""
        try:
            self.run()
        except Exception as error:
            _log.warning(
                "the last messages are left to other processes (%s: %s)", type(error).__name__, error
            )

    def _relay_batch(self) -> int:
        return self._outbox.relay(
            lambda messages: self._send(list(dict.fromkeys(messages))), _BATCH_MESSAGES_MAX
        )
