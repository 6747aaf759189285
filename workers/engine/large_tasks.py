"""Large tasks: fewer run at a time than Spark has slots, so that rounds of small tasks always find one.

Spark divides slots fairly between pools, but ends no task for another one. So a tenant with enough slow tasks would
hold every slot until one of them ends. Here a task waits for its turn before Spark has it, in the order of FairSlots
(app/infra/sharing/fair_slots.py). No tenant has all of the running tasks, if more than one can run.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import Final, Generic, TypeVar

import msgspec

from app.infra.sharing.fair_slots import FairSlots, SlotTurn

_log = logging.getLogger(__name__)

_R = TypeVar("_R")

# Tags whose progress is remembered, many more than run at a time.
_TAGS_MAX: Final = 10_000


class LargeTurns(msgspec.Struct, frozen=True, kw_only=True):
    """How many large tasks run at a time in all, and of one tenant."""

    at_a_time: int
    per_tenant: int


@dataclass(kw_only=True, eq=False, slots=True)
class _Run(Generic[_R]):
    """The tasks of one call, by number. `remaining`: those that wait or run. `results`: of those that have ended."""

    tenant_id: str
    kind: str
    tag: str
    remaining: int
    turns: list[SlotTurn] = field(default_factory=list)
    results: dict[int, _R] = field(default_factory=dict)
    error: BaseException | None = None
    end: threading.Event = field(default_factory=threading.Event)


class LargeTasks(Generic[_R]):
    """Runs tasks of several tenants. Safe to use from any number of threads.

    `turns`: how many run. `stop`: ends the running tasks under a tag, of which one has failed.
    """

    def __init__(self, *, turns: LargeTurns, stop: Callable[[str], None]) -> None:
        self._slots = FairSlots(turns.at_a_time, party_max=turns.per_tenant)
        self._threads_max = turns.at_a_time
        self._stop = stop
        # Tasks that have their slot. There is a thread for each slot.
        self._begun: SimpleQueue[tuple[_Run[_R], int, Callable[[], _R]]] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._runs: list[_Run[_R]] = []
        self._progress: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def run(self, tasks: Sequence[Callable[[], _R]], *, tenant_id: str, kind: str, tag: str) -> list[_R]:
        """One result for each task, in their order. The kinds of work of a tenant take turns.

        Raises what the first task that fails raises, once none runs.
        """
        if not tasks:
            return []
        run = _Run[_R](tenant_id=tenant_id, kind=kind, tag=tag, remaining=len(tasks))
        with self._lock:
            self._runs.append(run)
            self._count(tag, total=len(tasks))
            while len(self._threads) < self._threads_max:
                # A process that ends does not wait for them.
                thread = threading.Thread(target=self._work, name="large-task", daemon=True)
                thread.start()
                self._threads.append(thread)
            for number, task in enumerate(tasks):
                turn = self._slots.enter(tenant_id, partial(self._begun.put, (run, number, task)), kind=kind)
                assert turn is not None, "any number of them may wait"
                run.turns.append(turn)
        run.end.wait()
        if run.error is not None:
            raise run.error
        return [run.results[number] for number in range(len(tasks))]

    def cancel(self, tag: str, error: Exception) -> None:
        """Starts no further task under the tag: the caller of `run` gets the error once none runs."""
        with self._lock:
            for run in [run for run in self._runs if run.tag == tag]:
                self._fail(run, error)

    def progress(self, tag: str) -> tuple[int, int]:
        """The numbers of ended tasks and of all tasks so far under the tag."""
        with self._lock:
            return self._progress.get(tag, (0, 0))

    def _work(self) -> None:
        while True:
            self._run_one(*self._begun.get())

    def _run_one(self, run: _Run[_R], number: int, task: Callable[[], _R]) -> None:
        """Runs a task, unless its run has failed since it got its slot, and gives the slot to the next one."""
        failure: BaseException | None = None
        results: list[_R] = []
        if run.error is None:
            try:
                results.append(task())
            except BaseException as error:
                failure = error
        self._slots.release(run.tenant_id, kind=run.kind)
        first = False
        with self._lock:
            run.remaining -= 1
            for result in results:
                run.results[number] = result
                self._count(run.tag, ended_tasks=1)
            if failure is not None:
                first = run.error is None
                self._fail(run, failure)
            self._end(run)
        if first:
            try:
                self._stop(run.tag)
            except Exception:
                _log.warning("the other tasks of %s run on", run.tag, exc_info=True)

    def _fail(self, run: _Run[_R], error: BaseException) -> None:
        run.error = run.error or error
        run.remaining -= sum(self._slots.leave(turn) for turn in run.turns)
        run.turns.clear()
        self._end(run)

    def _end(self, run: _Run[_R]) -> None:
        if not run.remaining and not run.end.is_set():
            self._runs.remove(run)
            run.end.set()

    def _count(self, tag: str, *, ended_tasks: int = 0, total: int = 0) -> None:
        before = self._progress.pop(tag, (0, 0))
        self._progress[tag] = before[0] + ended_tasks, before[1] + total
        while len(self._progress) > _TAGS_MAX:
            self._progress.popitem(last=False)
