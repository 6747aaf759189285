"""A service for the time of a demo: `headwater up` on a free port, with everything in one folder."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from app.runtime.child import ChildSpec, has_ended, launch, stop
from app.runtime.data_directory import ServiceNote

_READY_SECONDS_MAX = 240.0
_UP = (sys.executable, "-P", "-m", "clients.cli", "up")


class StartFailed(Exception):
    """The service did not start; the message has what it printed last."""


@contextmanager
def embedded_service(data: Path) -> Iterator[ServiceNote]:
    """Starts the service and stops it at the end. It stops by itself if this process is killed.

    Must be entered in the main thread. Raises StartFailed.
    """
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    note_file, log_file = data / "headwater.json", data / "up.log"
    # A note of an earlier service that was killed would be taken for this one's.
    note_file.unlink(missing_ok=True)
    spec = ChildSpec(
        name="headwater",
        command=(*_without_settings(), *_UP, "--port", "0", "--data", str(data)),
        stop_seconds_max=60.0,
        # Its own children are stopped in their order rather than killed with it.
        death_signal=signal.SIGTERM,
    )
    with log_file.open("wb") as log:
        process = launch(spec, log.fileno())
    try:
        deadline = time.monotonic() + _READY_SECONDS_MAX
        while not note_file.exists():
            if has_ended(process) or time.monotonic() > deadline:
                raise StartFailed(f"the service did not start:\n{log_file.read_text(errors='replace')}")
            time.sleep(0.05)
        yield msgspec.json.decode(note_file.read_bytes(), type=ServiceNote)
    finally:
        stop(process, spec)


def _without_settings() -> tuple[str, ...]:
    """A prefix of a command: a demo writes to servers of its own, never to those that the shell is set up for."""
    names = [name for name in os.environ if name.startswith("HEADWATER_")]
    return ("env", *(part for name in names for part in ("-u", name)))
