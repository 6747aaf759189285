"""Many small writes at once: how many are committed in a second, how soon they are visible, and what they cost.

The first table has writes to one dataset by more clients than it can serve. Each client sends its next write when the
last one is answered. With `Prefer: wait` that is once it is committed; without, once it is accepted, and the clock runs
on until the last one is committed.

The second one has writes by a few clients to 1, 10 and 100 datasets in turn, with and without a key. A client sends a
write, waits for the end of the job that is accepted, and sends the next. From then on each reader has the rows.
Processor milliseconds are those of one write, by program.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import count, cycle
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import numpy as np

from bench.options import chosen_cluster, parser
from bench.report import percentiles, publish
from bench.service import Service, running_service
from bench.trips import definition, plain_definition, trips, write_body

_TS = 1_000_000_000
_OPERATIONS: Final = {"keyed": "upsert", "plain": "insert"}
_WARM_SECONDS: Final = 3.0


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
def _bodies(rows: int, keys: int, operation: str) -> list[bytes]:
    random = np.random.default_rng(1)
    chosen = (random.choice(keys, rows, replace=False) for _ in range(200))
    return [write_body(trips(numbers, ts=_TS), operation) for numbers in chosen]


def requests(
    service: Service, dataset: str, *, rows: int, keys: int, wait: bool, operation: str = "upsert"
) -> Iterator[bytes]:
    """Writes without end, from a stock that is made now: the service does not wait long for a request."""
    prefer = "prefer: wait=60\r\n" if wait else ""
    head = (
        f"POST /datasets/{dataset}/writes HTTP/1.1\r\nhost: bench\r\n"
        f"authorization: {service.headers['Authorization']}\r\n"
        f"content-type: application/json\r\n{prefer}content-length: "
    )
    stock = _bodies(rows, keys, operation)

    def request(number: int) -> bytes:
        # A later time than any before: a write of older rows would change nothing, and cost next to nothing.
        body = stock[number % len(stock)].replace(str(_TS).encode(), str(_TS + number).encode())
        return f"{head}{len(body)}\r\n\r\n".encode() + body

    return map(request, count(1))


def in_turn(sources: list[Iterator[bytes]]) -> Iterator[bytes]:
    """Requests of all sources, one of each in turn."""
    return (next(source) for source in cycle(sources))


async def send_and_await(
    service: Service, source: Iterator[bytes], clients: int, seconds: float
) -> list[tuple[float, float]]:
    """Seconds from each write to its acceptance, and from there to its commit."""
    deadline = time.perf_counter() + seconds
    taken: list[tuple[float, float]] = []

    async def one() -> None:
        connection = await Connection.open(service.url)
        while time.perf_counter() < deadline:
            sent = time.perf_counter()
            job = _job(*await connection.ask(next(source)))
            accepted = time.perf_counter()
            while job["state"] in {"queued", "running"}:
                job = _job(*await connection.ask(_waiting(service, job["id"])))
            if job["state"] != "succeeded":
                raise SystemExit(f"a write did not succeed: {job}")
            taken.append((accepted - sent, time.perf_counter() - accepted))
        connection.writer.close()

    await asyncio.gather(*(one() for _ in range(clients)))
    return taken


def _job(status: int, body: bytes) -> dict[str, Any]:
    if status not in {200, 202}:
        raise SystemExit(f"the service has answered with {status}: {body.decode()}")
    found: dict[str, Any] = msgspec.json.decode(body)
    return found


def _waiting(service: Service, job: str) -> bytes:
    return (
        f"GET /jobs/{job}?wait=60 HTTP/1.1\r\nhost: bench\r\n"
        f"authorization: {service.headers['Authorization']}\r\n\r\n"
    ).encode()


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
            job = _job(*await connection.ask(next(source)))
            answers.append((time.perf_counter() - sent, job))
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
    asyncio.run(send(service, source, clients, _WARM_SECONDS))
    before = service.processor_seconds()
    began = time.perf_counter()
    answers = asyncio.run(send(service, source, clients, seconds))
    acknowledged = time.perf_counter() - began
    groups = committed(service, made["id"], [job["id"] for _, job in answers])
    ended = time.perf_counter() - began
    cost = _cost(before, service.processor_seconds(), len(answers))
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
        **cost,
    }


def measure_visible(
    service: Service, *, kind: str, datasets: int, clients: int, rows: int, keys: int, seconds: float
) -> dict[str, Any]:
    """One line of the second table."""
    with service.client() as client:
        ids = []
        for number in range(datasets):
            name = f"{kind}_{datasets}_{number}"
            body = plain_definition(name) if kind == "plain" else definition(name, buckets=None)
            ids.append(client.post("/datasets", json=body).raise_for_status().json()["id"])
    how = {"rows": rows, "keys": keys, "wait": False, "operation": _OPERATIONS[kind]}
    source = in_turn([requests(service, each, **how) for each in ids])
    asyncio.run(send_and_await(service, source, clients, _WARM_SECONDS))
    before, began = service.processor_seconds(), time.perf_counter()
    taken = asyncio.run(send_and_await(service, source, clients, seconds))
    wall, after = time.perf_counter() - began, service.processor_seconds()
    accepted = percentiles([each for each, _ in taken])
    visible = percentiles([each for _, each in taken])
    return {
        "kind": kind,
        "datasets": datasets,
        "writes": len(taken),
        "writes/s": round(len(taken) / wall, 1),
        **{f"accept {rank} ms": accepted[rank] for rank in ("p50", "p95")},
        **{f"accept to visible {rank} ms": visible[rank] for rank in ("p50", "p95")},
        **_cost(before, after, len(taken)),
    }


def _cost(before: Mapping[str, float], after: Mapping[str, float], writes: int) -> dict[str, float]:
    """Processor milliseconds of a write, of all processes and by program."""
    used = {name: (after[name] - before[name]) / writes * 1000 for name in after}
    return {"cpu ms": round(sum(used.values()), 2)} | {
        f"{name} cpu": round(each, 2) for name, each in used.items()
    }


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__, cluster=True)
    options.add_argument("--clients", type=int, default=50, help="clients at a time")
    options.add_argument("--rows", type=int, default=100, help="rows of a write")
    options.add_argument("--keys", type=int, default=20_000, help="keys that the rows are drawn from")
    options.add_argument("--seconds", type=float, default=15.0, help="how long the clients send")
    options.add_argument("--buckets", type=int, help="buckets of the dataset; they grow unless this is given")
    options.add_argument("--datasets", type=int, nargs="*", default=[1, 10, 100], help="of the second table")
    options.add_argument("--kinds", nargs="*", choices=_OPERATIONS, default=list(_OPERATIONS))
    options.add_argument("--awaiting-clients", type=int, default=8, help="clients of the second table")
    options.add_argument("--awaiting-rows", type=int, default=1, help="rows of a write of the second table")
    chosen = options.parse_args()
    given = {name: getattr(chosen, name) for name in ("clients", "rows", "keys", "seconds", "buckets")}
    cluster = chosen_cluster(chosen)
    with running_service(chosen.scratch, cluster=cluster) as service:
        figures = [measure(service, **given, wait=wait) for wait in (True, False)]
        awaited = {"clients": chosen.awaiting_clients, "rows": chosen.awaiting_rows}
        awaited |= {name: given[name] for name in ("keys", "seconds")}
        visible = [
            measure_visible(service, **awaited, kind=kind, datasets=datasets)
            for kind in chosen.kinds
            for datasets in chosen.datasets
        ]
    place = cluster.name if cluster else ""
    publish(f"small-writes{place}", given, figures)
    publish(f"small-writes-visible{place}", awaited, visible)


if __name__ == "__main__":
    main()
