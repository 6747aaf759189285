"""Memory and processor time of the service's processes, sampled from /proc."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryBudget:
    """Bytes of a process or of several. `proportional` counts a page shared by n processes as 1/n in each."""

    resident: int
    proportional: int


def tree(process: psutil.Process) -> list[psutil.Process]:
    """The process and everything below it."""
    with suppress(psutil.NoSuchProcess):
        return [process, *process.children(recursive=True)]
    return []


def memory(processes: list[psutil.Process]) -> MemoryBudget:
    """What the processes hold now; one that has ended meanwhile holds nothing."""
    resident = proportional = 0
    for process in processes:
        with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            found = _rollup(process.pid)
            resident += found["Rss"]
            proportional += found["Pss"]
    return MemoryBudget(resident=resident, proportional=proportional)


def _rollup(pid: int) -> dict[str, int]:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    entries = (line.split() for line in lines)
    return {entry[0].rstrip(":"): int(entry[1]) * 1024 for entry in entries}


def processor_seconds(processes: list[psutil.Process]) -> float:
    """User and system time of the processes so far, and of children of theirs that have ended."""
    total = 0.0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


@dataclass(kw_only=True)
class Peak:
    """The largest of the samples taken, bytes, and how many were taken."""

    resident: int = 0
    proportional: int = 0
    samples: int = 0
    by_program: dict[str, int] = field(default_factory=dict)
    """Proportional bytes by program when the sum was largest."""


@contextmanager
def peak_memory(process: psutil.Process, *, every_seconds: float) -> Iterator[Peak]:
    """Samples the process and everything below it until the context is left."""
    peak = Peak()
    stop = threading.Event()

    def sample() -> None:
        while not stop.is_set():
            began = time.monotonic()
            _add(peak, process)
            stop.wait(max(0.0, every_seconds - (time.monotonic() - began)))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        stop.set()
        thread.join()


def _add(peak: Peak, process: psutil.Process) -> None:
    by_program: dict[str, int] = {}
    resident = proportional = 0
    for member in tree(process):
        with suppress(psutil.NoSuchProcess):
            found, program = memory([member]), member.name()
            by_program[program] = by_program.get(program, 0) + found.proportional
            resident += found.resident
            proportional += found.proportional
    peak.samples += 1
    peak.resident = max(peak.resident, resident)
    if proportional > peak.proportional:
        peak.proportional, peak.by_program = proportional, by_program


@contextmanager
def one_core() -> Iterator[None]:
    """Keeps this process, whatever threads it has or starts, on one core."""
    cores = os.sched_getaffinity(0)
    _keep_on(os.getpid(), {min(cores)})
    try:
        yield
    finally:
        _keep_on(os.getpid(), cores)


def _keep_on(pid: int, cores: set[int]) -> None:
    """Keeps a process on these cores: its threads, and those that they start."""
    with suppress(FileNotFoundError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), cores)
