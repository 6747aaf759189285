"""A whole service for one measurement: started as `headwater up` starts it, on a data folder that is thrown away."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

ROOT = Path(__file__).parents[1]
_START_SECONDS_MAX = 120.0
_STOP_SECONDS_MAX = 40.0


class JobFailed(SystemExit):
    """A write did not succeed; `problem` says why. Unless somebody has a use for that, it ends the measurement."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        super().__init__(f"a write did not succeed: {json.dumps(job, indent=2)}")
        self.problem: Mapping[str, Any] = job["error"] or {"title": f"the job is {job['state']}"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """A running service: its address and key, its data folder, and the processes it consists of."""

    url: str
    api_key: str
    data: Path
    supervisor: psutil.Process

    @property
    def headers(self) -> dict[str, str]:
        """What a client must send."""
        return {"Authorization": f"Bearer {self.api_key}"}

    def client(self) -> httpx.Client:
        """A client that waits as long as the slowest write takes."""
        return httpx.Client(base_url=self.url, headers=self.headers, timeout=600, trust_env=False)

    def process(self, module: str) -> psutil.Process:
        """The API (`app.main`) or the worker (`workers.main`)."""
        for child in self.supervisor.children():
            if module in child.cmdline():
                return child
        raise LookupError(f"no child of the service runs {module}")


@contextmanager
def running_service(scratch: Path, environment: Mapping[str, str] | None = None) -> Iterator[Service]:
    """Starts a service in a new folder below `scratch`, and stops and removes it at the end."""
    scratch.mkdir(parents=True, exist_ok=True)
    data = Path(tempfile.mkdtemp(prefix="headwater-bench-", dir=scratch))
    log = data.with_suffix(".log")
    # Measured are the embedded servers, whatever else this shell is set up for.
    own = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    try:
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "clients.cli", "up", "--port", "0", "--data", str(data)],
                cwd=ROOT,
                env={**own, **(environment or {})},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            note = _announced(process, data / "headwater.json", log)
            supervisor = psutil.Process(process.pid)
            yield Service(url=note["url"], api_key=note["api_key"], data=data, supervisor=supervisor)
        finally:
            _stop(process)
    finally:
        shutil.rmtree(data, ignore_errors=True)
        log.unlink(missing_ok=True)


def _announced(process: subprocess.Popen[bytes], note: Path, log: Path) -> dict[str, Any]:
    deadline = time.monotonic() + _START_SECONDS_MAX
    while not note.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"the service did not start:\n{log.read_text(errors='replace')}")
        time.sleep(0.05)
    found: dict[str, Any] = json.loads(note.read_text())
    return found


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def finished(client: httpx.Client, job: Mapping[str, Any]) -> dict[str, Any]:
    """The job once it has succeeded. Raises JobFailed."""
    found: dict[str, Any] = dict(job)
    while found["state"] in {"queued", "running"}:
        found = client.get(found["links"]["self"], params={"wait": 60}).raise_for_status().json()
    if found["state"] != "succeeded":
        raise JobFailed(found)
    return found
