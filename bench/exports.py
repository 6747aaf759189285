"""Exports of a whole feed, changes and changed rows, in each format: the throughput of tasks on all cores."""

from __future__ import annotations

import time
from typing import Any

import httpx2
import numpy as np

from bench.options import parser
from bench.processes import processor_seconds, tree
from bench.report import publish
from bench.service import Service, finished, running_service
from bench.table import Table

QUERIES = ("changes", "incremental")
FORMATS = ("parquet", "arrow", "ndjson", "csv")


def export(service: Service, client: httpx2.Client, table: Table, query: str, format_: str) -> dict[str, Any]:
    """Exports the feed from its start to its end."""
    works = tree(service.process("workers.main"))
    cpu_before = processor_seconds(works)
    answer = client.post(
        f"/datasets/{table.id}/exports", json={"query": query, "format": format_}
    ).raise_for_status()
    path, (run,) = answer.headers["location"], answer.json()["runs"]
    began = time.perf_counter()
    finished(client, client.get(run["links"]["job"]).raise_for_status().json())
    seconds = time.perf_counter() - began
    cpu_seconds = processor_seconds(works) - cpu_before
    (run,) = client.get(path).raise_for_status().json()["runs"]
    client.delete(path).raise_for_status()
    changes = run["next_since"] - run["since"]
    return {
        "query": query,
        "format": format_,
        "changes": changes,
        "rows": run["rows"],
        "files": run["file_count"],
        "MB": round(run["size_bytes"] / 1e6),
        "s": round(seconds, 2),
        "cpu s": round(cpu_seconds, 2),
        "changes/s": round(changes / seconds),
        "changes/cpu s": round(changes / cpu_seconds),
    }


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=2_000_000, help="change rows in the feed")
    options.add_argument("--buckets", type=int, default=4, help="buckets of the dataset")
    chosen = options.parse_args()
    with running_service(chosen.scratch) as service, service.client() as client:
        table = Table.create(service, client, "trips", buckets=chosen.buckets)
        table.write("bulk_insert", np.arange(chosen.rows // 2), ts=0)
        # The second half of the feed: corrections, two change rows for every row written.
        table.write("upsert", np.arange(chosen.rows // 4), ts=1)
        # The first one also checks the files, and starts what tasks need.
        export(service, client, table, "changes", "ndjson")
        figures = [export(service, client, table, query, format_) for query in QUERIES for format_ in FORMATS]
    publish("exports", {"buckets": chosen.buckets}, figures)


if __name__ == "__main__":
    main()
