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
from app.infra.errors import Unavailable
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

    def __init__(self, given: Path, program: str = PROGRAM) -> None:
        self.given = given
        self.ended: list[bool] = []
        self.faults: list[tuple[WriteProcess, str, str, str]] = []
        self.failing = False
        self.handed_over: list[str] = []
        self.stopping = threading.Event()
        self.process = DerivedProcess(
            WriteProcess.DERIVED,
            "worker",
            on_end=lambda: self.ended.append(True),
            on_fault=self._note_fault,
            stopping=self.stopping,
            program=(sys.executable, "-c", program, str(given)),
        )

    def _note_fault(self, process: WriteProcess, tenant_id: str, dataset_id: str, reason: str) -> None:
        if self.failing:
            raise Unavailable("the database is away")
        self.faults.append((process, tenant_id, dataset_id, reason))

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
    [(_, process_id, name, descriptor), *datasets] = child.lines(3)
    assert descriptor.isdigit()
    assert (worker_of(process_id), worker_of("worker"), name) == ("worker", None, "derived")
    assert datasets == [["tenant", "one"], ["tenant", "two"]]


def test_killed_process_is_reported_and_started_again_under_another_id_for_new_work(child: Child) -> None:
    child.process.wake("tenant", "one")
    [(pid, first_id, *_), _] = child.lines(2)
    os.kill(int(pid), signal.SIGKILL)
    until(lambda: child.process.run() or child.ended, "the death to be reported")
    assert len(child.lines(2)) == 2, "nothing waits"
    child.process.wake("tenant", "two")
    [_, _, (_, second_id, *_), dataset] = child.lines(4)
    assert second_id != first_id
    assert dataset == ["tenant", "two"]


def test_process_ends_with_its_worker_and_is_not_started_again(child: Child) -> None:
    child.process.wake("tenant", "one")
    [(pid, process_id, *_), _] = child.lines(2)
    child.stop()
    assert not Path(f"/proc/{pid}").exists()
    assert child.handed_over == [process_id]
    child.process.wake("tenant", "two")
    child.process.run()
    assert len(child.lines(2)) == 2
    assert not child.ended


UNSTARTABLE = """
import runpy, sys
open(sys.argv[1], "a").write("started\\n")
sys.argv = sys.argv[1:]
sys.modules["pyspark"] = None
runpy.run_module("workers.derived", run_name="__main__")
"""


def test_process_that_cannot_import_a_module_fails_what_it_was_started_for(tmp_path: Path) -> None:
    child = Child(tmp_path / "given", UNSTARTABLE)
    try:
        child.process.wake("tenant", "one")
        child.process.wake("tenant", "two")
        child.failing = True

        def refused() -> bool:
            try:
                child.process.run()
            except Unavailable:
                return True
            return False

        until(refused, "the attempt to fail its work")
        assert "pyspark" in (child.process.fault or "")
        child.failing = False
        child.process.run()
        assert [each[:3] for each in child.faults] == [
            (WriteProcess.DERIVED, "tenant", "one"),
            (WriteProcess.DERIVED, "tenant", "two"),
        ]
        assert all("pyspark" in reason for *_, reason in child.faults)
        # Later work starts it again, in case that the module is there now.
        child.process.wake("tenant", "three")
        until(lambda: child.process.run() or len(child.faults) == 3, "the fault of later work")
        assert child.given.read_text().count("started") == 2
        assert child.faults[-1][2] == "three"
    finally:
        child.stop()
