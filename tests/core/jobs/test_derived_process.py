"""The process beside a worker: started for work, restarted after its death, stopped with the worker."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.core.jobs.kinds.kind import WriteProcess
from tests.support.waiting import until
from workers.jobs.derived_process import DerivedProcess, worker_of

PROGRAM = """
import os, sys
with open(sys.argv[1], "a") as given:
    print(os.getpid(), *sys.argv[2:], file=given, flush=True)
    for line in sys.stdin:
        print(line, end="", file=given, flush=True)
"""


class Child:
    """A process whose program writes down what it is given."""

    def __init__(self, given: Path) -> None:
        self.given = given
        self.ended: list[bool] = []
        self.handed_over: list[str] = []
        self.stopping = threading.Event()
        self.process = DerivedProcess(
            WriteProcess.DERIVED,
            "worker",
            on_end=lambda: self.ended.append(True),
            stopping=self.stopping,
            program=(sys.executable, "-c", PROGRAM, str(given)),
        )

    def lines(self, count: int) -> list[list[str]]:
        """The first lines that it has written, once there are this many."""

        def found() -> list[list[str]] | None:
            self.process.run()
            lines = self.given.read_text().splitlines() if self.given.exists() else []
            return [line.split() for line in lines] if len(lines) >= count else None

        return until(found, f"{count} lines")

    def stop(self) -> None:
        self.stopping.set()
        self.process.stop_soon()
        self.process.stop(10, self.handed_over.append)


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    child = Child(tmp_path / "given")
    yield child
    child.stop()


def test_process_starts_with_the_first_work_and_receives_all(child: Child) -> None:
    child.process.run()
    assert not child.given.exists()
    child.process.wake("tenant", "one")
    child.process.wake("tenant", "one")
    child.process.wake("tenant", "two")
    [(_, process_id, name), *datasets] = child.lines(3)
    assert (worker_of(process_id), worker_of("worker"), name) == ("worker", None, "derived")
    assert datasets == [["tenant", "one"], ["tenant", "two"]]


def test_killed_process_is_reported_and_started_again_under_another_id_for_new_work(child: Child) -> None:
    child.process.wake("tenant", "one")
    [(pid, first_id, _), _] = child.lines(2)
    os.kill(int(pid), signal.SIGKILL)
    until(lambda: child.process.run() or child.ended, "the death to be reported")
    assert len(child.lines(2)) == 2, "nothing waits"
    child.process.wake("tenant", "two")
    [_, _, (_, second_id, _), dataset] = child.lines(4)
    assert second_id != first_id
    assert dataset == ["tenant", "two"]


def test_process_ends_with_its_worker_and_is_not_started_again(child: Child) -> None:
    child.process.wake("tenant", "one")
    [(pid, process_id, _), _] = child.lines(2)
    child.stop()
    assert not Path(f"/proc/{pid}").exists()
    assert child.handed_over == [process_id]
    child.process.wake("tenant", "two")
    child.process.run()
    assert len(child.lines(2)) == 2
    assert not child.ended
