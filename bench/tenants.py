"""Many tenants on one deployment: making them, listing, small writes in turn, and what an idle second costs.

The tenants are made in steps, each with the same number of datasets. At every step the same work is measured: what it
costs should not grow with the number of tenants. The writes go to one dataset after another, of one tenant after the
other, and each is waited for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import httpx2
import msgspec

from bench.fairness import new_datasets, new_tenant
from bench.options import parser
from bench.processes import MEBIBYTE, memory, processor_seconds, tree
from bench.report import percentiles, publish
from bench.service import Service, running_service
from bench.small_writes import Connection, requests

_KEYS = 10_000
_LISTS = 50

Place = tuple[Service, str]


def grow(service: Service, made: list[list[Place]], tenants: int, datasets: int) -> dict[str, Any]:
    """Makes tenants up to this number; milliseconds of each, and of each dataset."""
    began, new = time.perf_counter(), tenants - len(made)
    of_datasets = 0.0
    while len(made) < tenants:
        tenant = new_tenant(service, f"tenant-{len(made)}")
        started = time.perf_counter()
        made.append([(tenant, dataset) for dataset in new_datasets(tenant, datasets)])
        of_datasets += time.perf_counter() - started
    of_tenants = time.perf_counter() - began - of_datasets
    return {
        "make a tenant ms": round(1000 * of_tenants / new, 1),
        "make a dataset ms": round(1000 * of_datasets / (new * datasets), 1),
    }


def lists(service: Service, tenant: Service) -> dict[str, Any]:
    """Milliseconds of a list of datasets, of its own tenant, and of a list of tenants."""
    with tenant.client() as own, service.client() as operator:
        return {
            "list datasets ms": _each(own, "/datasets", {"page_size": 10}),
            "list tenants ms": _each(operator, "/tenants", {"page_size": 10}),
        }


def _each(client: httpx2.Client, path: str, parameters: dict[str, int]) -> float:
    client.get(path, params=parameters).raise_for_status()
    began = time.perf_counter()
    for _ in range(_LISTS):
        client.get(path, params=parameters).raise_for_status()
    return round(1000 * (time.perf_counter() - began) / _LISTS, 2)


async def write_in_turn(places: Iterator[Place], writes: int, clients: int, rows: int) -> list[float]:
    """Seconds of each write, from its request until it is committed."""
    waits: list[float] = []

    async def client() -> None:
        while len(waits) + busy <= writes:
            tenant, dataset = next(places)
            source = requests(tenant, dataset, rows=rows, keys=_KEYS, wait=True)
            connection = await Connection.open(tenant.url)
            began = time.perf_counter()
            status, body = await connection.ask(next(source))
            waits.append(time.perf_counter() - began)
            connection.writer.close()
            if status != 200 or msgspec.json.decode(body)["state"] != "succeeded":
                raise SystemExit(f"a write was answered with {status}: {body.decode()}")

    busy = clients
    await asyncio.gather(*(client() for _ in range(clients)))
    return waits


def measure(service: Service, made: list[list[Place]], places: Iterator[Place], given: dict[str, Any]) -> Any:
    """The figures of a step."""
    api, worker = service.process("app.main"), service.process("workers.main")
    everything = tree(service.supervisor)
    parts = {"api": tree(api), "worker": tree(worker)}
    parts["other"] = [each for each in everything if each not in parts["api"] + parts["worker"]]
    before = {name: processor_seconds(part) for name, part in parts.items()}
    waits = asyncio.run(write_in_turn(places, given["writes"], given["clients"], given["rows"]))
    spent = {name: processor_seconds(part) - before[name] for name, part in parts.items()}
    time.sleep(given["settle"])
    idle = processor_seconds(everything)
    time.sleep(given["idle"])
    idle = processor_seconds(everything) - idle
    return {
        "writes": len(waits),
        **{f"write {name} ms": value for name, value in percentiles(waits).items()},
        **{f"{name} cpu ms/write": round(1000 * each / len(waits), 1) for name, each in spent.items()},
        "idle cpu ms/s": round(1000 * idle / given["idle"], 1),
        "api MiB": memory(parts["api"]).proportional // MEBIBYTE,
        "worker MiB": memory(parts["worker"]).proportional // MEBIBYTE,
        **lists(service, made[0][0][0]),
    }


def measure_all(
    service: Service, counts: list[int], datasets: int, given: dict[str, Any]
) -> list[dict[str, Any]]:
    """The lines of the table."""
    made: list[list[Place]] = []
    figures: list[dict[str, Any]] = []
    for count in sorted(counts):
        making = grow(service, made, count, datasets)
        # One dataset of each tenant after the other, then the next of each.
        places = cycle([of_tenant[number] for number in range(datasets) for of_tenant in made])
        if not figures:
            measure(service, made, places, {**given, "settle": 0.0, "idle": 1.0})
        figures.append({"tenants": count, **making, **measure(service, made, places, given)})
        print(figures[-1], flush=True)
    return figures


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument(
        "--tenants", type=int, nargs="+", default=[10, 100, 1_000], help="how many there are at each step"
    )
    options.add_argument("--datasets", type=int, default=10, help="datasets of each tenant")
    options.add_argument("--clients", type=int, default=4, help="clients that write at a time")
    options.add_argument("--rows", type=int, default=100, help="rows of a write")
    options.add_argument("--writes", type=int, default=300, help="writes of each step")
    options.add_argument(
        "--settle", type=float, default=10.0, help="seconds between the writes and the idle time"
    )
    options.add_argument("--idle", type=float, default=30.0, help="idle seconds that are measured")
    chosen = options.parse_args()
    given = {name: getattr(chosen, name) for name in ("clients", "rows", "writes", "settle", "idle")}
    with running_service(chosen.scratch) as service:
        figures = measure_all(service, chosen.tenants, chosen.datasets, given)
    publish("tenants", {"datasets": chosen.datasets, **given}, figures)


if __name__ == "__main__":
    main()
