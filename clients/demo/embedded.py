"""A service for the duration of a demo: `headwater up` on a free port, with all data in one folder."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import msgspec

from app.infra.runtime.child import ChildSpec, has_ended, launch, stop
from app.infra.runtime.data_directory import ServiceNote
from app.infra.runtime.supervisor import REPORT

_WORKER_READY = "worker is ready ("
_READY_SECONDS_MAX = 240.0
_UP = (sys.executable, "-P", "-m", "clients.cli", "up")


class StartFailed(Exception):
    """The service did not start. The message has its last output."""


@contextmanager
def embedded_service(data: Path, on_report: Callable[[str], None]) -> Iterator[ServiceNote]:
    """Starts the service, and stops it at the end. The service also stops if this process is killed.

    Calls `on_report` with what `headwater up` reports while the service starts. Must be entered in the main thread.

    Raises StartFailed.
    """
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    note_file, log_file = data / "headwater.json", data / "up.log"
    # The note of an earlier service that was killed would be read as this one's.
    note_file.unlink(missing_ok=True)
    spec = ChildSpec(
        name="headwater",
        command=(*_without_settings(), *_UP, "--port", "0", "--data", str(data)),
        stop_seconds_max=60.0,
        # The service stops its own children in order.
        death_signal=signal.SIGTERM,
    )
    with log_file.open("wb") as log:
        process = launch(spec, log.fileno())
    try:
        deadline = time.monotonic() + _READY_SECONDS_MAX
        with log_file.open(errors="replace") as lines:
            # What a demonstration measures does not wait for the start of the worker.
            while not _pass_on(lines, on_report):
                if has_ended(process) or time.monotonic() > deadline:
                    raise StartFailed(f"the service did not start:\n{log_file.read_text(errors='replace')}")
                time.sleep(0.05)
        yield msgspec.json.decode(note_file.read_bytes(), type=ServiceNote)
    finally:
        stop(process, spec)


def _pass_on(lines: TextIO, on_report: Callable[[str], None]) -> bool:
    """Calls `on_report` with the reports since the last call. A line that has no end yet waits.

    Returns whether one of them is that the worker is ready: it is the last one of a start.
    """
    position, ready = lines.tell(), False
    while (line := lines.readline()).endswith("\n"):
        if line.startswith(REPORT):
            report = line.removeprefix(REPORT).rstrip()
            ready = ready or report.startswith(_WORKER_READY)
            on_report(report)
        position = lines.tell()
    lines.seek(position)
    return ready


def _without_settings() -> tuple[str, ...]:
    """A command prefix that clears the settings of the shell: a demo writes to its own servers only."""
    names = [name for name in os.environ if name.startswith("HEADWATER_")]
    return ("env", *(part for name in names for part in ("-u", name)))
