"""An hour of small writes to a few datasets: does anything grow that should not?

Clients send writes one after the other, each to the next dataset in turn, and wait until it is committed. At the end of
each part of the time, the table has a line: writes per second, what a write took, the memory of the API and of the
worker, and the files of the datasets. At the end the feed of one dataset is read from its start.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from bench.fairness import new_datasets
from bench.options import parser
from bench.processes import MEBIBYTE, memory, processor_seconds, tree
from bench.report import percentiles, publish
from bench.service import Service, running_service
from bench.small_writes import requests, send
from bench.spread_writes import in_turn
from bench.table import Table

_ARROW = "application/vnd.apache.arrow.stream"
_PAGE_CHANGES = 10_000


def state(service: Service) -> dict[str, Any]:
    """Memory of the API and of the worker with its child processes, and the files below the storage root."""
    api, worker = memory([service.process("app.main")]), memory(tree(service.process("workers.main")))
    stored = [path.stat().st_size for path in service.storage.rglob("*") if path.is_file()]
    return {
        "API MiB": round(api.resident / MEBIBYTE),
        "worker MiB": round(worker.proportional / MEBIBYTE),
        "files": len(stored),
        "stored MiB": round(sum(stored) / MEBIBYTE),
    }


def catch_up(service: Service, dataset: str) -> dict[str, Any]:
    """Reads the feed of a dataset from its start as Arrow; the rate and the processor time of the API."""
    api = service.process("app.main")
    with service.client() as client:
        table = Table(service=service, client=client, id=dataset)
        before, began, read = processor_seconds([api]), time.perf_counter(), 0
        for page in table.pages(_ARROW, limit=_PAGE_CHANGES):
            read = int(page.headers["headwater-next-since"])
        took, cost = time.perf_counter() - began, processor_seconds([api]) - before
    return {
        "changes": read,
        "seconds": round(took, 2),
        "changes/s": round(read / took),
        "changes/API cpu s": round(read / cost),
    }


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--minutes", type=float, default=60.0, help="how long the clients send")
    options.add_argument("--parts", type=int, default=12, help="lines of the table")
    options.add_argument("--datasets", type=int, default=4, help="datasets, all of one tenant")
    options.add_argument("--clients", type=int, default=8, help="clients at a time")
    options.add_argument("--rows", type=int, default=100, help="rows of a write")
    options.add_argument("--keys", type=int, default=10_000, help="keys that the rows are drawn from")
    chosen = options.parse_args()
    with running_service(chosen.scratch) as service:
        datasets = new_datasets(service, chosen.datasets)
        sources = [
            requests(service, dataset, rows=chosen.rows, keys=chosen.keys, wait=True) for dataset in datasets
        ]
        source = in_turn(sources)
        figures: list[dict[str, Any]] = [{"minute": 0.0, **state(service)}]
        for part in range(1, chosen.parts + 1):
            seconds = chosen.minutes * 60 / chosen.parts
            began = time.perf_counter()
            answers = asyncio.run(send(service, source, chosen.clients, seconds))
            took = time.perf_counter() - began
            if failed := [job for _, job in answers if job["state"] != "succeeded"]:
                raise SystemExit(f"{len(failed)} writes did not succeed, such as {failed[0]}")
            figures.append(
                {
                    "minute": round(part * chosen.minutes / chosen.parts, 1),
                    **state(service),
                    "writes": len(answers),
                    "committed/s": round(len(answers) / took, 1),
                    **{
                        f"{name} ms": value
                        for name, value in percentiles([each for each, _ in answers]).items()
                    },
                }
            )
            print(figures[-1], flush=True)
        caught_up = [catch_up(service, datasets[0]) for _ in range(2)]
    given = {name: getattr(chosen, name) for name in ("minutes", "datasets", "clients", "rows", "keys")}
    publish("endurance", given, figures)
    publish("endurance-catch-up", given, caught_up)


if __name__ == "__main__":
    main()
