"""The times of one machine: the start, the first write, the return after a kill of each process, and idle costs.

Each kill ends one process of `headwater up` with SIGKILL. The clock stops when a write that was sent after it is
committed. Processor seconds are those of all processes of the service meanwhile.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

import httpx2
import psutil

from bench.options import parser
from bench.processes import MEBIBYTE, memory, processor_seconds, tree
from bench.report import publish
from bench.service import API, WORKER, Service, finished, running_service

# What the command of each process has among its words.
_PROCESSES: Final = {
    "worker": WORKER,
    "JVM": "org.apache.spark.deploy.SparkSubmit",
    "API": API,
    "Postgres": "postgres",
    "Valkey": "valkey-server",
}
_RETURN_SECONDS_MAX: Final = 180.0
# The supervisor restarts at once what has lived for 30 s.
_SETTLE_SECONDS: Final = 32.0
_REPEAT_SECONDS: Final = 0.05


@dataclass(kw_only=True)
class Writer:
    """Writes single rows, each until it is committed. A request that gets no answer is repeated with its key."""

    client: httpx2.Client
    dataset: str = ""
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def register(self) -> None:
        """Makes the dataset."""
        fields = [{"name": "id", "type": "int64"}, {"name": "note", "type": "string"}]
        definition = {"name": "kills", "schema": {"fields": fields}, "record_key": ["id"]}
        self.dataset = self.client.post("/datasets", json=definition).raise_for_status().json()["id"]

    def write(self) -> None:
        """Returns once a new row is committed."""
        row = {"id": next(self.numbers), "note": "row"}
        self._run("writes", {"operation": "upsert", "source": {"kind": "rows", "rows": [row]}})

    def restore(self) -> None:
        """Returns once the dataset is back at its first version."""
        self._run("restores", {"version": 1})

    def _run(self, kind: str, body: dict[str, Any]) -> None:
        headers = {"Idempotency-Key": f"{kind}-{next(self.numbers)}"}
        deadline = time.monotonic() + _RETURN_SECONDS_MAX
        while True:
            try:
                answer = self.client.post(f"/datasets/{self.dataset}/{kind}", json=body, headers=headers)
                finished(self.client, answer.raise_for_status().json())
            except (httpx2.TransportError, httpx2.HTTPStatusError) as error:
                if time.monotonic() > deadline:
                    raise SystemExit(f"not committed within {_RETURN_SECONDS_MAX:g} s: {error}") from error
                time.sleep(_REPEAT_SECONDS)
            else:
                return


@contextmanager
def lap(rows: list[dict[str, Any]], what: str, service: Service | None = None) -> Iterator[None]:
    """Adds the seconds of the block, and the processor seconds of the service."""
    before = 0.0 if service is None else processor_seconds(tree(service.supervisor))
    began = time.monotonic()
    yield
    wall = time.monotonic() - began
    row: dict[str, Any] = {"what": what, "seconds": round(wall, 2)}
    if service is not None:
        row["processor_seconds"] = round(processor_seconds(tree(service.supervisor)) - before, 2)
    rows.append(row)


def kill(service: Service, word: str) -> None:
    """Kills the process that has this name, or this word in its command."""
    for child in service.supervisor.children():
        with suppress(psutil.NoSuchProcess):
            if child.name() == word or word in child.cmdline():
                child.kill()
                return
    raise LookupError(f"no child of the service runs {word}")


def measure(scratch: Path, *, rounds: int, idle_seconds: float) -> list[dict[str, Any]]:
    """The figures of one service."""
    rows: list[dict[str, Any]] = []
    began = time.monotonic()
    with running_service(scratch, waits_for_worker=False) as service, service.client() as client:
        announced = time.monotonic() - began
        used = processor_seconds(tree(service.supervisor))
        rows.append(
            {"what": "start, until the API serves", "seconds": round(announced, 2)}
            | {"processor_seconds": round(used, 2)}
        )
        writer = Writer(client=client)
        writer.register()
        with lap(rows, "first write, from then on", service):
            writer.write()
        with lap(rows, "next write", service):
            writer.write()
        with lap(rows, "first restore", service):
            writer.restore()
        time.sleep(_SETTLE_SECONDS)
        rows.append(_idle(service, idle_seconds))
        for name, word in _PROCESSES.items():
            taken: list[dict[str, Any]] = []
            for _ in range(rounds):
                with lap(taken, name, service):
                    kill(service, word)
                    writer.write()
                # The next kill is one of a steady service.
                time.sleep(_SETTLE_SECONDS)
            rows.append(
                {"what": f"kill -9: {name}"}
                | {
                    key: round(statistics.median(each[key] for each in taken), 2)
                    for key in ("seconds", "processor_seconds")
                }
            )
    return rows


def _idle(service: Service, seconds: float) -> dict[str, Any]:
    processes = tree(service.supervisor)
    before = processor_seconds(processes)
    time.sleep(seconds)
    return {
        "what": "idle",
        "seconds": seconds,
        "processor_seconds": round(processor_seconds(processes) - before, 2),
        "proportional_mib": round(memory(processes).proportional / MEBIBYTE),
    }


def main() -> None:
    """Runs the measurement and publishes it."""
    arguments = parser(__doc__)
    arguments.add_argument("--rounds", type=int, default=3, help="kills of each process; the median is shown")
    arguments.add_argument("--idle-seconds", type=float, default=60.0)
    chosen = arguments.parse_args()
    rows = measure(chosen.scratch, rounds=chosen.rounds, idle_seconds=chosen.idle_seconds)
    publish("recovery", {"rounds": chosen.rounds, "idle_seconds": chosen.idle_seconds}, rows)


if __name__ == "__main__":
    main()
