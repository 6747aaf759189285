"""Many readers that wait: from a commit to each of them, and what they cost while nothing happens.

Every reader follows the feed by server-sent events from the head on. One row is written at a time, once all readers
have the one before. The clock starts at the job's `finished_at`, which the database's clock gives within the commit,
before it is durable; it stops when the bytes of the event are at the reader's socket in this process. All of it is on
one machine, so there is one clock; readers share their cores with the service.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httpx2
import numpy as np
import psutil
import uvloop

from bench.options import parser
from bench.processes import MEBIBYTE, memory, processor_seconds, tree
from bench.report import percentiles, publish
from bench.service import Service, running_service
from bench.table import Table
from bench.trips import trips, upsert_body

_EVENT = b"event: change\n"
_OPENING_AT_ONCE = 50
_SECONDS_MAX = 60.0


@dataclass(kw_only=True)
class Readers:
    """All readers of one measurement. `seen`: when each had each event, by the machine's clock."""

    seen: list[list[float]] = field(default_factory=list)
    opened: int = 0
    received: int = 0
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    async def open(self, service: Service, requests: Sequence[bytes]) -> list[asyncio.Transport]:
        """Connects a reader for each request; returns once all of them follow."""
        address = urlsplit(service.url)
        transports: list[asyncio.Transport] = []
        for first in range(0, len(requests), _OPENING_AT_ONCE):
            for request in requests[first : first + _OPENING_AT_ONCE]:
                transport, _ = await asyncio.get_running_loop().create_connection(
                    partial(_Reader, self, request), str(address.hostname), address.port or 80
                )
                transports.append(transport)
            await self.until(lambda: self.opened == len(transports))
        return transports

    async def until(self, condition: Any) -> None:
        """Waits for something that the arrival of bytes makes true."""
        async with asyncio.timeout(_SECONDS_MAX):
            while not condition():
                self.moved.clear()
                await self.moved.wait()


class _Reader(asyncio.Protocol):
    """One connection, as light as can be: a client library would take the cores under measurement."""

    def __init__(self, readers: Readers, request: bytes) -> None:
        self._readers = readers
        self._request = request
        self._seen: list[float] = []
        self._rest = b""
        readers.seen.append(self._seen)

    def connection_made(self, transport: Any) -> None:
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        at = time.time()
        if not self._rest:
            status = data.split(maxsplit=2)[1]
            if status != b"200":
                raise SystemExit(f"a reader was answered with {status.decode()}")
            self._readers.opened += 1
        data = self._rest + data
        events = data.count(_EVENT)
        self._seen += [at] * events
        self._readers.received += events
        # A part of the marker may be at the end, the rest of it to come.
        self._rest = data[-(len(_EVENT) - 1) :]
        self._readers.moved.set()


def request(service: Service, dataset: str) -> bytes:
    """Follows a feed from its head on."""
    return (
        f"GET /datasets/{dataset}/changes/events?since=now HTTP/1.1\r\nhost: bench\r\n"
        f"authorization: {service.headers['Authorization']}\r\n\r\n"
    ).encode()


async def measure(
    table: Table, api: psutil.Process, *, readers: int, writes: int, idle: float
) -> dict[str, Any]:
    """One line of the table."""
    resting = memory([api]).resident
    group = Readers()
    transports = await group.open(table.service, [request(table.service, table.id)] * readers)
    cpu = processor_seconds([api])
    await asyncio.sleep(idle)
    idle_cpu = processor_seconds([api]) - cpu
    waiting = memory([api]).resident
    committed = []
    cpu = processor_seconds([api])
    async with httpx2.AsyncClient(
        base_url=table.service.url, headers=table.service.headers, timeout=60, trust_env=False
    ) as client:
        for number in range(writes):
            committed.append(await _write(client, table, readers * 10_000 + number))
            await group.until(lambda: group.received == readers * len(committed))
    busy_cpu = processor_seconds([api]) - cpu
    peak = memory([api]).resident
    for transport in transports:
        transport.close()
    waits = np.array(group.seen) - np.array(committed)
    return {
        "readers": readers,
        "writes": writes,
        **{f"{name} ms": value for name, value in percentiles(waits.ravel().tolist()).items()},
        "last reader p50 ms": percentiles(waits.max(axis=0).tolist())["p50"],
        "api cpu ms/write": round(busy_cpu / writes * 1000, 1),
        "idle api cpu ms/s": round(idle_cpu / idle * 1000, 1),
        "at rest MiB": round(resting / MEBIBYTE),
        "waiting MiB": round(waiting / MEBIBYTE),
        "after writes MiB": round(peak / MEBIBYTE),
    }


async def measure_idle(service: Service, tables: Sequence[Table], *, idle: float) -> dict[str, Any]:
    """One line of the second table: a reader for each dataset, of which none is written."""
    api = service.process("app.main")
    group = Readers()
    transports = await group.open(service, [request(service, table.id) for table in tables])
    cpu = processor_seconds([api])
    everything = processor_seconds(tree(service.supervisor))
    await asyncio.sleep(idle)
    cpu = processor_seconds([api]) - cpu
    everything = processor_seconds(tree(service.supervisor)) - everything
    for transport in transports:
        transport.close()
    return {
        "datasets": len(tables),
        "idle api cpu ms/s": round(cpu / idle * 1000, 1),
        "idle other cpu ms/s": round((everything - cpu) / idle * 1000, 1),
    }


async def _write(client: httpx2.AsyncClient, table: Table, number: int) -> float:
    """Writes one new row; when it was committed."""
    reply = await client.post(
        f"/datasets/{table.id}/writes",
        content=upsert_body(trips(np.array([number]), ts=1)),
        headers={"Content-Type": "application/json", "Prefer": "wait=30"},
    )
    job = reply.raise_for_status().json()
    if job["state"] != "succeeded":
        raise SystemExit(f"a write was not committed within 30 s: {job}")
    return datetime.fromisoformat(job["finished_at"]).timestamp()


async def measure_all(
    service: Service, counts: list[int], datasets: list[int], writes: int, idle: float
) -> list[dict[str, Any]]:
    """The lines of the tables, after writes that warm everything up."""
    api = service.process("app.main")
    with service.client() as client:
        table = Table.create(service, client, "trips", buckets=4)
        await measure(table, api, readers=2, writes=20, idle=0.1)
        figures = [await measure(table, api, readers=readers, writes=writes, idle=idle) for readers in counts]
        tables = [
            Table.create(service, client, f"trips_{number}", buckets=4)
            for number in range(max(datasets, default=0))
        ]
        figures += [await measure_idle(service, tables[:count], idle=2 * idle) for count in datasets]
        return figures


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--readers", type=int, nargs="*", default=[1, 100, 1_000], help="readers at a time")
    options.add_argument(
        "--datasets", type=int, nargs="*", default=[100, 1_000], help="datasets at a time with a reader each"
    )
    options.add_argument("--writes", type=int, default=50, help="writes with so many readers")
    options.add_argument("--idle", type=float, default=10.0, help="seconds of silence")
    chosen = options.parse_args()
    # A socket for each reader, here and in the service, which is started with the same limit.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    given = {name: getattr(chosen, name) for name in ("writes", "idle")}
    with (
        running_service(chosen.scratch) as service,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        figures = runner.run(measure_all(service, chosen.readers, chosen.datasets, **given))
    publish("waiting", given, figures)


if __name__ == "__main__":
    main()
