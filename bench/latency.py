"""From POST to visible in the feed: one small upsert at a time, into a small and a large table, with everything warm.

A reader waits in a long poll before each write is sent. The clock stops when it holds all of the write's changes.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from datetime import datetime
from queue import Queue
from typing import Any

import httpx2
import numpy as np

from bench.options import chosen_cluster, parser
from bench.report import percentiles, publish
from bench.service import Service, running_service
from bench.table import Table
from bench.trips import trips, upsert_body

_PREFERENCE = {"Content-Type": "application/json", "Prefer": "wait=30"}


@dataclass(kw_only=True)
class Follower:
    """A thread that long-polls the feed, and records when it has received the changes of each write."""

    service: Service
    dataset: str
    seen: Queue[tuple[float, int]] = field(default_factory=Queue)
    polling: threading.Event = field(default_factory=threading.Event)
    stopped: bool = False

    def run(self) -> None:
        with self.service.client() as client:
            since = "now"
            while not self.stopped:
                params = {"since": since, "limit": "10000", "feed": "longpoll", "timeout": "20"}
                self.polling.set()
                page = client.get(f"/datasets/{self.dataset}/changes", params=params).raise_for_status()
                since = page.headers["headwater-next-since"]
                self.seen.put((time.time(), int(since)))

    def wait_for(self, position: int) -> float:
        """When the follower held every change before the position."""
        while True:
            at, seen = self.seen.get(timeout=60)
            if seen >= position:
                return at


def measure(
    service: Service, *, rows: int, runs: int, warm_up: int, keys: int, buckets: int | None
) -> list[dict[str, Any]]:
    """The stages of `runs` writes, in seconds, after `warm_up` others, into a table of up to this many keys."""
    random = np.random.default_rng(rows)
    with service.client() as client:
        table = Table.create(
            service, client, f"trips_{keys}_{rows}", buckets=buckets, table_type="merge_on_read"
        )
        follower = Follower(service=service, dataset=table.id)
        thread = threading.Thread(target=follower.run, daemon=True)
        stages = []
        table.write("bulk_insert", np.arange(keys // 2), ts=0)
        thread.start()
        for number in range(warm_up + runs):
            body = upsert_body(trips(random.choice(keys, rows, replace=False), ts=number + 1))
            follower.polling.wait()
            # Between a page and the next request the reader is not waiting: give it the time to get there.
            time.sleep(0.02)
            began = time.time()
            job = _write(client, table.id, body)
            answered = time.time()
            visible = follower.wait_for(job["last_offset"] + 1)
            stages.append(_stages(job, began, answered, visible))
        follower.stopped = True
        _write(client, table.id, upsert_body(trips(np.arange(1), ts=warm_up + runs + 1)))
        thread.join(30)
    return stages[warm_up:]


def _write(client: httpx2.Client, dataset: str, body: bytes) -> dict[str, Any]:
    reply = client.post(f"/datasets/{dataset}/writes", content=body, headers=_PREFERENCE).raise_for_status()
    job: dict[str, Any] = reply.json()
    if job["state"] != "succeeded":
        raise SystemExit(f"a write was not committed within 30 s: {job}")
    return job


def _stages(job: dict[str, Any], began: float, answered: float, visible: float) -> dict[str, float]:
    created, started, ended = (
        datetime.fromisoformat(job[name]).timestamp() for name in ("created_at", "started_at", "finished_at")
    )
    return {
        "visible": visible - began,
        "answered": answered - began,
        "accept (POST to job created)": created - began,
        "wake (created to claimed)": started - created,
        "run (claimed to committed)": ended - started,
        "deliver (committed to visible)": visible - ended,
    }


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__, cluster=True)
    options.add_argument("--runs", type=int, default=200, help="measured writes of each size")
    options.add_argument("--warm-up", type=int, default=20, help="writes before them")
    options.add_argument(
        "--keys",
        type=int,
        nargs="+",
        default=[20_000, 10_000_000],
        help="keys that the writes are drawn from, for each table; half of them are loaded before",
    )
    options.add_argument("--buckets", type=int, help="buckets of each table; they grow unless this is given")
    chosen = options.parse_args()
    figures = []
    cluster = chosen_cluster(chosen)
    with running_service(chosen.scratch, cluster=cluster) as service:
        for keys in chosen.keys:
            for rows in (1_000, 1):
                stages = measure(
                    service,
                    rows=rows,
                    runs=chosen.runs,
                    warm_up=chosen.warm_up,
                    keys=keys,
                    buckets=chosen.buckets,
                )
                figures += [
                    {
                        "keys": keys,
                        "rows": rows,
                        "stage (ms)": name,
                        **percentiles([each[name] for each in stages]),
                    }
                    for name in stages[0]
                ]
    name = f"latency{cluster.name if cluster else ''}"
    publish(name, {"runs": chosen.runs, "buckets": chosen.buckets or "growing"}, figures)


if __name__ == "__main__":
    main()
