"""Reads of about 1 % of a table by a filter: unordered, partitioned, and clustered by one or by two columns.

Pages of 10,000 rows, read in this process with what the API reads them with, on one core. The clusterings run in the
service, on Spark.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from app.core.changes.service.read_corrections import ReadCorrections
from app.core.timeline.repository.read_leases import ReadLeaseStore
from app.features.reads.service.rows import ReadTable, RowQuery
from app.features.versions.repository.named_versions import NamedVersionStore
from app.features.versions.service.versions import VersionOf
from app.infra.db.session import Database
from app.infra.files.parquet_file import ParquetReader
from app.infra.files.slices.table_walk import TableWalk
from app.infra.settings import Settings
from bench.in_process import InProcess
from bench.options import parser
from bench.processes import one_core, processor_seconds, tree
from bench.report import publish
from bench.service import Service, finished, running_service
from bench.table import Table, run_seconds

SENSORS = 1_000
SITES = 100
YEAR_SECONDS = 365 * 24 * 3600
_PAGE_ROWS = 10_000
FIELDS = {
    "id": "int64",
    "site": "int32",
    "sensor": "int32",
    "at": "timestamp",
    "value": "double",
    "quality": "double",
    "note": "string",
}
# Each selects a hundredth of the rows.
BY_SITE = "site = 42"
BY_SENSOR = "sensor >= 500 AND sensor < 510"
BY_TIME = "at >= TIMESTAMP '2026-05-01T00:00:00Z' AND at < TIMESTAMP '2026-05-04T15:36:00Z'"


def readings(count: int, seed: int) -> pa.Table:
    """Rows of which every column has values from all over its range."""
    random = np.random.default_rng(seed)
    start = np.datetime64("2026-01-01T00:00:00", "us")
    return pa.table(
        {
            "id": np.arange(seed * count, (seed + 1) * count),
            "site": random.integers(0, SITES, count, dtype=np.int32),
            "sensor": random.integers(0, SENSORS, count, dtype=np.int32),
            "at": pa.array(
                start + (random.random(count) * YEAR_SECONDS * 1e6).astype("timedelta64[us]"),
                pa.timestamp("us", tz="UTC"),
            ),
            "value": random.normal(size=count),
            "quality": random.random(count),
            "note": pa.array([f"reading {number}" for number in random.integers(0, 10_000, count)]),
        }
    )


@dataclass(kw_only=True)
class Counted:
    """What was decoded: row groups, and the files they are in."""

    row_groups: int = 0
    files: set[str] = field(default_factory=set)


@contextmanager
def counting() -> Iterator[Counted]:
    """Counts what readers of this process decode."""
    found = Counted()
    decode, read = pq.ParquetFile.read_row_group, ParquetReader.read_slice

    def counted_decode(self: Any, *args: Any, **more: Any) -> pa.Table:
        found.row_groups += 1
        return decode(self, *args, **more)

    def counted_read(self: Any, file: Any, *args: Any) -> pa.Table:
        found.files.add(file.path)
        return read(self, file, *args)

    with (
        patch.object(pq.ParquetFile, "read_row_group", counted_decode),
        patch.object(ParquetReader, "read_slice", counted_read),
    ):
        yield found


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Reads pages as the API does."""

    lake: InProcess
    pages: ReadTable

    @classmethod
    def of(cls, service: Service) -> Reader:
        lake = InProcess.of(service)
        settings = Settings.from_environment(service.process("app.main").environ())
        database = Database(settings.database_url, application_name="headwater bench")
        versions = VersionOf(
            timeline=lake.timeline, names=NamedVersionStore(database), leases=ReadLeaseStore(database)
        )
        pages = ReadTable(
            catalog=lake.catalog,
            timeline=lake.timeline,
            versions=versions,
            walk=TableWalk(groups=lake.tables),
            corrections=ReadCorrections(index=lake.changelog, reader=lake.reader),
        )
        return cls(lake=lake, pages=pages)

    def rows(self, dataset_id: str, where: str | None) -> int:
        """Reads all that a filter selects; how many rows that was."""
        dataset = self.lake.catalog.get(self.lake.tenant_id, dataset_id)
        found, token = 0, None
        while True:
            query = RowQuery(limit=_PAGE_ROWS, where=where, page_token=token)
            page = self.pages.page(dataset, query)
            found += page.rows.num_rows
            token = page.next_page_token
            if token is None:
                return found

    def measured(
        self, table: Table, layout: str, filtered: str, where: str | None, runs: int
    ) -> dict[str, Any]:
        """The median of some reads, after one that checks the files."""
        with counting() as counted:
            rows = self.rows(table.id, where)
        seconds, cpu_seconds = [], []
        with one_core():
            for _ in range(runs):
                began, cpu_began = time.perf_counter(), time.process_time()
                self.rows(table.id, where)
                seconds.append(time.perf_counter() - began)
                cpu_seconds.append(time.process_time() - cpu_began)
        return {
            "layout": layout,
            "filter": filtered,
            "rows": rows,
            "files": len(counted.files),
            "row groups": counted.row_groups,
            "ms": round(statistics.median(seconds) * 1e3),
            "cpu ms": round(statistics.median(cpu_seconds) * 1e3),
        }


