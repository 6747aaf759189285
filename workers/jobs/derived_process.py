"""A process of its own for work that may use up its memory: started when there is some, restarted when it has died."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from app.core.jobs.kinds.kind import WriteProcess
from app.infra.runtime.child import ChildSpec, describe_exit, has_ended, launch, reap, stop
from app.infra.runtime.loops import Loop
from app.infra.runtime.supervisor import RestartPolicy

_log = logging.getLogger(__name__)
_PROGRAM: Final = (sys.executable, "-P", "-m", "workers.derived")
_STANDARD_OUTPUT: Final = 1
_POLICY: Final = RestartPolicy(delay_seconds_max=10.0)
# What a process writes about a module that it cannot import.
_FAULT_BYTES_MAX: Final = 1_000
# Datasets that wait while the process starts. Postgres has the work of the others: a poll finds it.
_DATASETS_MAX: Final = 10_000
_OWNER_END: Final = "~"
_ROUND_SECONDS: Final = 0.5


def worker_of(process_id: str) -> str | None:
    """The id of the worker that has started a process; None for a worker itself."""
    worker_id, separator, _ = process_id.rpartition(_OWNER_END)
    return worker_id if separator else None


Unstarted = Callable[[WriteProcess, str, str, str], None]
"""Called with a process that does not start, a tenant and a dataset whose work waits for it, and the reason."""


class DerivedProcess:
    """`workers.derived` as a child of this worker.

    The thread that calls `run` must live as long as the child may: the kernel ends the child with it. All other methods
    may be called from any thread. `on_end` is called when the child has died, and `on_fault` for each dataset that it
    was started for, if it cannot import a module.
    """

    def __init__(
        self,
        process: WriteProcess,
        worker_id: str,
        *,
        on_end: Callable[[], None],
        on_fault: Unstarted,
        stopping: threading.Event,
        program: tuple[str, ...] = _PROGRAM,
    ) -> None:
        """Once `stopping` is set, the child is not started.

        `program` gets three arguments: an id, the process, and the descriptor for the reason why it does not start.
        """
        self.name = process.value
        self.fault: str | None = None
        self._process = process
        self.woken = threading.Event()
        self._worker_id = worker_id
        self._ended = on_end
        self._unstarted = on_fault
        self._stopping = stopping
        self._program = program
        self._lock = threading.Lock()
        # Held while the child is started or stopped.
        self._changing = threading.Lock()
        self._waiting: dict[tuple[str, str], None] = {}
        # What the child was started for, until it runs for a while.
        self._first: dict[tuple[str, str], None] = {}
        self._reason = -1
        self._child: subprocess.Popen[bytes] | None = None
        self._id = ""
        self._started_at = self._restart_at = 0.0
        self._rapid_deaths = 0

    def wake(self, tenant_id: str, dataset_id: str) -> None:
        """Notes that the dataset may have work. Returns at once."""
        with self._lock:
            if len(self._waiting) < _DATASETS_MAX:
                self._waiting[tenant_id, dataset_id] = None
        self.woken.set()

    def run(self) -> None:
        """One round: notices the end of the child, starts it if there is work, and passes the work on."""
        with self._changing:
            if not self._stopping.is_set():
                self._run()

    def _run(self) -> None:
        if self._child is not None and has_ended(self._child):
            self._note_end(self._child)
        if self._child is not None and time.monotonic() - self._started_at > _POLICY.steady_seconds:
            self.fault, self._first = None, {}
        if self._child is None and self.fault is not None:
            self._fail_waiting(self.fault)
        if not self._waiting:
            return
        if self._child is None:
            if time.monotonic() < self._restart_at:
                return
            self._start()
        self._pass_on()

    def _start(self) -> None:
        self._id = f"{self._worker_id}{_OWNER_END}{os.urandom(3).hex()}"
        self._reason, its_end = os.pipe()
        os.set_blocking(self._reason, False)
        try:
            self._child = launch(self._spec(its_end), _STANDARD_OUTPUT, subprocess.PIPE, [its_end])
        except OSError:
            os.close(self._reason)
            raise
        finally:
            os.close(its_end)
        self._started_at = time.monotonic()
        if self._child.stdin is not None:
            os.set_blocking(self._child.stdin.fileno(), False)
        _log.info("started the process %s", self._id)

    def _spec(self, reason: int) -> ChildSpec:
        return ChildSpec(
            name=self.name,
            command=(*self._program, self._id, self.name, str(reason)),
        )

    def _pass_on(self) -> None:
        """Writes a line for each dataset that waits. What the pipe has no room for is found by the next poll."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        if time.monotonic() - self._started_at <= _POLICY.steady_seconds:
            self._first |= waiting
        if self._child is None or self._child.stdin is None:
            return
        descriptor = self._child.stdin.fileno()
        try:
            for tenant_id, dataset_id in waiting:
                # A line is shorter than what a pipe takes as a whole or not at all.
                os.write(descriptor, f"{tenant_id} {dataset_id}\n".encode("ascii"))
        except (BlockingIOError, BrokenPipeError):
            _log.debug("the process %s does not read; the next poll finds its work again", self._id)

    def _note_end(self, child: subprocess.Popen[bytes]) -> None:
        code = reap(child)
        self._child = None
        lived_seconds = time.monotonic() - self._started_at
        self.fault = self._read_reason()
        if code == 0:
            self._rapid_deaths = 0
            return
        _log.warning(
            "the process %s %s after %.1f s",
            self._id,
            describe_exit(code),
            lived_seconds,
        )
        rapid = lived_seconds < _POLICY.steady_seconds
        self._rapid_deaths = self._rapid_deaths + 1 if rapid else 1
        self._restart_at = time.monotonic() + _POLICY.delay_seconds(self._rapid_deaths)
        if self.fault is not None:
            _log.error("the process %s does not start: %s", self.name, self.fault)
        self._ended()

    def _read_reason(self) -> str | None:
        """Why the child that has ended did not start; None if it has started."""
        reason, self._reason = self._reason, -1
        try:
            return os.read(reason, _FAULT_BYTES_MAX).decode(errors="replace") or None
        except BlockingIOError:
            # A process that it has started has the other end still.
            return None
        finally:
            os.close(reason)

    def _fail_waiting(self, fault: str) -> None:
        """Ends the work that the child was started for. What cannot be ended now is tried again in the next round."""
        while self._first:
            tenant_id, dataset_id = next(iter(self._first))
            self._unstarted(self._process, tenant_id, dataset_id, fault)
            del self._first[tenant_id, dataset_id]

    def stop_soon(self) -> None:
        """Requests the child to end; `stop` waits for it."""
        with self._changing:
            child = self._child
        if child is not None and not has_ended(child):
            child.terminate()

    def stop(self, timeout_seconds: float, hand_over: Callable[[str], None]) -> None:
        """Waits for the child, and kills it after the timeout. Before that, `hand_over` frees what it holds."""
        with self._changing:
            child, self._child = self._child, None
        if child is None:
            return
        ends = time.monotonic() + timeout_seconds
        while not has_ended(child) and time.monotonic() < ends:
            time.sleep(0.02)
        hand_over(self._id)
        # `stop` has waited already.
        stop(child, ChildSpec(name=self.name, command=self._program, stop_seconds_max=0.0))
        os.close(self._reason)


