"""Large tasks: fewer run at a time than Spark has slots, so that rounds of small tasks always find one.

Spark divides slots fairly between pools, but ends no task for another one. So a tenant with enough slow tasks would
hold every slot until one of them ends. Here a task waits for its turn before Spark has it. The next one is that of the
owner with the fewest running tasks; one owner's tasks run in the order of their runs. No tenant has all of the running
tasks, if more than one can run.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Final, Generic, TypeVar

import msgspec

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
    """The tasks of one call, by number. `results`: of those that have ended."""

    tenant_id: str
    owner: str
    tag: str
    waiting: deque[tuple[int, Callable[[], _R]]]
    running: int = 0
    results: dict[int, _R] = field(default_factory=dict)
    error: BaseException | None = None
    ended: threading.Event = field(default_factory=threading.Event)


class LargeTasks(Generic[_R]):
    """Runs tasks of several owners. Safe to use from any number of threads.

    `turns`: how many run. `stop`: ends the running tasks under a tag, of which one has failed.
    """

    def __init__(self, *, turns: LargeTurns, stop: Callable[[str], None]) -> None:
        self._limits = turns
        self._stop = stop
        self._turns: SimpleQueue[None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._runs: list[_Run[_R]] = []
        self._of_owner: Counter[str] = Counter()
        self._of_tenant: Counter[str] = Counter()
        self._progress: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def run(self, tasks: Sequence[Callable[[], _R]], *, tenant_id: str, kind: str, tag: str) -> list[_R]:
        """One result for each task, in their order. The tasks of a `kind` and tenant have one owner.

        Raises what the first task that fails raises, once none runs.
        """
        if not tasks:
            return []
        run = _Run[_R](
            tenant_id=tenant_id, owner=f"{tenant_id} {kind}", tag=tag, waiting=deque(enumerate(tasks))
        )
        with self._lock:
            self._runs.append(run)
            self._count(tag, total=len(tasks))
            while len(self._threads) < self._limits.at_a_time:
                # A process that ends does not wait for them.
                thread = threading.Thread(target=self._work, name="large-task", daemon=True)
                thread.start()
                self._threads.append(thread)
        for _ in tasks:
            self._turns.put(None)
        run.ended.wait()
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
            self._turns.get()
            # The end of a task may be the turn of one whose tenant had as many as it may.
            while self._run_next():
                pass

    def _run_next(self) -> bool:
        """Runs a task; False without one whose turn it is."""
        with self._lock:
            run = min(
                (run for run in self._runs if self._may_start(run)),
                key=lambda run: self._of_owner[run.owner],
                default=None,
            )
            if run is None:
                return False
            number, task = run.waiting.popleft()
            self._count_running(run, 1)
        failed: BaseException | None = None
        try:
            result = task()
        except BaseException as error:
            failed = error
        first = False
        with self._lock:
            self._count_running(run, -1)
            if failed is None:
                run.results[number] = result
                self._count(run.tag, done=1)
                self._end(run)
            else:
                first = run.error is None
                self._fail(run, failed)
        if first:
            try:
                self._stop(run.tag)
            except Exception:
                _log.warning("the other tasks of %s run on", run.tag, exc_info=True)
        return True

    def _may_start(self, run: _Run[_R]) -> bool:
        return bool(run.waiting) and self._of_tenant[run.tenant_id] < self._limits.per_tenant

    def _count_running(self, run: _Run[_R], change: int) -> None:
        """Counts a task that starts (1) or has ended (-1)."""
        run.running += change
        for counter, name in ((self._of_owner, run.owner), (self._of_tenant, run.tenant_id)):
            counter[name] += change
            if not counter[name]:
                del counter[name]

    def _fail(self, run: _Run[_R], error: BaseException) -> None:
        run.waiting.clear()
        run.error = run.error or error
        self._end(run)

    def _end(self, run: _Run[_R]) -> None:
        if not run.waiting and not run.running and not run.ended.is_set():
            self._runs.remove(run)
            run.ended.set()

    def _count(self, tag: str, *, done: int = 0, total: int = 0) -> None:
        before = self._progress.pop(tag, (0, 0))
        self._progress[tag] = before[0] + done, before[1] + total
        while len(self._progress) > _TAGS_MAX:
            self._progress.popitem(last=False)
