"""A quiet tenant beside noisy ones: its single small writes, each waited for, with 0, 1, 10 and 50 noisy tenants.

With `--large`, the noisy tenant has large writes instead: two clients, each of which upserts Parquet files with half
as many rows as a copy_on_write table of its own has, one after another.

Every noisy tenant keeps a backlog in each of its datasets: two writers by default, each of which sends its next write
when the last one is committed, so that a group of writes waits whenever one runs. The quiet tenant sends one write,
waits until it is committed, and pauses. All of it is on one machine: the API, the worker and this process share its
cores, so the times beside many tenants also contain the load of these.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import httpx2
import msgspec
import numpy as np

from bench.options import parser
from bench.report import percentiles, publish
from bench.service import Service, running_service
from bench.small_writes import Connection, requests
from bench.table import Table, half_new
from bench.trips import definition

_SETTLE_SECONDS = 5.0
_KEYS = 10_000


@dataclass(kw_only=True)
class Backlog:
    """The writers of the noisy tenants, and how many writes of theirs were committed."""

    committed: int = 0


def new_tenant(service: Service, name: str) -> Service:
    """The service as a new tenant sees it."""
    with service.client() as operator:
        made = operator.post("/tenants", json={"name": name}).raise_for_status().json()
    return replace(service, api_key=made["api_key"])


def new_datasets(tenant: Service, count: int) -> list[str]:
    """Ids of new datasets of the tenant."""
    with tenant.client() as client:
        made = [client.post("/datasets", json=definition(f"trips_{n}", buckets=1)) for n in range(count)]
        return [answer.raise_for_status().json()["id"] for answer in made]


async def write(tenant: Service, source: Iterator[bytes]) -> float:
    """Seconds from a write's request to the answer that it is committed."""
    connection = await Connection.open(tenant.url)
    sent = time.perf_counter()
    status, body = await connection.ask(next(source))
    seconds = time.perf_counter() - sent
    connection.writer.close()
    # 202: it was not committed within the longest wait.
    if status not in {200, 202}:
        raise SystemExit(f"a write was answered with {status}: {body.decode()}")
    job = msgspec.json.decode(body)
    if job["state"] not in {"succeeded", "queued", "running"}:
        raise SystemExit(f"a write has {job['state']}: {job['error']}")
    return seconds


@asynccontextmanager
async def backlog(noisy: list[tuple[Service, str]], writers: int, rows: int) -> AsyncIterator[Backlog]:
    """Keeps writers at these datasets of noisy tenants."""
    done = Backlog()

    async def keep(tenant: Service, source: Iterator[bytes]) -> None:
        while True:
            await write(tenant, source)
            done.committed += 1

    sources = [
        (tenant, requests(tenant, dataset, rows=rows, keys=_KEYS, wait=True)) for tenant, dataset in noisy
    ]
    tasks = [asyncio.create_task(keep(tenant, source)) for tenant, source in sources for _ in range(writers)]
    try:
        await asyncio.sleep(_SETTLE_SECONDS if tasks else 0)
        yield done
        for task in tasks:
            if task.done():
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def measure(
    quiet: Service, dataset: str, done: Backlog, *, tenants: int, given: dict[str, Any]
) -> dict[str, Any]:
    """One line of the table: the quiet tenant's writes beside those of noisy tenants."""
    source = requests(quiet, dataset, rows=1, keys=_KEYS, wait=True)
    began, before, waits = time.perf_counter(), done.committed, []
    for _ in range(given["writes"]):
        waits.append(await write(quiet, source))
        await asyncio.sleep(given["pause"])
    seconds = time.perf_counter() - began
    return {
        "noisy tenants": tenants,
        "writes": len(waits),
        **{f"{name} ms": value for name, value in percentiles(waits).items()},
        "noisy writes/s": round((done.committed - before) / seconds, 2),
    }


