"""Large tasks: few run at a time, in fair turns of their owners, and none has the error of another owner."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest

from app.core.jobs.errors import EngineStopped
from tests.support.waiting import until
from workers.engine.large_tasks import LargeTasks, LargeTurns


class Tasks:
    """Tasks that wait until their name is released. Their result is the name in capitals; one named `bad` fails."""

    def __init__(self, at_a_time: int, per_tenant: int | None = None) -> None:
        self.started: list[str] = []
        self.stopped: list[str] = []
        turns = LargeTurns(at_a_time=at_a_time, per_tenant=per_tenant or at_a_time)
        self.large = LargeTasks[str](turns=turns, stop=self.stopped.append)
        self._released: dict[str, threading.Event] = {}
        self._callers = ThreadPoolExecutor(8)

    def run(self, tenant: str, *names: str, kind: str = "writes") -> Future[list[str]]:
        """A run of these tasks, under the name of the tenant as tag."""
        self._released |= {name: threading.Event() for name in names}
        calls: list[Callable[[], str]] = [partial(self._task, name) for name in names]
        return self._callers.submit(self.large.run, calls, tenant_id=tenant, kind=kind, tag=tenant)

    def release(self, *names: str) -> None:
        """Lets tasks end, after they have started."""
        for name in names:
            until(lambda name=name: name in self.started, f"the task {name}")
            self._released[name].set()

    def _task(self, name: str) -> str:
        self.started.append(name)
        assert self._released[name].wait(10)
        if name == "bad":
            raise ArithmeticError(name)
        return name.upper()


def test_results_are_in_the_order_of_the_tasks() -> None:
    tasks = Tasks(at_a_time=2)
    run = tasks.run("one", "a", "b", "c")
    tasks.release("b", "c", "a")
    assert run.result(10) == ["A", "B", "C"]
    assert tasks.large.run([], tenant_id="one", kind="writes", tag="one") == []


def test_tasks_wait_for_those_that_run() -> None:
    tasks = Tasks(at_a_time=2)
    run = tasks.run("one", "a", "b", "c", "d")
    until(lambda: len(tasks.started) == 2, "two tasks")
    tasks.release("a")
    until(lambda: len(tasks.started) == 3, "the next task")
    assert tasks.large.progress("one") == (1, 4)
    tasks.release("b", "c", "d")
    assert run.result(10) == ["A", "B", "C", "D"]
    assert tasks.large.progress("one") == (4, 4)
    assert tasks.large.progress("other") == (0, 0)


def test_next_task_is_that_of_the_owner_with_the_fewest() -> None:
    tasks = Tasks(at_a_time=2)
    first = tasks.run("one", "a1", "a2", "a3", "a4")
    until(lambda: tasks.started == ["a1", "a2"], "the tasks of the first owner")
    second = tasks.run("other", "b1", "b2")
    until(lambda: tasks.large.progress("other") == (0, 2), "the other owner to wait")
    tasks.release("a1")
    until(lambda: len(tasks.started) == 3, "the next task")
    tasks.release("a2")
    until(lambda: len(tasks.started) == 4, "the task after it")
    assert tasks.started == ["a1", "a2", "b1", "a3"]
    tasks.release("b1", "b2", "a3", "a4")
    assert (first.result(10), second.result(10)) == (["A1", "A2", "A3", "A4"], ["B1", "B2"])


def test_kinds_of_work_of_a_tenant_share_its_turns() -> None:
    tasks = Tasks(at_a_time=3, per_tenant=2)
    writes = tasks.run("one", "a1", "a2", "a3")
    until(lambda: len(tasks.started) == 2, "the writes")
    others = tasks.run("one", "t1", kind="tasks")
    until(lambda: tasks.large.progress("one") == (0, 4), "the other work of the tenant")
    beside = tasks.run("other", "b1")
    tasks.release("b1")
    assert beside.result(10) == ["B1"], "one turn is never that of the first tenant"
    assert tasks.started == ["a1", "a2", "b1"]
    tasks.release("a1")
    until(lambda: len(tasks.started) == 4, "the next task")
    assert tasks.started[3] == "t1"
    tasks.release("a2", "t1", "a3")
    assert (writes.result(10), others.result(10)) == (["A1", "A2", "A3"], ["T1"])


def test_task_that_fails_ends_its_run_only() -> None:
    tasks = Tasks(at_a_time=2)
    failing = tasks.run("one", "bad", "a", "never")
    until(lambda: len(tasks.started) == 2, "two tasks")
    other = tasks.run("other", "b")
    tasks.release("bad")
    until(lambda: tasks.stopped == ["one"], "the end of the other tasks of the run")
    assert not failing.done(), "a task of it runs"
    tasks.release("a", "b")
    with pytest.raises(ArithmeticError, match="bad"):
        failing.result(10)
    assert other.result(10) == ["B"]
    assert "never" not in tasks.started


def test_cancelled_run_starts_no_further_task() -> None:
    tasks = Tasks(at_a_time=1)
    run = tasks.run("one", "a")
    until(lambda: tasks.started == ["a"], "the task")
    waiting = tasks.run("other", "b")
    until(lambda: tasks.large.progress("other") == (0, 1), "the other owner to wait")
    tasks.large.cancel("other", EngineStopped("other"))
    with pytest.raises(EngineStopped):
        waiting.result(10)
    tasks.large.cancel("one", EngineStopped("one"))
    tasks.release("a")
    with pytest.raises(EngineStopped):
        run.result(10)
    assert tasks.started == ["a"]
    last = tasks.run("one", "c")
    tasks.release("c")
    assert last.result(10) == ["C"], "the places of those that ended are free"
