"""The relay: sends the messages of the outbox to their receivers, soon after their commit."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from app.jobs.repository.outbox import OutboxStore
from app.jobs.values import OutboxMessage

_log = logging.getLogger(__name__)
_BATCH_MESSAGES_MAX: Final = 500


class Relay:
    """Runs in a thread of its own, in any number of processes; each message is claimed by one of them.

    A message is sent at least once. Equal messages of one batch are sent once.
    """

    def __init__(
        self, outbox: OutboxStore, send: Callable[[OutboxMessage], None], *, poll_seconds: float
    ) -> None:
        """`poll_seconds`: the longest time that a message waits if `wake` was not called for it."""
        self._outbox = outbox
        self._send = send
        self._poll_seconds = poll_seconds
        self._woken = threading.Event()
        self._failing = False

    def wake(self) -> None:
        """Notifies the relay that a message was committed. Callable from any thread; returns at once."""
        self._woken.set()

    def run(self, stop: threading.Event) -> None:
        """Relays until `stop` is set; a call of `wake` makes it check that at once."""
        while not stop.is_set():
            self._drain(stop)
            self._woken.wait(self._poll_seconds)
            self._woken.clear()

    def _drain(self, stop: threading.Event) -> None:
        try:
            while self._relay_batch() == _BATCH_MESSAGES_MAX and not stop.is_set():
                pass
        except Exception as error:
            # If Postgres or Redis is unavailable, the messages stay in the outbox, and receivers poll.
            if not self._failing:
                _log.warning("the relay cannot send (%s: %s); it keeps trying", type(error).__name__, error)
            self._failing = True
            return
        if self._failing:
            _log.info("the relay sends again")
        self._failing = False

    def _relay_batch(self) -> int:
        sent: set[tuple[str, str, str]] = set()

        def send_once(message: OutboxMessage) -> None:
            dataset_key = (message.topic, message.tenant_id, message.dataset_id)
            if dataset_key not in sent:
                self._send(message)
                sent.add(dataset_key)

        return self._outbox.relay(send_once, _BATCH_MESSAGES_MAX)