def filled(service: Service, client: httpx.Client, name: str, rows: int, writes: int, **more: Any) -> Table:
    """A table without a key, written in some appends."""
    fields = [{"name": column, "type": kind} for column, kind in FIELDS.items()]
    made = client.post("/datasets", json={"name": name, "schema": {"fields": fields}, **more})
    table = Table(service=service, client=client, id=made.raise_for_status().json()["id"])
    file = Path(service.data, "readings.parquet")
    for number in range(writes):
        pq.write_table(readings(rows // writes, number), file)
        table.commit("insert", source=table.upload(file))
    file.unlink()
    return table


def clustered(table: Table, columns: list[str], order: str, rows: int) -> dict[str, Any]:
    """Puts the table in order, and says what that took."""
    works = tree(table.service.process("workers.main"))
    cpu_before = processor_seconds(works)
    reply = table.client.post(
        f"/datasets/{table.id}/clusterings",
        json={"columns": columns, "order": order},
        headers={"Prefer": "wait=60"},
    )
    job = finished(table.client, reply.raise_for_status().json())
    cpu_seconds = processor_seconds(works) - cpu_before
    seconds = run_seconds(job)
    return {
        "layout": f"{order} by {', '.join(columns)}",
        "filter": "(clustering)",
        "rows": rows,
        "files": job["result"]["files_added"],
        "ms": round(seconds * 1e3),
        "cpu ms": round(cpu_seconds * 1e3),
        "rows/s": round(rows / seconds),
        "rows/cpu s": round(rows / cpu_seconds),
    }


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=4_000_000, help="rows of the table")
    options.add_argument("--writes", type=int, default=8, help="appends that write them")
    options.add_argument(
        "--runs", type=int, default=5, help="reads of each kind, of which the median is told"
    )
    chosen = options.parse_args()
    figures = []
    with running_service(chosen.scratch) as service, service.client() as client:
        reader = Reader.of(service)

        def read(table: Table, layout: str, **filters: str | None) -> None:
            for filtered, where in filters.items():
                figures.append(reader.measured(table, layout, filtered, where, chosen.runs))

        parted = filled(
            service, client, "parted", chosen.rows, chosen.writes, partition_by=["site"],
            services={"compaction": None},
        )  # fmt: skip
        read(parted, "partitioned by site", site=BY_SITE, sensor=BY_SENSOR)
        plain = filled(service, client, "plain", chosen.rows, chosen.writes, services={"compaction": None})
        read(plain, "as written", everything=None, site=BY_SITE, sensor=BY_SENSOR, time=BY_TIME)
        for columns, order in ((["sensor"], "linear"), (["sensor", "at"], "z_order")):
            figures.append(clustered(plain, columns, order, chosen.rows))
            layout = f"{order} by {', '.join(columns)}"
            read(plain, layout, everything=None, sensor=BY_SENSOR, time=BY_TIME)
    publish("clustering", {"rows": chosen.rows, "writes": chosen.writes}, figures)


if __name__ == "__main__":
    main()
