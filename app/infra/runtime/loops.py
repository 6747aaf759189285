"""The loops of a process: each repeats a round on a thread of its own, and goes on after every fault."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

_log = logging.getLogger(__name__)
# A loop stands still after this number of periods, and of seconds, without a round.
_PERIODS_MISSED_MAX: Final = 5
_STILL_SECONDS: Final = 30.0
# Failed rounds double the pause up to this, or to the period where that is longer.
_PAUSE_SECONDS_MAX: Final = 2.0
_DOUBLINGS_MAX: Final = 16
# A loop that is woken rests between its rounds for a multiple of the last one, within this bound, so that the rounds of
# a busy process are fewer and larger.
_REST_ROUNDS: Final = 4
_REST_SECONDS_MAX: Final = 0.2


class Pulse:
    """When a loop has last done a round. Safe to use from any number of threads."""

    def __init__(self, name: str, every_seconds: float, still_seconds: float = _STILL_SECONDS) -> None:
        self.name = name
        self._still_seconds = max(still_seconds, every_seconds * _PERIODS_MISSED_MAX)
        self._moved = time.monotonic()

    def moved(self) -> None:
        """A round was done just now."""
        self._moved = time.monotonic()

    def still_since(self) -> datetime | None:
        """The time of the last round, if the loop stands still; None if it moves."""
        seconds = time.monotonic() - self._moved
        return datetime.now(UTC) - timedelta(seconds=seconds) if seconds > self._still_seconds else None


class Loop:
    """Repeats a round until it is stopped."""

    def __init__(
        self,
        name: str,
        round_: Callable[[], object],
        *,
        every_seconds: float,
        woken: threading.Event | None = None,
        apart_seconds: float = 0.0,
        waits_first: bool = False,
        still_seconds: float = _STILL_SECONDS,
        pulse: Pulse | None = None,
    ) -> None:
        """`woken`: starts the next round when it is set, at once, or `apart_seconds` after the last one.

        Such a loop rests longer after a round that took long: four times as long as the round, 0.2 s at most.
        `waits_first`: the first round waits for its period.
        `pulse`: that of a round which takes long and reports by itself that it moves.
        """
        self.pulse = pulse or Pulse(name, every_seconds, still_seconds)
        self.woken = woken or threading.Event()
        self._round = round_
        self._every_seconds = every_seconds
        self._apart_seconds = apart_seconds
        self._waits_first = waits_first
        self._failures = 0
        self._rest_seconds = apart_seconds

    def run(self, stop: threading.Event) -> None:
        """Repeats the round until `stop` and `woken` are set."""
        if self._waits_first:
            self._wait(self._every_seconds)
        while not stop.is_set():
            self._wait(self._once())

    def _wait(self, seconds: float) -> None:
        round_end = time.monotonic()
        self.woken.wait(seconds)
        # What wakes the loop meanwhile shares the round.
        time.sleep(max(0.0, round_end + self._rest_seconds - time.monotonic()))
        self.woken.clear()

    def _once(self) -> float:
        """Does a round; returns the pause after it, in seconds."""
        began = time.monotonic()
        try:
            self._round()
        except Exception as error:
            self._failures += 1
            # The first failure is logged with its trace; later ones more and more rarely.
            if self._failures & (self._failures - 1) == 0:
                first = error if self._failures == 1 else None
                message = "the loop %s failed (%s: %s; %d in a row); it goes on"
                _log.warning(
                    message, self.pulse.name, type(error).__name__, error, self._failures, exc_info=first
                )
            pause = self._every_seconds * 2.0 ** min(self._failures, _DOUBLINGS_MAX)
            return min(pause, max(self._every_seconds, _PAUSE_SECONDS_MAX))
        if self._failures:
            _log.info("the loop %s works again", self.pulse.name)
        self._failures = 0
        self.pulse.moved()
        if self._apart_seconds:
            took = min(_REST_ROUNDS * (time.monotonic() - began), _REST_SECONDS_MAX)
            self._rest_seconds = max(self._apart_seconds, took)
        return self._every_seconds


class Loops:
    """All loops of a process."""

    def __init__(self) -> None:
        self._loops: list[Loop] = []
        self._pulses: list[Pulse] = []
        self._threads: list[threading.Thread] = []
        self._stop = threading.Event()

    def add_all(self, loops: Iterable[Loop]) -> None:
        """Adds loops. They start with the others."""
        for loop in loops:
            self.add(loop)

    def add(self, loop: Loop) -> None:
        """Adds a loop, before the start."""
        self._loops.append(loop)
        self._pulses.append(loop.pulse)

    def pulse(self, name: str, every_seconds: float) -> Pulse:
        """The pulse of a loop that is not on a thread of its own."""
        pulse = Pulse(name, every_seconds)
        self._pulses.append(pulse)
        return pulse

    def start(self) -> None:
        """Starts the loops."""
        for loop in self._loops:
            thread = threading.Thread(target=loop.run, args=(self._stop,), name=loop.pulse.name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self, timeout_seconds: float) -> None:
        """Ends the loops after their current rounds, and waits for them up to the timeout."""
        self._stop.set()
        for loop in self._loops:
            loop.woken.set()
        ends = time.monotonic() + timeout_seconds
        for thread in self._threads:
            thread.join(max(0.0, ends - time.monotonic()))

    def still(self) -> dict[str, datetime]:
        """The loops that stand still, by name, and the times of their last rounds."""
        times = {pulse.name: pulse.still_since() for pulse in self._pulses}
        return {name: since for name, since in times.items() if since is not None}
