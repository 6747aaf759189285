"""Polls Postgres for waiting work, so that a lost notification costs seconds and never a job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from workers.jobs.runner import Runner

_DATASETS_PER_POLL = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class PollSource:
    """Work of one kind: `find` returns at most a number of tenants and datasets that have some, for the runner."""

    find: Callable[[int], Iterable[tuple[str, str]]]
    runner: Runner
    datasets_max: int = _DATASETS_PER_POLL


class Poller:
    """Finds work. `alive` is called after each poll that reached the database."""

    def __init__(self, sources: Sequence[PollSource], *, alive: Callable[[], None] = lambda: None) -> None:
        self._sources = sources
        self._alive = alive

    def run(self) -> None:
        """One poll of all sources. Raises the exceptions of those that failed, once the others were polled."""
        failures = [failure for failure in map(_polled, self._sources) if failure is not None]
        if failures:
            # A worker that cannot find one of its kinds of work does not count as alive.
            raise failures[0]
        self._alive()


def _polled(source: PollSource) -> Exception | None:
    """Wakes the runner of a source for the work there is. Returns the exception of a poll that failed."""
    try:
        for tenant_id, dataset_id in source.find(source.datasets_max):
            source.runner.wake(tenant_id, dataset_id)
    except Exception as error:
        return error
    return None
