"""The same upserts by delta-rs, with its change data feed, in this process: no service, no HTTP, no job.

Needs the packages of requirements/bench.txt; `make bench-peers` builds an environment of its own for them.
"""

from __future__ import annotations

import resource
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import pyarrow as pa

from bench.options import parser
from bench.report import publish
from bench.table import half_new
from bench.trips import SCHEMA, chunks, trips


def load(folder: Path, rows: int) -> float:
    """Seconds to write a table with the change feed on."""
    reader = pa.RecordBatchReader.from_batches(
        SCHEMA, (batch for table in chunks(np.arange(rows), ts=0) for batch in table.to_batches())
    )
    began = time.perf_counter()
    deltalake.write_deltalake(str(folder), reader, configuration={"delta.enableChangeDataFeed": "true"})
    return time.perf_counter() - began


def merge(folder: Path, numbers: np.ndarray, *, ts: int) -> dict[str, Any]:
    """One merge by key: newer rows replace older ones, unknown keys are inserted."""
    source = trips(numbers, ts=ts)
    table = deltalake.DeltaTable(str(folder))
    cpu_before, began = _cpu_seconds(), time.perf_counter()
    (
        table.merge(source, predicate="t.uuid = s.uuid", source_alias="s", target_alias="t")
        .when_matched_update_all(predicate="s.ts >= t.ts")
        .when_not_matched_insert_all()
        .execute()
    )
    seconds = time.perf_counter() - began
    return {
        "write": "delta-rs merge",
        "rows": len(numbers),
        "write s": round(seconds, 2),
        "rows/s": round(len(numbers) / seconds),
        "cpu s": round(_cpu_seconds() - cpu_before, 2),
    }


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=10_000_000, help="rows of the table")
    options.add_argument(
        "--large", type=int, default=1_000_000, help="rows of the large merges, half of them new"
    )
    options.add_argument(
        "--small", type=int, default=10_000, help="rows of the small merges, half of them new"
    )
    options.add_argument("--repeat", type=int, default=3, help="merges of each size")
    chosen = options.parse_args()
    chosen.scratch.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="headwater-bench-delta-", dir=chosen.scratch))
    figures: list[dict[str, Any]] = []
    try:
        seconds = load(folder, chosen.rows)
        figures.append({"write": "delta-rs load", "rows": chosen.rows, "write s": round(seconds, 2)})
        head, ts = chosen.rows, 1
        for rows in (chosen.large, chosen.small):
            for _ in range(chosen.repeat):
                figures.append(merge(folder, half_new(rows, of=chosen.rows, first_new=head, seed=ts), ts=ts))
                print(figures[-1], flush=True)
                head, ts = head + rows, ts + 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    publish("peers", {"deltalake": deltalake.__version__, "table rows": chosen.rows}, figures)


if __name__ == "__main__":
    main()
