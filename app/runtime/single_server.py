"""One server as a child of this process, without a supervisor: for tests and short commands."""

import subprocess
import time
from pathlib import Path
from typing import IO

from app.runtime.child import ChildSpec, describe_exit, has_ended, launch, reap, stop


class ServerError(Exception):
    """The server ended or did not become ready in time; the message holds the end of its log."""


class SingleServer:
    """Starts a child and waits until it serves; its output goes to ``logs / NAME.log``."""

    def __init__(self, spec: ChildSpec, logs: Path) -> None:
        self.spec = spec
        self.log = logs / f"{spec.name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The child's process number while it runs."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the child and return once it is ready.

        Raises:
            ServerError: it ended, or was not ready within ``spec.ready_seconds_max``.
        """
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._output = self.log.open("ab")
        self._process = launch(self.spec, self._output)
        deadline = time.monotonic() + self.spec.ready_seconds_max
        while not self.spec.ready():
            if has_ended(self._process):
                code = reap(self._process)
                raise ServerError(f"{self.spec.name} {describe_exit(code)}: {self._log_end()}")
            if time.monotonic() > deadline:
                self.stop()
                limit = self.spec.ready_seconds_max
                raise ServerError(f"{self.spec.name} was not ready after {limit:g} s: {self._log_end()}")
            time.sleep(0.02)

    def stop(self) -> None:
        """End the child if it runs."""
        if self._process is not None:
            stop(self._process, self.spec)
            self._process = None
        if self._output is not None:
            self._output.close()
            self._output = None

    def _log_end(self) -> str:
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-10:])
