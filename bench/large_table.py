"""One dataset with very many files: what a write, a page, a part of a snapshot and a compaction cost as it grows.

The table is partitioned by `day`. A partition is loaded at a time, a file for each of its buckets. The partitions are
made in steps, and at every step the same work is measured: what touches one partition, or one page, should not cost
more in a larger table.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.options import chosen_cluster, parser
from bench.processes import MEBIBYTE, memory, processor_seconds, tree
from bench.report import publish
from bench.service import API, Service, finished, running_service
from bench.table import Table, run_seconds
from bench.trips import definition, trips, upsert_body

_PAGE_ROWS: Final = 10_000
_ARROW: Final = {"Accept": "application/vnd.apache.arrow.stream"}


@dataclass(kw_only=True)
class LargeTable:
    """A table of `partitions` days so far, with `buckets` files of `rows_per_file` rows in each."""

    table: Table
    buckets: int
    rows_per_file: int
    partitions: int = 0
    ts: int = 0
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    @classmethod
    def create(cls, service: Service, client: httpx2.Client, buckets: int, rows_per_file: int) -> LargeTable:
        """An empty one, `merge_on_read`, which is compacted on request only."""
        registration = definition("large", buckets=buckets)
        registration["schema"]["fields"].append({"name": "day", "type": "int32", "nullable": False})
        registration |= {
            "record_key": ["day", "uuid"],
            "partition_by": ["day"],
            "table_type": "merge_on_read",
            "services": {"compaction": None},
        }
        made = client.post("/datasets", json=registration).raise_for_status().json()
        table = Table(service=service, client=client, id=made["id"])
        return cls(table=table, buckets=buckets, rows_per_file=rows_per_file)

    @property
    def partition_rows(self) -> int:
        """Rows of a partition."""
        return self.buckets * self.rows_per_file

    def load(self) -> dict[str, Any]:
        """The job that has written the next partition."""
        numbers = np.arange(self.partition_rows) + self.partitions * self.partition_rows
        job = self._commit("bulk_insert", numbers, self.partitions)
        self.partitions += 1
        return job

    def update(self, rows: int, day: int) -> dict[str, Any]:
        """The job that has updated rows of a partition, by an upload."""
        return self._commit("upsert", self._some(rows, day), day)

    def small_write(self, rows: int) -> float:
        """Seconds from the request of an upsert of rows in any partition to the response that it is committed."""
        day = self.any_day()
        body = upsert_body(self._rows(self._some(rows, day), day))
        began = time.perf_counter()
        reply = self.table.client.post(
            f"/datasets/{self.table.id}/writes",
            content=body,
            headers={"Content-Type": "application/json", "Prefer": "wait=60"},
        )
        finished(self.table.client, reply.raise_for_status().json())
        return time.perf_counter() - began

    def get(self, path: str, **parameters: Any) -> float:
        """Seconds of a page as Arrow."""
        began = time.perf_counter()
        page = self.table.client.get(f"/datasets/{self.table.id}/{path}", params=parameters, headers=_ARROW)
        page.raise_for_status()
        return time.perf_counter() - began

    def read_partition(self) -> float:
        """Seconds of a read job of all rows of a partition."""
        body = {"where": f"day = {self.any_day()}", "format": "arrow", "disposition": "files"}
        began = time.perf_counter()
        job = self.table.client.post(f"/datasets/{self.table.id}/reads", json=body).raise_for_status().json()
        rows = finished(self.table.client, job)["result"]["rows"]
        if rows != self.partition_rows:
            raise SystemExit(f"{rows} rows were read of {self.partition_rows}")
        return time.perf_counter() - began

    def compact(self, day: int | None) -> dict[str, Any]:
        """The job of a compaction of a partition, or of whatever there is to compact."""
        reply = self.table.client.post(
            f"/datasets/{self.table.id}/compactions",
            json={} if day is None else {"partitions": [f"day={day}"]},
            headers={"Prefer": "wait=60"},
        )
        return finished(self.table.client, reply.raise_for_status().json())

    def head(self) -> int:
        """The position after the last change."""
        found = self.table.client.get(f"/datasets/{self.table.id}/changes", params={"since": "now"})
        return int(found.raise_for_status().headers["headwater-next-since"])

    def any_day(self) -> int:
        """A partition that there is."""
        return int(self.random.integers(self.partitions))

    def _some(self, rows: int, day: int) -> np.ndarray:
        return self.random.choice(self.partition_rows, rows, replace=False) + day * self.partition_rows

    def _rows(self, numbers: np.ndarray, day: int) -> pa.Table:
        self.ts += 1
        days = pa.array(np.full(len(numbers), day, dtype=np.int32))
        return trips(numbers, ts=self.ts).append_column(pa.field("day", pa.int32(), nullable=False), days)

    def _commit(self, operation: str, numbers: np.ndarray, day: int) -> dict[str, Any]:
        file = Path(self.table.service.data, "client.parquet")
        pq.write_table(self._rows(numbers, day), file, compression="lz4")
        source = self.table.upload(file)
        file.unlink()
        return self.table.commit(operation, source=source)


@contextmanager
def processors(service: Service) -> Iterator[list[float]]:
    """Adds the processor seconds that all processes of the service have spent meanwhile."""
    spent: list[float] = []
    before = processor_seconds(tree(service.supervisor))
    yield spent
    spent.append(processor_seconds(tree(service.supervisor)) - before)


def grow(large: LargeTable, partitions: int) -> dict[str, Any]:
    """Loads partitions up to this number: seconds of the last loads, and their processor seconds."""
    jobs = []
    new = partitions - large.partitions
    with processors(large.table.service) as spent:
        while large.partitions < partitions:
            jobs.append(large.load())
    last = [run_seconds(job) for job in jobs[-5:]]
    return {
        "partitions": partitions,
        "files": partitions * large.buckets,
        "rows": partitions * large.partition_rows,
        "load of a partition s": round(statistics.median(last), 2),
        "its cpu s": round(spent[0] / new, 2),
    }


def measure(large: LargeTable, runs: int) -> dict[str, Any]:
    """The figures of a step: milliseconds are medians."""
    service, head = large.table.service, large.head()

    def timed(name: str, work: Callable[[int], float], count: int = runs) -> dict[str, float]:
        work(count)  # reads what is read once
        with processors(service) as spent:
            seconds = [work(number) for number in range(count)]
        return {
            f"{name} ms": round(1000 * statistics.median(seconds), 1),
            f"{name} cpu ms": round(1000 * spent[0] / count, 1),
        }

    # Other limits and positions: the same page is kept for a minute.
    figures = {
        **timed("1 row", lambda _: large.small_write(1)),
        **timed("100 rows", lambda _: large.small_write(min(100, large.partition_rows))),
        **timed("first page", lambda number: large.get("changes", since=number, limit=_PAGE_ROWS)),
        **timed(
            "page in the middle",
            lambda number: large.get("changes", since=head // 2 + number, limit=_PAGE_ROWS),
        ),
        **timed(
            "snapshot page",
            lambda number: large.get("changes", since="snapshot", limit=_PAGE_ROWS - number),
        ),
        **timed("rows of a day", lambda _: large.get("rows", where=f"day = {large.any_day()}", limit=1_000)),
        **timed("read of a day", lambda _: large.read_partition(), max(3, runs // 4)),
    }
    return {**figures, **compactions(large), **held(service)}


def compactions(large: LargeTable) -> dict[str, Any]:
    """Compactions of one partition with a log in each bucket, and of the rest: what small writes have left."""
    large.update(large.partition_rows // 10, 0)
    with processors(large.table.service) as spent:
        job = large.compact(0)
    with processors(large.table.service) as of_rest:
        rest = large.compact(None)
    return {
        "compaction of a day s": round(run_seconds(job), 2),
        "its groups": job["result"]["file_groups"],
        "cpu s of a compaction": round(spent[0], 2),
        "of the rest s": round(run_seconds(rest), 2),
        "groups of the rest": rest["result"]["file_groups"],
        "cpu s of the rest": round(of_rest[0], 2),
    }


def held(service: Service) -> dict[str, Any]:
    """Memory of the API and of the worker with Spark, after the work."""
    return {
        "api MiB": memory(service.processes(API)).proportional // MEBIBYTE,
        "worker MiB": memory(service.working()).proportional // MEBIBYTE,
    }


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__, cluster=True)
    options.add_argument(
        "--partitions", type=int, nargs="+", default=[100, 1_000], help="how many there are at each step"
    )
    options.add_argument("--buckets", type=int, default=100, help="files of each partition (at most 4,096)")
    options.add_argument("--rows-per-file", type=int, default=1_000, help="rows of each file")
    options.add_argument("--runs", type=int, default=20, help="writes and pages of each kind")
    chosen = options.parse_args()
    cluster = chosen_cluster(chosen)
    figures: list[dict[str, Any]] = []
    with running_service(chosen.scratch, cluster=cluster) as service, service.client() as client:
        large = LargeTable.create(service, client, chosen.buckets, chosen.rows_per_file)
        for partitions in sorted(chosen.partitions):
            grown = grow(large, partitions)
            figures.append({**grown, **measure(large, chosen.runs)})
            print(figures[-1], flush=True)
    given = {name: getattr(chosen, name) for name in ("buckets", "rows_per_file", "runs")}
    publish(f"large-table{cluster.name if cluster else ''}", given, upright(figures))


def upright(figures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A line for each figure, with a column for each size: there are more figures than sizes."""
    return [
        {"figure": name, **{f"{each['files']:,} files": each[name] for each in figures}}
        for name in figures[0]
    ]


if __name__ == "__main__":
    main()
