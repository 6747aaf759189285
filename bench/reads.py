"""Read jobs of a whole table in each format, of a part of it, in an order, and of a few rows; and rows by their keys.

Lookups are `GET …/rows/{key}`, one request at a time, in a `merge_on_read` table of the same rows. Half of the keys
have no row.
"""

from __future__ import annotations

import time
from typing import Any, Final

import httpx2
import numpy as np

from bench.options import parser
from bench.processes import processor_seconds, tree
from bench.report import percentiles, publish
from bench.service import Service, finished, running_service
from bench.table import Table
from bench.trips import trips

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
_WARM_UP: Final = 50
_OK, _NOT_FOUND = 200, 404


def read(
    service: Service, client: httpx2.Client, table: Table, table_rows: int, request: dict[str, Any]
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


def lookups(client: httpx2.Client, table: Table, rows: int, count: int) -> dict[str, Any]:
    """Milliseconds of the lookup of a row, after some that are not counted."""
    random = np.random.default_rng(7)
    present, absent = (
        random.choice(rows, count // 2, replace=False),
        np.arange(rows, rows + count - count // 2),
    )
    numbers = random.permutation(np.concatenate([present, absent]))
    seconds = []
    for number, key in zip(numbers, trips(numbers, ts=0).column("uuid").to_pylist(), strict=True):
        began = time.perf_counter()
        response = client.get(f"/datasets/{table.id}/rows/{key}")
        seconds.append(time.perf_counter() - began)
        assert response.status_code == (_OK if number < rows else _NOT_FOUND), response.text
    return {"lookups": count - _WARM_UP, **percentiles(seconds[_WARM_UP:])}


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=1_000_000, help="rows of the table")
    options.add_argument("--buckets", type=int, default=4, help="buckets of the dataset")
    options.add_argument("--lookups", type=int, default=2_050, help="rows that are looked up by key")
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
        keyed = Table.create(service, client, "keyed", buckets=chosen.buckets, table_type="merge_on_read")
        keyed.write("bulk_insert", np.arange(chosen.rows), ts=0)
        times = lookups(client, keyed, chosen.rows, chosen.lookups)
    setting = {"buckets": chosen.buckets, "rows": chosen.rows}
    publish("reads", setting, figures)
    publish("reads-by-key", setting, [times])


if __name__ == "__main__":
    main()
