"""The latest ten rows of a table: `GET …/rows?order_by=at:desc&limit=10` beside a read job with the same order and
limit.

The table has no key. Each of its files has the rows of a day, and values of `value` from all over their range, so that
bounds fit the order by `at` and not the order by `value`. `files read` and `rows read` are those of the first page, in
this process.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.ipc as ipc

from app.infra.files.slices.ordered_walk import OrderedWalk
from app.infra.files.slices.table_reader import TableReader
from app.kernel.commit.read_plan import plan_read
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import DataFile
from app.kernel.sql.conditions.prune import RowFilter
from app.kernel.sql.read_order import ReadOrder
from bench.in_process import InProcess
from bench.options import parser
from bench.report import percentiles, publish
from bench.service import finished, running_service

_FIELDS: Final = (("id", "int64"), ("at", "timestamp"), ("value", "double"), ("note", "string"))
_ARROW: Final = "application/vnd.apache.arrow.stream"
_LIMIT: Final = 10
_DAY: Final = 86_400_000_000
_TIME: Final = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, kw_only=True, slots=True)
class _All:
    """All rows and columns."""

    definition: DatasetDefinition
    read: pa.Schema
    where: None = None
    selects: bool = False

    def chosen(self, rows: pa.Table) -> npt.NDArray[np.int64]:
        """Every row."""
        return np.arange(rows.num_rows)


@dataclass(kw_only=True, slots=True)
class _Counted:
    """A reader that counts what it reads."""

    tables: TableReader
    files: set[str] = field(default_factory=set)
    rows: int = 0

    def read_group(
        self,
        dataset: DatasetDefinition,
        files: Sequence[DataFile],
        schema: pa.Schema,
        first_row: int,
        rows: int,
        bytes_max: int,
    ) -> pa.Table:
        """See `GroupReader`."""
        self.files |= {file.path for file in files}
        table = self.tables.read_group(dataset, files, schema, first_row, rows, bytes_max)
        self.rows += table.num_rows
        return table

    def row_ranges(
        self, files: Sequence[DataFile], row_filter: RowFilter, first_row: int, end: int | None
    ) -> Iterable[tuple[int, int | None]]:
        """See `GroupReader`."""
        return self.tables.row_ranges(files, row_filter, first_row, end)


def content(number: int, rows: int) -> bytes:
    """The rows of a day, as an Arrow stream."""
    ids = np.arange(number * rows, (number + 1) * rows)
    random = np.random.default_rng(number)
    table = pa.table(
        {
            "id": ids,
            "at": pa.array(number * _DAY + np.arange(rows) * (_DAY // rows), _TIME),
            "value": random.random(rows),
            "note": pa.array([f"note {each}" for each in random.integers(0, 1_000, rows)]),
        }
    )
    sink = io.BytesIO()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def milliseconds(client: httpx2.Client, path: str, column: str, count: int) -> dict[str, float]:
    """Of the request for the first rows in the order."""
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        page = client.get(f"{path}/rows", params={"order_by": f"{column}:desc", "limit": _LIMIT})
        seconds.append(time.perf_counter() - start)
        assert len(page.raise_for_status().json()["rows"]) == _LIMIT
    return {"first": round(seconds[0] * 1000, 1), **percentiles(seconds[1:])}


def job_milliseconds(client: httpx2.Client, path: str, column: str, count: int) -> dict[str, float]:
    """Of a read job with the same rows, from its request to its result."""
    seconds = []
    body = {"order_by": [{"column": column, "descending": True}], "limit": _LIMIT}
    for _ in range(count):
        start = time.perf_counter()
        job = client.post(f"{path}/reads", json=body, headers={"Prefer": "wait=60"}).raise_for_status().json()
        job = finished(client, job)
        result = client.get(f"{job['links']['self']}/result").raise_for_status().json()
        seconds.append(time.perf_counter() - start)
        assert len(result["rows"]) == _LIMIT
    return {"first": round(seconds[0] * 1000, 1), **percentiles(seconds[1:])}


def counts(own: InProcess, dataset_id: str, column: str) -> dict[str, int]:
    """What the first page reads."""
    dataset = own.catalog.get(own.tenant_id, dataset_id)
    live = own.timeline.live_files(own.tenant_id, dataset.id, dataset.version, None)
    counted = _Counted(tables=own.tables)
    definition = dataset.definition
    OrderedWalk(groups=counted).page(
        _All(definition=definition, read=definition.schema.to_arrow()),
        plan_read(definition, live),
        [ReadOrder(column=column, descending=True)],
        None,
        _LIMIT,
    )
    return {"files": len(live), "files read": len(counted.files), "rows read": counted.rows}


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=1_000_000, help="rows of the table")
    options.add_argument("--files", type=int, default=100, help="writes, each of which makes a file")
    options.add_argument("--requests", type=int, default=50, help="requests for a page")
    options.add_argument("--jobs", type=int, default=11, help="read jobs")
    setting = options.parse_args()
    with running_service(setting.scratch) as service, service.client() as client:
        fields = [{"name": name, "type": kind} for name, kind in _FIELDS]
        # A small write takes small files of its partition along, so each day is one.
        registration = {"name": "events", "schema": {"fields": fields}, "partition_by": ["day(at)"]}
        dataset: dict[str, Any] = client.post("/datasets", json=registration).raise_for_status().json()
        path = dataset["links"]["self"]
        for number in range(setting.files):
            reply = client.post(
                f"{path}/writes",
                params={"operation": "bulk_insert"},
                content=content(number, setting.rows // setting.files),
                headers={"Content-Type": _ARROW, "Prefer": "wait=60"},
            )
            finished(client, reply.raise_for_status().json())
        own = InProcess.of(service)
        figures = []
        for column in ("at", "value"):
            read = counts(own, dataset["id"], column)
            pages = milliseconds(client, path, column, setting.requests)
            jobs = job_milliseconds(client, path, column, setting.jobs)
            figures.append({"order": f"{column}:desc", "way": "order_by on /rows", **read, **pages})
            figures.append({"order": f"{column}:desc", "way": "read job", **jobs})
    publish("ordered-rows", {"rows": setting.rows, "writes": setting.files}, figures)


if __name__ == "__main__":
    main()
