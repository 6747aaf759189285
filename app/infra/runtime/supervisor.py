"""Supervises child processes: starts them in order, restarts those that exit, stops them in reverse order."""

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from app.infra.runtime.child import ChildSpec, describe_exit, has_ended, launch, reap, stop
from app.infra.runtime.child_log import ChildLog

TICK_SECONDS = 0.05
# What each line begins with that the supervisor prints.
REPORT = "headwater: "


class StartError(Exception):
    """A child did not become ready. The message has its name, the path of its log, and the log's last lines."""


class StopRequestedError(Exception):
    """The stop was requested during the start."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RestartPolicy:
    """The delay before an exited child is restarted. Times are in seconds."""

    steady_seconds: float = 30.0
    """A child that lived for this time was healthy: its next restart is immediate."""
    delay_seconds_first: float = 0.5
    delay_seconds_max: float = 30.0
    deaths_before_ready_max: int = 5
    """A child that exits this number of times before it was ready is misconfigured; the start fails."""

    def delay_seconds(self, rapid_deaths: int) -> float:
        """The delay before the next restart after this number of consecutive short lives."""
        if rapid_deaths <= 1:
            return 0.0
        # The exponent is limited, so that a child that crashes for days cannot overflow a float.
        return min(self.delay_seconds_max, self.delay_seconds_first * 2.0 ** min(rapid_deaths - 2, 30))


class _Child:
    """The supervisor's state of one child; changed by the supervisor's own thread only."""

    def __init__(self, spec: ChildSpec, log: ChildLog) -> None:
        self.spec = spec
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0
        self.restart_at = 0.0
        self.restarts = 0
        self.rapid_deaths = 0
        self.is_held = spec.is_held
        self.first_started_at = time.monotonic()

    def launch(self) -> None:
        has_input = self.spec.input_stays_open or self.spec.is_held
        self.process = launch(
            self.spec, subprocess.PIPE, subprocess.PIPE if has_input else subprocess.DEVNULL
        )
        self.started_at = time.monotonic()
        self.log.follow(self.process)
        if not self.is_held:
            self.release()

    def release(self) -> None:
        """Lets the child go on, if it is one that waits for that, and those that are started after it."""
        self.is_held = False
        if self.spec.is_held and self.process is not None and self.process.stdin is not None:
            # It may have ended meanwhile.
            with suppress(BrokenPipeError):
                self.process.stdin.write(b"\n")
                self.process.stdin.flush()


def to_standard_error(message: str) -> None:
    """Reports a message to the user who started Headwater."""
    print(f"{REPORT}{message}", file=sys.stderr, flush=True)


class Supervisor:
    """Starts, monitors and stops children.

    All methods except ``request_stop`` belong to one thread, which must live as long as the children: the kernel ends
    them when it ends. ``request_stop`` may be called from any thread and from signal handlers.
    """

    def __init__(
        self,
        logs: Path,
        *,
        policy: RestartPolicy | None = None,
        report: Callable[[str], None] = to_standard_error,
    ) -> None:
        self.logs = logs
        self._policy = policy or RestartPolicy()
        self._report = report
        self._children: dict[str, _Child] = {}
        # No event: a signal handler would wait for the lock of its own thread if it interrupts a wait for the event.
        self._stop_requested = False

    def pid(self, name: str) -> int | None:
        """The child's process number; None before it is restarted."""
        process = self._children[name].process
        return None if process is None else process.pid

    def start(self, spec: ChildSpec, *, wait: bool = True) -> None:
        """Starts a child; with ``wait``, returns once it is ready.

        Raises:
            StartError: it was not ready in time, or exited repeatedly.
            StopRequestedError: the stop was requested meanwhile.
        """
        if spec.name in self._children:
            raise ValueError(f"a child with the name {spec.name} is already running")
        child = _Child(spec, ChildLog(self.logs, spec.name, to_standard_error))
        self._children[spec.name] = child
        child.launch()
        if wait:
            self.wait_ready(spec.name)

    def release(self, name: str) -> None:
        """Sends a held child the line that it waits for, and each one that is started in its place."""
        self._children[name].release()

    def wait_ready(self, name: str) -> None:
        """Returns once the child is ready, and supervises all others meanwhile. Raises as ``start`` does."""
        child = self._children[name]
        deadline = time.monotonic() + child.spec.ready_seconds_max
        while child.process is None or not child.spec.ready():
            self._pause()
            if child.rapid_deaths >= self._policy.deaths_before_ready_max:
                raise StartError(
                    f"{name} exited {child.rapid_deaths} times without becoming ready; {child.log.tail()}"
                )
            if time.monotonic() > deadline:
                limit = child.spec.ready_seconds_max
                raise StartError(f"{name} was not ready after {limit:g} s; {child.log.tail()}")
        self._report(f"{name} is ready ({time.monotonic() - child.first_started_at:.1f} s after its start)")

    def run(self, spec: ChildSpec) -> None:
        """Runs a command to its end, and supervises the children meanwhile.

        Raises:
            StartError: it failed, or ran longer than ``spec.ready_seconds_max``.
            StopRequestedError: the stop was requested meanwhile; the command is stopped first.
        """
        log = ChildLog(self.logs, spec.name, to_standard_error)
        process = launch(spec, subprocess.PIPE)
        log.follow(process)
        deadline = time.monotonic() + spec.ready_seconds_max
        try:
            while not has_ended(process):
                self._pause()
                if time.monotonic() > deadline:
                    raise StartError(
                        f"{spec.name} ran longer than {spec.ready_seconds_max:g} s; {log.tail()}"
                    )
        finally:
            if not has_ended(process):
                stop(process, spec)
            code = reap(process)
            log.close()
        if code != 0:
            raise StartError(f"{spec.name} {describe_exit(code)}; {log.tail()}")

    def monitor(self) -> None:
        """Supervises the children until the stop is requested."""
        with suppress(StopRequestedError):
            while True:
                self._pause()

    def request_stop(self) -> None:
        """Makes ``monitor`` return, and aborts a start in progress."""
        self._stop_requested = True

    def stop(self) -> None:
        """Stops all children, the last started first, each within its time limit."""
        for child in reversed(self._children.values()):
            if child.process is not None and not stop(child.process, child.spec):
                limit = child.spec.stop_seconds_max
                self._report(f"{child.spec.name} did not stop within {limit:g} s and was killed")
            child.process = None
            child.log.close()
        self._children.clear()

    def _pause(self) -> None:
        """One step of a wait: sleeps, supervises the children, and raises if a stop was requested."""
        time.sleep(TICK_SECONDS)
        if self._stop_requested:
            raise StopRequestedError
        self._restart_ended()

    def _restart_ended(self) -> None:
        for child in self._children.values():
            if child.process is None:
                if time.monotonic() >= child.restart_at:
                    child.launch()
            elif has_ended(child.process):
                self._record_exit(child, child.process)

    def _record_exit(self, child: _Child, process: subprocess.Popen[bytes]) -> None:
        """Records an exit and schedules the restart."""
        code = reap(process)
        child.process = None
        lived_seconds = time.monotonic() - child.started_at
        child.rapid_deaths = 1 if lived_seconds >= self._policy.steady_seconds else child.rapid_deaths + 1
        child.restarts += 1
        delay = self._policy.delay_seconds(child.rapid_deaths)
        child.restart_at = time.monotonic() + delay
        when = "now" if delay == 0 else f"in {delay:g} s"
        self._report(
            f"{child.spec.name} (pid {process.pid}) {describe_exit(code)} after {lived_seconds:.1f} s; "
            f"restart {child.restarts} {when}; log: {child.log.path}"
        )
