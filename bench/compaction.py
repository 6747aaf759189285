"""Compactions: how fast they fold logs and small files, what small writes beside them pay, and what reads save.

Everything runs in one service, on Spark. Reads are whole scans of a table, in this process, on one thread.
"""

from __future__ import annotations

import statistics
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from bench.in_process import InProcess
from bench.options import chosen_cluster, parser
from bench.processes import processor_seconds
from bench.report import percentiles, publish
from bench.service import Service, finished, running_service
from bench.table import Table, run_seconds
from bench.trips import definition, trips, upsert_body

LOGGED = {"table_type": "merge_on_read", "changelog": {"producer": "input"}}
BUCKETS = 4
_READS = 3
_PARTS = ("latencies", "speeds", "reads")


def new_table(service: Service, client: httpx.Client, name: str, **settings: Any) -> Table:
    """An empty table that is compacted on request only."""
    registration = {**definition(name, buckets=BUCKETS), "services": {"compaction": None}, **settings}
    if not registration["record_key"]:
        del registration["bucket"], registration["ordering_field"]
    made = client.post("/datasets", json=registration).raise_for_status().json()
    return Table(service=service, client=client, id=made["id"])


def compact(table: Table) -> dict[str, Any]:
    """The job of a compaction, once it has succeeded."""
    reply = table.client.post(f"/datasets/{table.id}/compactions", headers={"Prefer": "wait=60"})
    return finished(table.client, reply.raise_for_status().json())


def folded(name: str, table: Table, rows: int) -> dict[str, Any]:
    """A figure: the work and the speed of a compaction of a table with this number of rows."""
    before = processor_seconds(table.service.working())
    job = compact(table)
    cpu_seconds = processor_seconds(table.service.working()) - before
    seconds = run_seconds(job)
    return {
        "compaction of": name,
        "rows": rows,
        "files before": job["result"]["files_removed"],
        "files after": job["result"]["files_added"],
        "seconds": seconds,
        "rows/s": rows / seconds,
        "cpu s": cpu_seconds,
    }


def some(rows: int, of: int, seed: int) -> np.ndarray:
    """Numbers of rows among the first `of`."""
    return np.random.default_rng(seed).choice(of, rows, replace=False)


def scan_seconds(table: Table, rows: int) -> float:
    """The median time to read all rows."""
    times = []
    for _ in range(_READS):
        # Its reader keeps what it has merged, for the next page.
        lake = InProcess.of(table.service)
        began = time.perf_counter()
        found = lake.rows(table.id, None)
        times.append(time.perf_counter() - began)
        if found != rows:
            raise SystemExit(f"{found} rows were read of {rows}")
    return statistics.median(times)


def reads(service: Service, client: httpx.Client, rows: int, log_rows: int) -> list[dict[str, Any]]:
    """Scans of copy on write, and of merge on read as its logs become more."""
    plain = new_table(service, client, "plain")
    plain.write("bulk_insert", np.arange(rows), ts=1)
    figures = [{"scan of": "copy_on_write", "rows": rows, "seconds": scan_seconds(plain, rows)}]
    logged = new_table(service, client, "logged", **LOGGED)
    logged.write("upsert", np.arange(rows), ts=1)
    compact(logged)
    logs = 0
    for wanted in (0, 1, 10, 50):
        while logs < wanted:
            logs += 1
            logged.write("upsert", some(log_rows, rows, logs), ts=1 + logs)
        name = f"merge_on_read, {wanted} logs"
        figures.append({"scan of": name, "rows": rows, "seconds": scan_seconds(logged, rows)})
    figures.append(folded("50 logs", logged, rows))
    return figures


def speeds(service: Service, client: httpx.Client, rows: int) -> list[dict[str, Any]]:
    """Compactions of larger logs, and of small files."""
    logged = new_table(service, client, "ten_logs", **LOGGED)
    logged.write("upsert", np.arange(rows), ts=1)
    compact(logged)
    for number in range(10):
        logged.write("upsert", some(rows // 10, rows, number), ts=2 + number)
    figures = [folded("10 logs of a tenth of the rows", logged, rows)]
    appended = new_table(service, client, "small_files", record_key=[])
    part = rows // 50
    for number in range(50):
        appended.write("insert", np.arange(number * part, (number + 1) * part), ts=1)
    return [*figures, folded("50 small files, no key", appended, part * 50)]


def latencies(service: Service, client: httpx.Client, rows: int, seconds: float) -> list[dict[str, Any]]:
    """Small upserts one after another, without a compaction beside them and with one after another."""
    table = new_table(service, client, "busy", **LOGGED)
    table.write("upsert", np.arange(rows), ts=1)
    figures = []
    for beside in (False, True):
        stop = threading.Event()
        done: list[dict[str, Any]] = []
        thread = threading.Thread(target=_keep_compacting, args=(service, table.id, stop, done))
        if beside:
            thread.start()
        times = _small_writes(client, table, rows, seconds)
        stop.set()
        if beside:
            thread.join()
        name = "compactions beside" if beside else "alone"
        figures.append(
            {
                "small writes": name,
                "writes": len(times),
                **percentiles(times),
                "compactions": len(done),
                "left": sum(job["result"]["file_groups_left"] for job in done),
            }
        )
    return figures


def _small_writes(client: httpx.Client, table: Table, rows: int, seconds: float) -> list[float]:
    ends = time.perf_counter() + seconds
    times = []
    while time.perf_counter() < ends:
        body = upsert_body(trips(some(100, rows, len(times)), ts=2 + len(times)))
        began = time.perf_counter()
        reply = client.post(
            f"/datasets/{table.id}/writes",
            content=body,
            headers={"Content-Type": "application/json", "Prefer": "wait=60"},
        )
        finished(client, reply.raise_for_status().json())
        times.append(time.perf_counter() - began)
    return times


def _keep_compacting(
    service: Service, dataset_id: str, stop: threading.Event, done: list[dict[str, Any]]
) -> None:
    with service.client() as client:
        table = Table(service=service, client=client, id=dataset_id)
        while not stop.is_set():
            done.append(compact(table))


def main() -> None:
    """Measures, and leaves the figures."""
    options = parser(__doc__, cluster=True)
    options.add_argument("--rows", type=int, default=500_000, help="rows of each table")
    options.add_argument("--log-rows", type=int, default=2_000, help="rows of a log that is read")
    options.add_argument(
        "--seconds", type=float, default=15.0, help="how long small writes are sent, each way"
    )
    options.add_argument("--parts", nargs="+", default=_PARTS, choices=_PARTS, help="what is measured")
    parsed = options.parse_args()
    scratch: Path = parsed.scratch
    cluster = chosen_cluster(parsed)
    if cluster is not None and "reads" in parsed.parts:
        options.error("reads are measured in files of this machine: choose other --parts with --cluster")
    with running_service(scratch, cluster=cluster) as service, service.client() as client:
        measured = {
            "latencies": lambda: latencies(service, client, parsed.rows, parsed.seconds),
            "speeds": lambda: speeds(service, client, parsed.rows),
            "reads": lambda: reads(service, client, parsed.rows, parsed.log_rows),
        }
        figures = [figure for part in parsed.parts for figure in measured[part]()]
    publish(
        f"compaction{cluster.name if cluster else ''}",
        {"rows": parsed.rows, "log_rows": parsed.log_rows, "seconds": parsed.seconds, "buckets": BUCKETS},
        figures,
    )


if __name__ == "__main__":
    main()
