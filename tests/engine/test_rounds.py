"""Rounds: groups share a job, and none of them has another's results, errors or cancellation."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.waiting import until
from workers.engine.rounds import Rounds


class Jobs:
    """Runs jobs that wait for `released`; each task's result is the task in capitals. A task named `bad` fails."""

    def __init__(self) -> None:
        self.started: list[tuple[str, list[bytes]]] = []
        self.released = threading.Event()

    def __call__(self, tasks: Sequence[bytes], tag: str) -> list[bytes]:
        # A test that sees the job started may replace the event for later ones.
        released = self.released
        self.started.append((tag, list(tasks)))
        assert released.wait(10)
        if b"bad" in tasks:
            raise ArithmeticError(tag)
        return [task.upper() for task in tasks]


def groups(rounds: Rounds) -> int:
    return len(rounds._waiting)


def test_groups_that_wait_run_as_one_job_and_each_gets_its_results() -> None:
    jobs = Jobs()
    rounds = Rounds(jobs, at_a_time=1, patience_seconds=10, tasks_max=10)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(rounds.run, [b"a"], "t/a")
        until(lambda: len(jobs.started) == 1, "the groups")
        others = [pool.submit(rounds.run, [name.encode(), b"x"], f"t/{name}") for name in ("b", "c", "d")]
        until(lambda: groups(rounds) == 3, "the groups")
        jobs.released.set()
        assert first.result(10) == [b"A"]
        assert [other.result(10) for other in others] == [[b"B", b"X"], [b"C", b"X"], [b"D", b"X"]]
    assert [len(tasks) for _, tasks in jobs.started] == [1, 6]


def test_groups_of_a_failed_round_run_alone_and_only_the_bad_one_fails() -> None:
    jobs = Jobs()
    rounds = Rounds(jobs, at_a_time=1, patience_seconds=10, tasks_max=10)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(rounds.run, [b"a"], "t/a")
        until(lambda: len(jobs.started) == 1, "the groups")
        good, bad = pool.submit(rounds.run, [b"good"], "t/good"), pool.submit(rounds.run, [b"bad"], "t/bad")
        until(lambda: groups(rounds) == 2, "the groups")
        jobs.released.set()
        assert first.result(10) == [b"A"]
        assert good.result(10) == [b"GOOD"]
        with pytest.raises(ArithmeticError, match="t/bad"):
            bad.result(10)
    assert rounds.run([b"b"], "t/b") == [b"B"], "a round that failed does not hold its place"


def test_group_that_has_waited_for_long_runs_beside_a_slow_round() -> None:
    jobs = Jobs()
    rounds = Rounds(jobs, at_a_time=2, patience_seconds=0.05, tasks_max=10)
    with ThreadPoolExecutor(4) as pool:
        slow = pool.submit(rounds.run, [b"slow"], "t/slow")
        until(lambda: len(jobs.started) == 1, "the groups")
        held, jobs.released = jobs.released, threading.Event()
        jobs.released.set()
        others = [pool.submit(rounds.run, [name], f"t/{name.decode()}") for name in (b"b", b"c")]
        assert [other.result(10) for other in others] == [[b"B"], [b"C"]]
        assert not slow.done()
        held.set()
        assert slow.result(10) == [b"SLOW"]
    assert rounds._running == 0


def test_group_knows_the_job_of_its_round_until_that_ends() -> None:
    jobs = Jobs()
    rounds = Rounds(jobs, at_a_time=1, patience_seconds=10, tasks_max=10)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(rounds.run, [b"a"], "t/a")
        until(lambda: len(jobs.started) == 1, "the groups")
        held, jobs.released = jobs.released, threading.Event()
        others = [pool.submit(rounds.run, [b"b"], "t/b"), pool.submit(rounds.run, [b"c"], "t/c")]
        until(lambda: groups(rounds) == 2, "the groups")
        held.set()
        assert first.result(10) == [b"A"]
        until(lambda: len(jobs.started) == 2, "the groups")
        assert rounds.job_of("t/b") == rounds.job_of("t/c") == jobs.started[1][0]
        jobs.released.set()
        assert [other.result(10) for other in others] == [[b"B"], [b"C"]]
    assert rounds.job_of("t/b") == "t/b"


@pytest.mark.parametrize(("at_a_time", "tasks_max"), [(1, 1), (1, 3), (2, 2), (2, 7), (3, 4)])
def test_every_group_gets_its_own_results_whatever_the_bounds(at_a_time: int, tasks_max: int) -> None:
    running, most, sizes = 0, 0, []
    lock = threading.Lock()

    def run_job(tasks: Sequence[bytes], _tag: str) -> list[bytes]:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            sizes.append(len(tasks))
        threading.Event().wait(0.001)
        with lock:
            running -= 1
        return [task[::-1] for task in tasks]

    rounds = Rounds(run_job, at_a_time=at_a_time, patience_seconds=0.002, tasks_max=tasks_max)
    with ThreadPoolExecutor(16) as pool:
        given = [[f"{group}-{number}".encode() for number in range(1 + group % 3)] for group in range(200)]
        results = pool.map(lambda each: rounds.run(each[1], f"t/{each[0]}"), enumerate(given))
        assert list(results) == [[task[::-1] for task in tasks] for tasks in given]
    assert most <= at_a_time
    assert max(sizes) <= max(tasks_max, 3)
    assert rounds._running == 0
