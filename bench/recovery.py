"""The times of one machine: the start, the first write, the return after a kill of each process, and idle costs.

The service is started by `make up` of a built environment. Each kill ends one of its processes with SIGKILL. The clock
stops when a write that was sent after it is committed; for the process of views, when their refresh is. Processor
seconds are those of all processes of the service meanwhile. A run takes about four minutes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
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

# What the command of each process has among its words. The process of views is a child of the worker.
_DERIVED: Final = "workers.derived"
_PROCESSES: Final = {
    "API": API,
    "process of views": _DERIVED,
    "worker": WORKER,
    "Postgres": "postgres",
    "Redis (Valkey)": "valkey-server",
    "JVM": "org.apache.spark.deploy.SparkSubmit",
}
_RETURN_SECONDS_MAX: Final = 180.0
# What has ended again within 30 s waits before it is restarted.
_STEADY_SECONDS: Final = 31.0
# Spark ends the processes of Python that have had nothing to do for a minute.
_SETTLE_SECONDS: Final = 90.0
_REPEAT_SECONDS: Final = 0.05
_POLL_SECONDS: Final = 20


@dataclass(kw_only=True)
class Writer:
    """Writes single rows, each until it is committed. A request that gets no answer is repeated with its key."""

    client: httpx2.Client
    dataset: str = ""
    view: str = ""
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def register(self) -> None:
        """Makes the dataset."""
        fields = [{"name": "id", "type": "int64"}, {"name": "note", "type": "string"}]
        definition = {"name": "kills", "schema": {"fields": fields}, "record_key": ["id"]}
        self.dataset = self.client.post("/datasets", json=definition).raise_for_status().json()["id"]

    def derive(self) -> None:
        """Makes a view of the dataset, and waits for its rows."""
        view = {"name": "kills_count", "sql": "SELECT count(*) AS n FROM kills"}
        made = self.client.post("/views", json=view).raise_for_status().json()
        self.view = made["id"]
        self._await_change(0)

    def write(self) -> None:
        """Returns once a new row is committed."""
        row = {"id": next(self.numbers), "note": "row"}
        self._run("writes", {"operation": "upsert", "source": {"kind": "rows", "rows": [row]}})

    def refresh(self) -> None:
        """Returns once the view has the rows of a new write."""
        position = self._repeated(lambda: self._changes("now", wait=0))
        self.write()
        self._await_change(position)

    def restore(self) -> None:
        """Returns once the dataset is back at its first version."""
        self._run("restores", {"version": 1})

    def _run(self, kind: str, body: dict[str, Any]) -> None:
        headers = {"Idempotency-Key": f"{kind}-{next(self.numbers)}"}

        def run() -> None:
            answer = self.client.post(f"/datasets/{self.dataset}/{kind}", json=body, headers=headers)
            finished(self.client, answer.raise_for_status().json())

        self._repeated(run)

    def _await_change(self, position: int) -> None:
        while self._repeated(lambda: self._changes(position, wait=_POLL_SECONDS)) == position:
            pass

    def _changes(self, since: int | str, *, wait: int) -> int:
        """The position after the changes of the view from there on, which are awaited for this number of seconds."""
        params = {"since": since, "feed": "longpoll" if wait else "normal", "timeout": wait}
        answer = self.client.get(f"/datasets/{self.view}/changes", params=params).raise_for_status()
        return int(answer.json()["next_since"])

    def _repeated(self, run: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + _RETURN_SECONDS_MAX
        while True:
            try:
                return run()
            except (httpx2.TransportError, httpx2.HTTPStatusError) as error:
                if time.monotonic() > deadline:
                    raise SystemExit(f"no answer within {_RETURN_SECONDS_MAX:g} s: {error}") from error
                time.sleep(_REPEAT_SECONDS)


@contextmanager
def lap(rows: list[dict[str, Any]], what: str, service: Service) -> Iterator[None]:
    """Adds the seconds of the block, and the processor seconds of the service."""
    before = processor_seconds(tree(service.supervisor))
    began = time.monotonic()
    yield
    wall = time.monotonic() - began
    used = processor_seconds(tree(service.supervisor)) - before
    rows.append({"what": what, "seconds": round(wall, 2), "processor_seconds": round(used, 2)})


def steady(service: Service, word: str) -> psutil.Process:
    """The process that has this name, or this word in its command, once its next restart is immediate."""
    deadline = time.monotonic() + _RETURN_SECONDS_MAX
    while time.monotonic() < deadline:
        for child in tree(service.supervisor)[1:]:
            with suppress(psutil.NoSuchProcess):
                if child.name() == word or word in child.cmdline():
                    # That of views was not killed by itself before: a worker that is new has started it.
                    age = _STEADY_SECONDS if word == _DERIVED else time.time() - child.create_time()
                    time.sleep(max(0.0, _STEADY_SECONDS - age))
                    if child.is_running():
                        return child
        time.sleep(_REPEAT_SECONDS)
    raise SystemExit(f"no process of the service runs {word}")


def measure(scratch: Path, *, rounds: int, idle_seconds: float) -> list[dict[str, Any]]:
    """The figures of one service."""
    rows: list[dict[str, Any]] = []
    began = time.monotonic()
    with (
        running_service(scratch, waits_for_worker=False, by_make=True) as service,
        service.client() as client,
    ):
        writer = Writer(client=client)
        writer.register()
        rows.append(_since("make up, until the first 200", began, service))
        writer.write()
        rows.append(_since("make up, until the first write is visible", began, service))
        with lap(rows, "next write", service):
            writer.write()
        with lap(rows, "first restore", service):
            writer.restore()
        time.sleep(_SETTLE_SECONDS)
        rows.append(_idle(service, idle_seconds))
        with lap(rows, "first refresh of a view", service):
            writer.derive()
        rows += kills(service, writer, rounds)
    return rows


def kills(service: Service, writer: Writer, rounds: int) -> list[dict[str, Any]]:
    """The median return of each process."""
    taken: list[dict[str, Any]] = []
    for _ in range(rounds):
        for name, word in _PROCESSES.items():
            returns = writer.refresh if word == _DERIVED else writer.write
            if word == _DERIVED:
                # A new worker starts it with the first refresh.
                writer.refresh()
            process = steady(service, word)
            with lap(taken, f"kill -9: {name}", service):
                process.kill()
                returns()
    figures = ("seconds", "processor_seconds")
    return [
        {"what": what}
        | {
            key: round(statistics.median(row[key] for row in taken if row["what"] == what), 2)
            for key in figures
        }
        for what in dict.fromkeys(row["what"] for row in taken)
    ]


def _since(what: str, began: float, service: Service) -> dict[str, Any]:
    used = processor_seconds(tree(service.supervisor))
    return {
        "what": what,
        "seconds": round(time.monotonic() - began, 2),
        "processor_seconds": round(used, 2),
    }


def _idle(service: Service, seconds: float) -> dict[str, Any]:
    processes = tree(service.supervisor)
    before = processor_seconds(processes)
    time.sleep(seconds)
    used = processor_seconds(processes) - before
    return {
        "what": "without work",
        "seconds": seconds,
        "processor_seconds": round(used, 2),
        "processor_percent": round(100 * used / seconds, 1),
        "pss_mib": round(memory(processes).proportional / MEBIBYTE),
    }


def main() -> None:
    """Runs the measurement and publishes it."""
    arguments = parser(__doc__)
    arguments.add_argument("--rounds", type=int, default=2, help="kills of each process; the median is shown")
    arguments.add_argument("--idle-seconds", type=float, default=30.0)
    chosen = arguments.parse_args()
    rows = measure(chosen.scratch, rounds=chosen.rounds, idle_seconds=chosen.idle_seconds)
    publish("recovery", {"rounds": chosen.rounds, "idle_seconds": chosen.idle_seconds}, rows)


if __name__ == "__main__":
    main()
