"""Bulk load and upserts of a table of ten million rows, beside the floor: rewriting its files and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.floor import Floor, rewrite
from bench.options import chosen_cluster, parser
from bench.processes import processor_seconds
from bench.report import publish
from bench.service import running_service
from bench.table import Table, Written, half_new


def figure(name: str, rows: int, written: Written, floor: Floor | None, cpu_seconds: float) -> dict[str, Any]:
    """One line of the table."""
    line: dict[str, Any] = {
        "write": name,
        "rows": rows,
        "upload s": round(written.upload_seconds, 2),
        "write s": round(written.seconds, 2),
        "of it run s": round(written.run_seconds, 2),
        "rows/s": round(rows / written.seconds),
        "cpu s": round(cpu_seconds, 2),
        "uploaded MB": round(written.megabytes("uploads"), 1),
        "base MB": round(written.megabytes("data"), 1),
        "changelog MB": round(written.megabytes("changes"), 1),
    }
    if floor is not None:
        line["floor s"] = round(floor.seconds, 2)
        line["floor cpu s"] = round(floor.cpu_seconds, 2)
        line["run/floor"] = round(written.run_seconds / floor.seconds, 2)
        line["cpu/floor"] = round(cpu_seconds / floor.cpu_seconds, 2)
    return line


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__, cluster=True)
    options.add_argument("--rows", type=int, default=10_000_000, help="rows of the table")
    options.add_argument("--buckets", type=int, default=16, help="its buckets")
    options.add_argument(
        "--large", type=int, default=1_000_000, help="rows of the large upserts, half of them new"
    )
    options.add_argument(
        "--small", type=int, default=10_000, help="rows of the small upserts, half of them new"
    )
    options.add_argument("--repeat", type=int, default=3, help="upserts of each size, and floors")
    chosen = options.parse_args()
    figures = []
    cluster = chosen_cluster(chosen)
    with running_service(chosen.scratch, cluster=cluster) as service, service.client() as client:
        table = Table.create(service, client, "trips", buckets=chosen.buckets)

        def write(name: str, operation: str, numbers: np.ndarray, ts: int, floor: Floor | None) -> Written:
            before = processor_seconds(service.working())
            written = table.write(operation, numbers, ts=ts)
            cpu = processor_seconds(service.working()) - before
            figures.append(figure(name, len(numbers), written, floor, cpu))
            print(figures[-1], flush=True)
            return written

        loaded = write("load", "bulk_insert", np.arange(chosen.rows), 0, None)
        head, ts = chosen.rows, 1
        live = base_files(table, loaded)
        for name, rows in (("large upsert", chosen.large), ("small upsert", chosen.small)):
            for _ in range(chosen.repeat):
                floor = rewrite(live, service.data / "floor", processes=2)
                numbers = half_new(rows, of=chosen.rows, first_new=head, seed=ts)
                live = base_files(table, write(name, "upsert", numbers, ts, floor))
                head, ts = head + rows, ts + 1
    name = f"upsert{cluster.name if cluster else ''}"
    publish(name, {"table rows": chosen.rows, "buckets": chosen.buckets}, figures)


def base_files(table: Table, written: Written) -> list[Path]:
    """The base files that a write to every bucket left: all of the table's."""
    return sorted(table.storage / path for path in written.files if "data" in path.parts)


if __name__ == "__main__":
    main()
