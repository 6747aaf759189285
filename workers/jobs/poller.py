"""Polls Postgres for waiting work, so that a lost notification costs seconds and never a job."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from app.format.errors import Unavailable
from workers.jobs.runner import Runner

_log = logging.getLogger(__name__)
_DATASETS_PER_POLL = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class PollSource:
    """Work of one kind: `find` returns at most a number of tenants and datasets that have some, for the runner."""

    find: Callable[[int], Iterable[tuple[str, str]]]
    runner: Runner


class Poller:
    """Polls every `poll_seconds` until stopped. `alive` is called after each poll that reached the database."""

    def __init__(
        self, sources: Sequence[PollSource], *, poll_seconds: float, alive: Callable[[], None] = lambda: None
    ) -> None:
        self._sources = sources
        self._poll_seconds = poll_seconds
        self._alive = alive

    def run(self, stop: threading.Event) -> None:
        """Polls until `stop` is set."""
        while True:
            polled = [self._polled(each) for each in self._sources]
            # A worker that cannot find one of its kinds of work does not count as alive.
            if all(polled):
                self._report_alive()
            if stop.wait(self._poll_seconds):
                return

    def _polled(self, source: PollSource) -> bool:
        """Wakes the runner of a source for the work there is. False if the poll failed, which stops no other source."""
        try:
            for tenant_id, dataset_id in source.find(_DATASETS_PER_POLL):
                source.runner.wake(tenant_id, dataset_id)
        except Unavailable:
            _log.warning("the database is out of reach; polling again in %.1f s", self._poll_seconds)
            return False
        except Exception:
            _log.exception("a poll failed; polling again in %.1f s", self._poll_seconds)
            return False
        return True

    def _report_alive(self) -> None:
        try:
            self._alive()
        except Unavailable:
            _log.warning("the database is out of reach; polling again in %.1f s", self._poll_seconds)
        except Exception:
            _log.exception("the worker could not report itself alive; it will in %.1f s", self._poll_seconds)