@asynccontextmanager
async def large_writes(tenant: Service, rows: int) -> AsyncIterator[Backlog]:
    """Keeps a large upsert in each of two tables of a tenant, which are loaded first."""
    done, ending = Backlog(), threading.Event()

    def load(client: httpx2.Client, number: int) -> Table:
        table = Table.create(tenant, client, f"large_{number}", buckets=4)
        table.write("bulk_insert", np.arange(rows), ts=0)
        return table

    def keep(table: Table) -> None:
        for ts in count(1):
            if ending.is_set():
                return
            table.write("upsert", half_new(rows // 2, of=rows, first_new=rows * ts, seed=ts), ts=ts)
            done.committed += 1

    with tenant.client() as client:
        tables = [await asyncio.to_thread(load, client, number) for number in range(2)]
        writing = [asyncio.create_task(asyncio.to_thread(keep, table)) for table in tables]
        try:
            await asyncio.sleep(_SETTLE_SECONDS)
            yield done
        finally:
            ending.set()
            await asyncio.gather(*writing)


async def measure_large(service: Service, rows: int, given: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines of the table with large writes."""
    quiet = new_tenant(service, "quiet")
    [own] = new_datasets(quiet, 1)
    await measure(quiet, own, Backlog(), tenants=0, given={**given, "writes": 20, "pause": 0.0})
    figures = [await measure(quiet, own, Backlog(), tenants=0, given=given)]
    async with large_writes(new_tenant(service, "noisy"), rows) as done:
        figures.append(await measure(quiet, own, done, tenants=1, given=given))
    return figures


async def measure_all(service: Service, counts: list[int], datasets: int, given: dict[str, Any]) -> Any:
    """The lines of the table, with each median and 99th percentile also as a multiple of the quiet tenant's alone."""
    quiet = new_tenant(service, "quiet")
    [own] = new_datasets(quiet, 1)
    noisy = [new_tenant(service, f"noisy-{number}") for number in range(max(counts, default=0))]
    of_noisy = [[(tenant, dataset) for dataset in new_datasets(tenant, datasets)] for tenant in noisy]
    # Warms everything up.
    await measure(quiet, own, Backlog(), tenants=0, given={**given, "writes": 20, "pause": 0.0})
    figures: list[dict[str, Any]] = []
    for tenants in [0, *counts]:
        beside = [each for tenant in of_noisy[:tenants] for each in tenant]
        async with backlog(beside, given["writers"], given["rows"]) as done:
            figures.append(await measure(quiet, own, done, tenants=tenants, given=given))
        for rank in ("p50", "p99"):
            figures[-1][f"{rank} ratio"] = round(figures[-1][f"{rank} ms"] / figures[0][f"{rank} ms"], 2)
    return figures


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument(
        "--tenants", type=int, nargs="*", default=[1, 10, 50], help="noisy tenants at a time"
    )
    options.add_argument("--datasets", type=int, default=4, help="datasets of each noisy tenant")
    options.add_argument("--writers", type=int, default=2, help="writers of each of these datasets")
    options.add_argument("--rows", type=int, default=100, help="rows of each of their writes")
    options.add_argument("--writes", type=int, default=100, help="writes of the quiet tenant")
    options.add_argument("--pause", type=float, default=2.0, help="seconds between two of them")
    options.add_argument(
        "--large", type=int, help="rows of tables into which a noisy tenant writes large upserts"
    )
    chosen = options.parse_args()
    given = {name: getattr(chosen, name) for name in ("writers", "rows", "writes", "pause")}
    with running_service(chosen.scratch) as service:
        if chosen.large:
            figures = asyncio.run(measure_large(service, chosen.large, given))
        else:
            figures = asyncio.run(measure_all(service, chosen.tenants, chosen.datasets, given))
    name = "fairness_large" if chosen.large else "fairness"
    publish(name, {"datasets": chosen.datasets, "large": chosen.large, **given}, figures)


if __name__ == "__main__":
    main()
