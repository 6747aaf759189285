"""Upserts of 10,000 rows into a large table under each type of index: seconds of the clock and of the processor."""

from __future__ import annotations

import msgspec
import numpy as np

from app.kernel.format.dataset import IndexType
from bench.options import parser
from bench.processes import processor_seconds, tree
from bench.report import publish
from bench.service import running_service
from bench.table import Table, half_new


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=3_000_000, help="rows of each table")
    options.add_argument("--buckets", type=int, default=4, help="its buckets")
    options.add_argument("--upsert", type=int, default=10_000, help="rows of an upsert, half of them new")
    options.add_argument("--repeat", type=int, default=3, help="upserts of each table")
    options.add_argument("--table-type", default="merge_on_read", help="merge_on_read or copy_on_write")
    chosen = options.parse_args()
    figures = []
    with running_service(chosen.scratch) as service, service.client() as client:
        worker = service.process("workers.main")
        for index in IndexType:
            table = Table.create(
                service,
                client,
                f"trips_{index.value}",
                buckets=chosen.buckets,
                table_type=chosen.table_type,
                index=index,
            )
            before = processor_seconds(tree(worker))
            loaded = table.write("bulk_insert", np.arange(chosen.rows), ts=0)
            load_cpu = processor_seconds(tree(worker)) - before
            run, cpu = [], []
            for number in range(chosen.repeat):
                first_new = chosen.rows + number * chosen.upsert
                numbers = half_new(chosen.upsert, of=chosen.rows, first_new=first_new, seed=number)
                before = processor_seconds(tree(worker))
                written = table.write("upsert", numbers, ts=number + 1)
                cpu.append(processor_seconds(tree(worker)) - before)
                run.append(written.run_seconds)
                assert written.job["rows"]["inserted"] == chosen.upsert - chosen.upsert // 2
            figures.append(
                {
                    "index": index.value,
                    "load s": round(loaded.run_seconds, 1),
                    "load cpu s": round(load_cpu, 1),
                    "upserts s": [round(each, 2) for each in run],
                    "upserts cpu s": [round(each, 2) for each in cpu],
                    "table MB": round(sum(table.stored().values()) / 1e6),
                }
            )
            print(msgspec.json.encode(figures[-1]).decode(), flush=True)
    parameters = {
        "rows": chosen.rows,
        "buckets": chosen.buckets,
        "upsert": chosen.upsert,
        "type": chosen.table_type,
    }
    publish("indexes", parameters, figures)


if __name__ == "__main__":
    main()
