"""Processes that read from servers of users have limits that the kernel enforces, and end with who has asked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from app.infra.outbound.bounds import Bounds
from app.infra.outbound.limited_process import LimitedProcesses
from tests.support.waiting import until

_MEBIBYTE = 2**20
_SERVING = "tests.support.limited_serving"


@pytest.fixture(scope="module")
def processes() -> Iterator[LimitedProcesses]:
    started = LimitedProcesses(_SERVING)
    yield started
    started.close()


@contextmanager
def _answered(
    processes: LimitedProcesses, request: bytes, seconds: float = 20.0, memory_bytes: int = 64 * _MEBIBYTE
) -> Iterator[tuple[BinaryIO, dict[str, Any]]]:
    """The answer after its first line, and that line."""
    bounds = Bounds(deadline=time.monotonic() + seconds)
    with processes.answer(request, bounds, memory_bytes) as answer:
        yield answer, json.loads(answer.readline())


def _ends(pid: int) -> None:
    """Waits until the process has ended, and is no zombie."""
    until(lambda: not Path(f"/proc/{pid}").exists(), "the process to end", seconds_max=5)


def test_nothing_of_this_process_is_in_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADWATER_SECRET", "own-secret")
    processes = LimitedProcesses(_SERVING)
    with (tmp_path / "open").open("wb") as inheritable:
        os.set_inheritable(inheritable.fileno(), True)
        with _answered(processes, b"echo password") as (answer, facts):
            assert answer.read() == b"password"
    processes.close()
    assert "own-secret" not in facts["environment"]
    assert set(facts["variables"]) <= {"HOME", "LC_ALL", "PYTHONPATH", "SSL_CERT_FILE", "SSL_CERT_DIR"}
    assert "password" not in facts["environment"] + facts["command"]
    kinds = [each.partition(":")[0] for each in facts["descriptors"]]
    assert sorted(kinds) == ["/dev/null", "/dev/null", "pipe", "socket"]


def test_it_gives_way_to_the_work_of_others(processes: LimitedProcesses) -> None:
    """A server that keeps it busy until the deadline takes no processor time from writes."""
    with _answered(processes, b"echo") as (_, facts):
        assert facts["niceness"] >= min(os.nice(0) + 10, 19)


def test_memory_is_limited(processes: LimitedProcesses) -> None:
    for size_bytes, outcome in ((32 * _MEBIBYTE, b"allocated"), (128 * _MEBIBYTE, b"refused")):
        with _answered(processes, b"allocate %d" % size_bytes) as (answer, _):
            assert answer.readline().strip() == outcome


def test_no_file_is_written(processes: LimitedProcesses, tmp_path: Path) -> None:
    with _answered(processes, b"write " + str(tmp_path / "file").encode()) as (answer, _):
        assert answer.readline() != b"written\n"


@pytest.mark.parametrize("word", [b"sleep", b"spin", b"flood"])
def test_it_ends_with_the_context(processes: LimitedProcesses, word: bytes) -> None:
    with _answered(processes, word) as (_, facts):
        assert Path(f"/proc/{facts['pid']}").exists()
    _ends(facts["pid"])


def test_reading_ends_at_the_deadline(processes: LimitedProcesses) -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError), _answered(processes, b"sleep", seconds=0.5) as (answer, facts):
        answer.read()
    assert time.monotonic() - began < 5
    _ends(facts["pid"])


def test_the_kernel_ends_it_soon_after_the_deadline(processes: LimitedProcesses) -> None:
    with _answered(processes, b"spin", seconds=0.5) as (_, facts):
        _ends(facts["pid"])


def test_a_check_that_raises_ends_the_reading(processes: LimitedProcesses) -> None:
    def check() -> None:
        raise KeyError

    bounds = Bounds(deadline=time.monotonic() + 20, check=check)
    with pytest.raises(KeyError), processes.answer(b"sleep", bounds, 64 * _MEBIBYTE) as answer:
        answer.read()


def test_the_answer_of_one_that_is_killed_ends(processes: LimitedProcesses) -> None:
    with _answered(processes, b"sleep") as (answer, facts):
        os.kill(facts["pid"], signal.SIGKILL)
        assert answer.read() == b""
    _ends(facts["pid"])


def test_a_server_that_was_killed_is_replaced(processes: LimitedProcesses) -> None:
    with _answered(processes, b"echo 1") as (_, facts):
        os.kill(facts["server"], signal.SIGKILL)
    until(lambda: "Z" in Path(f"/proc/{facts['server']}/stat").read_text().split(")")[-1][:3], "its end")
    with _answered(processes, b"echo 2") as (answer, replaced):
        assert answer.read() == b"2"
    assert replaced["server"] != facts["server"]
    assert not Path(f"/proc/{facts['server']}").exists()


def test_large_requests_are_sent(processes: LimitedProcesses) -> None:
    with _answered(processes, b"echo " + b"x" * _MEBIBYTE) as (answer, _):
        assert len(answer.read()) == _MEBIBYTE


def test_without_a_process_the_answer_is_empty() -> None:
    processes = LimitedProcesses("tests.support.absent")
    with processes.answer(b"echo", Bounds(deadline=time.monotonic() + 20), _MEBIBYTE) as answer:
        assert answer.read() == b""
    processes.close()


_ASKS = """
import sys, time
from app.infra.outbound.bounds import Bounds
from app.infra.outbound.limited_process import LimitedProcesses
with LimitedProcesses(sys.argv[1]).answer(b"spin", Bounds(deadline=time.monotonic() + 60), 2**26) as answer:
    print(answer.readline().decode(), flush=True)
    time.sleep(60)
"""


def test_all_end_with_a_worker_that_is_killed() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", _ASKS, _SERVING]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as worker:
        assert worker.stdout is not None
        facts = json.loads(worker.stdout.readline())
        worker.kill()
        # Those of a process that has ended belong to another one, which may not wait for them.
        for pid in (facts["pid"], facts["server"]):
            until(lambda pid=pid: _has_ended(pid), "the process to end", seconds_max=5)


def _has_ended(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"
