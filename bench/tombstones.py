"""What tombstones cost: deletes that leave them beside deletes that do not, and upserts beside many of them.

Two tables differ in `deletes` alone. Both get the same rows and the same deletes, in turns. The rows that are deleted
first were never there, so that the rows of both tables stay the same.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from bench.options import parser
from bench.processes import processor_seconds, tree
from bench.report import publish
from bench.service import WORKER, Service, running_service
from bench.table import Table, half_new

_WITH, _WITHOUT = "with tombstones", "without"
_TYPES = ("merge_on_read", "copy_on_write")


def measure(
    service: Service, table_type: str, *, keys: int, tombstones: int, rows: int, runs: int
) -> list[dict[str, Any]]:
    """Processor seconds of the worker for writes of `rows` rows, into tables of this many keys."""
    with service.client() as client:
        tables = {
            name: Table.create(service, client, f"{table_type}_{seconds}", buckets=4, table_type=table_type)
            for name, seconds in ((_WITH, 604_800), (_WITHOUT, 0))
        }
        other = f"/datasets/{tables[_WITHOUT].id}"
        etag = client.get(other).headers["etag"]
        client.patch(
            other, json={"deletes": {"keep_seconds": 0}}, headers={"If-Match": etag}
        ).raise_for_status()
        for table in tables.values():
            table.write("bulk_insert", np.arange(keys), ts=1)
            table.write("delete", np.arange(10 * keys, 10 * keys + tombstones), ts=2)
        bytes_each = _bytes(tables[_WITH]) / tombstones
        figures = []
        for case, write in _cases(keys, rows).items():
            seconds: dict[str, list[float]] = {name: [] for name in tables}
            for run in range(runs + 1):
                for name, table in tables.items():
                    used = _used(service, partial(write, table, run))
                    # The first run of each fills caches.
                    if run:
                        seconds[name].append(used)
            medians = {name: statistics.median(each) for name, each in seconds.items()}
            figures.append(
                {
                    "table": table_type,
                    "case": case,
                    **{f"{name} (s)": round(value, 3) for name, value in medians.items()},
                    "ratio": round(medians[_WITH] / medians[_WITHOUT], 2),
                    "bytes of a tombstone": round(bytes_each, 1),
                }
            )
    return figures


def _cases(keys: int, rows: int) -> dict[str, Callable[[Table, int], object]]:
    """The writes that are measured, each with the number of its run."""
    return {
        f"upsert {rows:,}": lambda table, run: table.write(
            "upsert", half_new(rows, of=keys, first_new=(2 + run) * keys, seed=run), ts=10 + run
        ),
        f"delete {rows:,}": lambda table, run: table.write(
            "delete", np.arange(run * rows, (run + 1) * rows), ts=100
        ),
    }


def _bytes(table: Table) -> int:
    """The size of the tombstone files of a table."""
    files = table.client.get(f"/datasets/{table.id}/files", params={"kind": "tombstone"})
    return sum(file["size_bytes"] for file in files.raise_for_status().json()["items"])


def _used(service: Service, work: Callable[[], object]) -> float:
    worker = service.process(WORKER)
    before = processor_seconds(tree(worker))
    work()
    return processor_seconds(tree(worker)) - before


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--keys", type=int, default=1_000_000, help="rows of each table")
    options.add_argument("--tombstones", type=int, default=1_000_000, help="deleted keys of one of them")
    options.add_argument("--rows", type=int, default=10_000, help="rows of each write")
    options.add_argument("--runs", type=int, default=5, help="measured writes of each kind")
    chosen = options.parse_args()
    with running_service(chosen.scratch) as service:
        figures = [
            figure
            for table_type in _TYPES
            for figure in measure(
                service,
                table_type,
                keys=chosen.keys,
                tombstones=chosen.tombstones,
                rows=chosen.rows,
                runs=chosen.runs,
            )
        ]
    publish(
        "tombstones", {name: vars(chosen)[name] for name in ("keys", "tombstones", "rows", "runs")}, figures
    )


if __name__ == "__main__":
    main()
