"""Copies a child's output line by line into a bounded file."""

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import IO

BYTES_MAX = 16 * 1024 * 1024
OLDER_FILES = 2
LINE_BYTES_MAX = 64 * 1024
REPORT_SECONDS = 60.0
"""The time between two reports that lines are lost."""


class _LinesFile(RotatingFileHandler):
    """A file that loses lines while they cannot be written, as on a full disk."""

    def __init__(self, path: Path, report: Callable[[str], None]) -> None:
        super().__init__(
            path, maxBytes=BYTES_MAX, backupCount=OLDER_FILES, encoding="utf-8", errors="replace"
        )
        self._report = report
        self._reported_at = float("-inf")

    def handleError(self, _: logging.LogRecord) -> None:  # noqa: N802 (a name of the standard library)
        """Reports the error instead of a traceback for each line."""
        now = time.monotonic()
        if now - self._reported_at >= REPORT_SECONDS:
            self._reported_at = now
            self._report(f"lines of {self.baseFilename} are lost: {sys.exc_info()[1]}")


class ChildLog:
    """Writes the output of a child to ``logs / NAME.log``, as it is: children write the time of each event.

    Older lines move to ``NAME.log.1`` and on, so that a child with much output cannot fill the disk.
    """

    def __init__(self, logs: Path, name: str, report: Callable[[str], None] = lambda _: None) -> None:
        """`report`: called with a sentence while lines cannot be written, once a minute at most."""
        self.name = name
        self.path = logs / f"{name}.log"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._handler = _LinesFile(self.path, report)
        self._pumps: list[threading.Thread] = []

    def follow(self, process: subprocess.Popen[bytes]) -> None:
        """Copies the child's output until it ends. The child must be started with its output piped."""
        if process.stdout is None:
            raise ValueError("the child's output is not piped")
        self._pumps = [pump for pump in self._pumps if pump.is_alive()]
        # A daemon thread: a grandchild that outlives the child may keep the pipe open.
        pump = threading.Thread(
            target=self._pump, args=(process.stdout,), name=f"log-{self.name}", daemon=True
        )
        self._pumps.append(pump)
        pump.start()

    def tail(self, lines: int = 15) -> str:
        """The path of the log, and its last lines."""
        for pump in self._pumps:
            pump.join(timeout=0.5)
        last = self.path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
        return f"log: {self.path}\n" + "\n".join(f"  {line}" for line in last)

    def close(self) -> None:
        """Closes the log, after the last lines of children that have ended."""
        for pump in self._pumps:
            pump.join(timeout=0.5)
        # What a full disk does not take is lost.
        with suppress(OSError):
            self._handler.close()

    def _pump(self, output: IO[bytes]) -> None:
        with output:
            # Bounded, since a line without an end would otherwise fill this process's memory.
            while line := output.readline(LINE_BYTES_MAX):
                text = line.decode("utf-8", errors="replace").rstrip()
                self._handler.handle(logging.LogRecord(self.name, logging.INFO, "", 0, text, None, None))
