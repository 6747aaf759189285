"""Many small writes to one dataset at once: how many are acknowledged and committed in a second, and in what groups.

Each client sends its next write when the last one is answered. With `Prefer: wait` that is once it is committed;
without, once it is accepted, and the clock runs on until the last one is committed.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import msgspec
import numpy as np

from bench.options import chosen_cluster, parser
from bench.processes import processor_seconds, tree
from bench.report import percentiles, publish
from bench.service import API, Service, running_service
from bench.trips import definition, trips, upsert_body

_TS = 1_000_000_000


@dataclass(kw_only=True)
class Connection:
    """A keep-alive HTTP connection of few features: a whole client library would take the cores under measurement."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def open(cls, url: str) -> Connection:
        """Connects to the service."""
        address = urlsplit(url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        return cls(reader=reader, writer=writer)

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Status and body of the answer to a whole request. Answers always have a Content-Length here."""
        self.writer.write(request)
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        return int(head.split(maxsplit=2)[1]), await self.reader.readexactly(length)


@cache
def _bodies(rows: int, keys: int) -> list[bytes]:
    random = np.random.default_rng(1)
    return [upsert_body(trips(random.choice(keys, rows, replace=False), ts=_TS)) for _ in range(200)]


def requests(service: Service, dataset: str, *, rows: int, keys: int, wait: bool) -> Iterator[bytes]:
    """Writes without end, from a stock made beforehand."""
    prefer = "prefer: wait=60\r\n" if wait else ""
    head = (
        f"POST /datasets/{dataset}/writes HTTP/1.1\r\nhost: bench\r\n"
        f"authorization: {service.headers['Authorization']}\r\n"
        f"content-type: application/json\r\n{prefer}content-length: "
    )
    stock = _bodies(rows, keys)
    for number in count(1):
        # A later time than any before: a write of older rows would change nothing, and cost next to nothing.
        body = stock[number % len(stock)].replace(str(_TS).encode(), str(_TS + number).encode())
        yield f"{head}{len(body)}\r\n\r\n".encode() + body


async def send(
    service: Service, source: Iterator[bytes], clients: int, seconds: float
) -> list[tuple[float, dict[str, Any]]]:
    """Seconds to the answer, and the job in it, of every write sent within the time."""
    deadline = time.perf_counter() + seconds
    answers: list[tuple[float, dict[str, Any]]] = []

    async def one() -> None:
        connection = await Connection.open(service.url)
        while time.perf_counter() < deadline:
            sent = time.perf_counter()
            status, body = await connection.ask(next(source))
            if status not in {200, 202}:
                raise SystemExit(f"a write was answered with {status}: {body.decode()}")
            answers.append((time.perf_counter() - sent, msgspec.json.decode(body)))
        connection.writer.close()

    await asyncio.gather(*(one() for _ in range(clients)))
    return answers


def committed(service: Service, dataset: str, jobs: list[str]) -> Counter[int]:
    """How many of the jobs each version has, once all are committed."""
    with service.client() as client:
        while True:
            last = client.get(f"/jobs/{jobs[-1]}", params={"wait": 60}).raise_for_status().json()
            if last["state"] not in {"queued", "running"}:
                break
        versions: Counter[int] = Counter()
        wanted = set(jobs)
        token: str | None = ""
        while token is not None:
            params = {"page_size": 1000, **({"page_token": token} if token else {})}
            page = client.get(f"/datasets/{dataset}/timeline", params=params).raise_for_status().json()
            mine = [item for item in page["items"] if item["job_id"] in wanted]
            if unfinished := [item for item in mine if item["state"] != "completed"]:
                raise SystemExit(f"{len(unfinished)} writes did not succeed, such as {unfinished[0]}")
            versions.update(item["version"] for item in mine)
            token = page["next_page_token"]
        if versions.total() != len(wanted):
            raise SystemExit(f"{len(wanted)} writes were accepted, {versions.total()} are in the timeline")
        return versions


def measure(
    service: Service,
    *,
    clients: int,
    rows: int,
    keys: int,
    seconds: float,
    wait: bool,
    buckets: int | None,
) -> dict[str, Any]:
    """One line of the table."""
    with service.client() as client:
        made = (
            client.post("/datasets", json=definition(f"trips_{wait}", buckets=buckets))
            .raise_for_status()
            .json()
        )
    source = requests(service, made["id"], rows=rows, keys=keys, wait=wait)
    asyncio.run(send(service, source, clients, 3.0))
    before = _processor_seconds(service)
    began = time.perf_counter()
    answers = asyncio.run(send(service, source, clients, seconds))
    acknowledged = time.perf_counter() - began
    groups = committed(service, made["id"], [job["id"] for _, job in answers])
    ended = time.perf_counter() - began
    after = _processor_seconds(service)
    api_cpu, worker_cpu, all_cpu = (one - other for one, other in zip(after, before, strict=True))
    sizes = np.array(sorted(groups.values()))
    return {
        "answered when": "committed" if wait else "accepted",
        "writes": len(answers),
        "acknowledged/s": round(len(answers) / acknowledged, 1),
        "committed/s": round(len(answers) / ended, 1),
        "commits": len(sizes),
        "group p50": int(np.median(sizes)),
        "group max": int(sizes.max()),
        **{f"answer {name} ms": value for name, value in percentiles([took for took, _ in answers]).items()},
        "api cpu ms/write": round(api_cpu / len(answers) * 1000, 2),
        "worker cpu ms/write": round(worker_cpu / len(answers) * 1000, 2),
        "other cpu ms/write": round((all_cpu - api_cpu - worker_cpu) / len(answers) * 1000, 2),
    }


def _processor_seconds(service: Service) -> list[float]:
    """Those of the APIs, of the workers with Spark, and of all processes."""
    parts = (service.processes(API), service.working(), tree(service.supervisor))
    return [processor_seconds(processes) for processes in parts]


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__, cluster=True)
    options.add_argument("--clients", type=int, default=50, help="clients at a time")
    options.add_argument("--rows", type=int, default=100, help="rows of a write")
    options.add_argument("--keys", type=int, default=20_000, help="keys that the rows are drawn from")
    options.add_argument("--seconds", type=float, default=15.0, help="how long the clients send")
    options.add_argument("--buckets", type=int, help="buckets of the dataset; they grow unless this is given")
    chosen = options.parse_args()
    given = {name: getattr(chosen, name) for name in ("clients", "rows", "keys", "seconds", "buckets")}
    cluster = chosen_cluster(chosen)
    with running_service(chosen.scratch, cluster=cluster) as service:
        figures = [measure(service, **given, wait=wait) for wait in (True, False)]
    publish(f"small-writes{cluster.name if cluster else ''}", given, figures)


if __name__ == "__main__":
    main()
