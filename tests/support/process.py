"""One process of a deployment, which tests start, freeze and kill."""

from __future__ import annotations

import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil

from app.infra.runtime.child import ChildSpec, has_ended, launch, reap, stop
from tests.support.waiting import until

_DAEMON = "workers.engine.python_daemon"


class Process:
    """A child that is restarted only when asked to. Its output goes to `logs / NAME.log`."""

    def __init__(self, spec: ChildSpec, logs: Path) -> None:
        self.spec = spec
        self._log = logs / f"{spec.name}.log"
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._running is not None, f"{self.spec.name} does not run"
        return self._running.pid

    @property
    def runs(self) -> bool:
        return self._running is not None

    @property
    def alive(self) -> bool:
        """Whether it has not ended by itself."""
        return self._running is not None and not has_ended(self._running)

    def log(self) -> str:
        """What it has printed so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def start(self, *, wait: bool = True) -> None:
        """Starts it; with `wait`, returns once it is ready."""
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as output:
            input_ = subprocess.PIPE if self.spec.input_stays_open else subprocess.DEVNULL
            self._running = launch(self.spec, output, input_)
        if wait:
            self.wait_ready()

    def wait_ready(self) -> None:
        until(self._ready, f"{self.spec.name}: {self._log}", seconds_max=self.spec.ready_seconds_max)

    def _ready(self) -> bool:
        if self._running is not None and has_ended(self._running):
            # A server may need a moment until the traces of its killed predecessor are gone.
            reap(self._running)
            self.start(wait=False)
        return self.spec.ready()

    def kill(self) -> None:
        """`kill -9`. What it started must end by itself, as it must for the supervisor."""
        running, self._running = self._running, None
        assert running is not None
        started = psutil.Process(running.pid).children(recursive=True)
        running.kill()
        reap(running)
        for process in started:
            with suppress(psutil.NoSuchProcess):
                process.resume()
        _, alive = psutil.wait_procs(started, timeout=10)
        assert not alive, f"left behind by {self.spec.name}: {alive}"

    def freeze(self) -> None:
        """Stops it and all it started in their tracks (SIGSTOP)."""
        leader = psutil.Process(self.pid)
        leader.suspend()
        for process in leader.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                process.suspend()

    def thaw(self) -> None:
        """Lets it go on."""
        leader = psutil.Process(self.pid)
        for process in [*leader.children(recursive=True), leader]:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Ends it in order, if it runs."""
        if self._running is not None:
            stop(self._running, self.spec)
            self._running = None


def spark_tasks(pid: int) -> list[psutil.Process]:
    """The processes that run the Spark tasks of a driver: what their daemon has forked."""
    running = [process for process in _started_by(pid) if process.status() != psutil.STATUS_ZOMBIE]
    daemons = {process.pid for process in running if _DAEMON in process.cmdline()}
    return [process for process in running if process.ppid() in daemons]


def java_of(pid: int) -> psutil.Process:
    """The JVM that a driver has started."""
    [java] = [child for child in _started_by(pid) if child.name() == "java"]
    return java


def _started_by(pid: int) -> list[psutil.Process]:
    """What a driver has started, without the processes beside it, which are drivers themselves."""
    found: list[psutil.Process] = []
    for child in psutil.Process(pid).children():
        with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            if "workers.derived" not in child.cmdline():
                found += [child, *_started_by(child.pid)]
    return found
