"""Read jobs of a whole table in each format, of a part of it, in an order, and of a few rows."""

from __future__ import annotations

import time
from typing import Any, Final

import httpx
import numpy as np

from bench.options import parser
from bench.processes import processor_seconds, tree
from bench.report import publish
from bench.service import Service, finished, running_service
from bench.table import Table

READS: Final[dict[str, dict[str, Any]]] = {
    "parquet": {"format": "parquet"},
    "arrow": {"format": "arrow"},
    "ndjson": {"format": "ndjson"},
    "json": {"format": "json"},
    "csv": {"format": "csv"},
    "arrow, two columns": {"format": "arrow", "columns": ["uuid", "fare"]},
    "arrow, 1 % by a filter": {"format": "arrow", "where": "fare >= 99"},
    "arrow, in order": {"format": "arrow", "order_by": [{"column": "fare"}, {"column": "uuid"}]},
    "arrow, the first 1,000 in order": {"format": "arrow", "order_by": [{"column": "fare"}], "limit": 1_000},
    "arrow, any 1,000": {"format": "arrow", "limit": 1_000},
    "arrow, what changed last": {"format": "arrow", "query": "incremental", "begin": 1},
}


def read(
    service: Service, client: httpx.Client, table: Table, table_rows: int, request: dict[str, Any]
) -> dict[str, Any]:
    """Runs a read job to its end."""
    works = tree(service.process("workers.main"))
    cpu_before = processor_seconds(works)
    began = time.perf_counter()
    body = {**request, "disposition": "files"}
    job = client.post(f"/datasets/{table.id}/reads", json=body).raise_for_status().json()
    result = finished(client, job)["result"]
    seconds = time.perf_counter() - began
    cpu_seconds = processor_seconds(works) - cpu_before
    return {
        "rows": result["rows"],
        "files": result["files"],
        "MB": round(result["size_bytes"] / 1e6, 1),
        "s": round(seconds, 2),
        "cpu s": round(cpu_seconds, 2),
        # All rows of the table, however few of them are selected.
        "table rows/cpu s": round(table_rows / cpu_seconds),
    }


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=1_000_000, help="rows of the table")
    options.add_argument("--buckets", type=int, default=4, help="buckets of the dataset")
    chosen = options.parse_args()
    with running_service(chosen.scratch) as service, service.client() as client:
        table = Table.create(service, client, "trips", buckets=chosen.buckets)
        table.write("bulk_insert", np.arange(chosen.rows), ts=0)
        # What changed last: one in a hundred.
        table.write("upsert", np.arange(0, chosen.rows, 100), ts=1)
        # The first one also checks the files, and starts what tasks need.
        read(service, client, table, chosen.rows, {"format": "ndjson"})
        figures = [
            {"read": name, **read(service, client, table, chosen.rows, request)}
            for name, request in READS.items()
        ]
    publish("reads", {"buckets": chosen.buckets, "rows": chosen.rows}, figures)


if __name__ == "__main__":
    main()
