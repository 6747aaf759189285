"""Gathers the samples of the service once an interval, in the process that leads."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from app.features.monitoring.repository.leaders import LeaderStore
from app.features.monitoring.values import Sample

_log = logging.getLogger(__name__)
GATHER_TASK: Final = "metrics"
"""The task of the process that gathers."""
# The leader may miss a round before another process leads, and no more.
_LEASE_ROUNDS: Final = 2.5

# A part that takes long rests for this multiple of its time, so that no part takes more than a fiftieth of a processor.
_RESTS: Final = 50

Reader = Callable[[], Sequence[Sample]]
"""Reads the samples of a part of the service. It takes a few seconds at most."""


class SamplePart(msgspec.Struct, frozen=True, kw_only=True):
    """What is read together. `rounds`: it is read in one of this number of rounds, or more seldom if it takes long."""

    read: Reader
    rounds: int = 1


class Gather:
    """The samples of the process that leads; no samples in all others. Safe to use from any number of threads."""

    def __init__(
        self,
        parts: Mapping[str, SamplePart],
        leaders: LeaderStore,
        owner: str,
        *,
        every_seconds: float,
        listeners: Sequence[Callable[[Sequence[Sample]], None]] = (),
    ) -> None:
        """`owner`: names this process. `listeners`: called with the samples of each round, one after another."""
        self._parts = parts
        self._leaders = leaders
        self._owner = owner
        self._every_seconds = every_seconds
        self._lease_seconds = _LEASE_ROUNDS * every_seconds
        self._listeners = listeners
        self._latest: dict[str, Sequence[Sample]] = {}
        self._samples: tuple[Sample, ...] = ()
        self._ends = 0.0
        self._round = 0
        self._next: dict[str, int] = {}

    def run(self) -> None:
        """One round. A part that cannot be read has no samples until it can; the others have theirs."""
        began = time.monotonic()
        if not self._leaders.lead(GATHER_TASK, self._owner, lease_seconds=self._lease_seconds):
            self._samples, self._latest, self._round, self._next = (), {}, 0, {}
            return
        for name, part in self._parts.items():
            if self._round >= self._next.get(name, 0):
                self._read(name, part)
        self._round += 1
        took = time.monotonic() - began
        self._samples = (
            *(sample for samples in self._latest.values() for sample in samples),
            *(Sample("headwater_gather_ok", {"part": name}, name in self._latest) for name in self._parts),
            Sample("headwater_gather_seconds", {}, took),
        )
        self._ends = began + self._lease_seconds
        for listener in self._listeners:
            listener(self._samples)

    def samples(self) -> Sequence[Sample]:
        """Those of the latest round, if this process has led lately."""
        return self._samples if time.monotonic() < self._ends else ()

    def _read(self, name: str, part: SamplePart) -> None:
        began, rounds = time.monotonic(), 1
        try:
            self._latest[name] = part.read()
            rounds = part.rounds
        except Exception as error:
            if self._latest.pop(name, None) is not None or self._round == 0:
                message = "the metrics of %s cannot be read (%s: %s); the others go on"
                _log.warning(message, name, type(error).__name__, error)
        rests = math.ceil(_RESTS * (time.monotonic() - began) / self._every_seconds)
        self._next[name] = self._round + max(rounds, rests)