class DerivedProcesses:
    """The processes beside a worker, of which none is started yet. Parameters and threads: as of `DerivedProcess`."""

    def __init__(
        self, worker_id: str, *, on_end: Callable[[], None], on_fault: Unstarted, stopping: threading.Event
    ) -> None:
        self._processes: dict[WriteProcess, DerivedProcess] = {
            process: DerivedProcess(process, worker_id, on_end=on_end, on_fault=on_fault, stopping=stopping)
            for process in WriteProcess
            if process is not WriteProcess.WORKER
        }

    def wake(self, process: WriteProcess, tenant_id: str, dataset_id: str) -> None:
        """Notes that the dataset may have work for this process. Returns at once."""
        self._processes[process].wake(tenant_id, dataset_id)

    def faults(self) -> Mapping[str, str]:
        """Why processes do not start, by their names."""
        by_name = {each.name: each.fault for each in self._processes.values()}
        return {name: fault for name, fault in by_name.items() if fault is not None}

    def loops(self) -> Iterator[Loop]:
        """The loops that start and watch them."""
        for each in self._processes.values():
            yield Loop(each.name, each.run, every_seconds=_ROUND_SECONDS, woken=each.woken)

    def stop_soon(self) -> None:
        """Requests all to end; `stop` waits for them."""
        for each in self._processes.values():
            each.stop_soon()

    def stop(self, ends: float, hand_over: Callable[[str], None]) -> None:
        """Waits for all until `ends` (a monotonic time), and kills the others. `hand_over` frees what they hold."""
        for each in self._processes.values():
            each.stop(max(0.0, ends - time.monotonic()), hand_over)
