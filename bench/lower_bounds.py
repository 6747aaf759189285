"""What the steps cost that no write and no page can do without, each by itself, with the libraries of the service.

A target below the sum of its steps cannot be reached with these libraries on this machine. A sum below the target
proves nothing. Figures are processor time: that of a server is measured under the same 50 clients as `make
bench-small-writes`, that of a step in this process on one thread.
"""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import httpx
import numpy as np
import orjson
import polars as pl
import psutil
import psycopg
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from app.infra.files.parquet_file import BASE_ROW_GROUP_ROWS, CHANGELOG_ROW_GROUP_ROWS, create_parquet
from app.infra.files.storage import LocalStorage
from app.infra.runtime.loopback import LOOPBACK, free_port
from app.infra.runtime.postgres import EmbeddedPostgres
from app.kernel.codecs.json.encode import encode_changes_json
from app.kernel.format.index.key_hash import hash_keys
from app.kernel.format.rows.key_order import key_order
from app.kernel.format.rows.record_key import encode_keys
from bench.options import parser
from bench.own_steps import cpu_seconds, merges, pages, reads, statements
from bench.processes import processor_seconds, tree
from bench.report import publish
from bench.service import Service
from bench.small_writes import requests, send
from bench.smallest_server import INSERT, STEPS
from bench.trips import trips

_WARM_SECONDS: Final = 2.0
_PAGE_ROWS: Final = 10_000
_KEY: Final = ["uuid"]


@contextmanager
def _server(step: str, url: str | None, data: Path) -> Iterator[Service]:
    port = free_port()
    arguments = [step, str(port), *([url] if url else [])]
    process = subprocess.Popen([sys.executable, "-m", "bench.smallest_server", *arguments])
    address = f"http://{LOOPBACK}:{port}"
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                httpx.get(address, trust_env=False)
                break
            except httpx.TransportError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit("the smallest server did not start") from None
                time.sleep(0.05)
        supervisor = psutil.Process(process.pid)
        yield Service(url=address, api_key="none", data=data, supervisor=supervisor, storage=data)
    finally:
        process.terminate()
        process.wait(30)


def small_writes(scratch: Path, *, clients: int, rows: int, seconds: float) -> Iterator[dict[str, Any]]:
    """Each step of the smallest server: processor milliseconds for each write, of it and of Postgres."""
    with (
        TemporaryDirectory(prefix="headwater-bench-", dir=scratch) as folder,
        EmbeddedPostgres(Path(folder)) as server,
    ):
        with psycopg.connect(server.owner_url, autocommit=True) as connection:
            connection.execute("CREATE TABLE accepted (body bytea NOT NULL)")
        postgres = psutil.Process().children()
        for step, name in STEPS.items():
            url = (
                server.owner_url.replace("postgresql://", "postgresql+psycopg://") if step == INSERT else None
            )
            with _server(step, url, Path(folder)) as service:
                source = requests(service, "trips", rows=rows, keys=20_000, wait=False)
                asyncio.run(send(service, source, clients, _WARM_SECONDS))
                works = [service.supervisor]
                stores = [each for process in postgres for each in tree(process)]
                before, began = _spent(works, stores), time.perf_counter()
                count = len(asyncio.run(send(service, source, clients, seconds)))
                took = time.perf_counter() - began
                after = _spent(works, stores)
            api, stored, own = (
                1000 * (one - other) / count for one, other in zip(after, before, strict=True)
            )
            yield {
                "step": name,
                "per": "write",
                "cpu ms": round(api + stored, 2),
                "of it Postgres": round(stored, 2),
                "the clients": round(own, 2),
                "per s": round(count / took),
            }


def _spent(works: list[psutil.Process], stores: list[psutil.Process]) -> tuple[float, float, float]:
    """Processor seconds of the server, of Postgres and of the clients, which are this process."""
    return processor_seconds(works), processor_seconds(stores), time.process_time()


def spark_jobs(*, repeat: int) -> Iterator[dict[str, Any]]:
    """Jobs whose tasks do nothing: processor milliseconds of the JVM and the tasks for each of them."""
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    try:
        context = session.sparkContext
        context.setLogLevel("ERROR")
        for tasks in (1, 8):

            def run(tasks: int = tasks) -> None:
                context.parallelize(range(tasks), tasks).map(lambda number: number).collect()

            for _ in range(20):
                run()
            everything = psutil.Process()
            before = processor_seconds(tree(everything))
            for _ in range(repeat):
                run()
            spent = processor_seconds(tree(everything)) - before
            yield {
                "step": f"an empty Spark job of {tasks} task{'s' if tasks > 1 else ''}",
                "per": "task",
                "cpu ms": round(1000 * spent / repeat / tasks, 2),
            }
    finally:
        session.stop()


def _changes(rows: int) -> pa.Table:
    """A page of a feed in bulk, as the reader hands it to an encoder."""
    row = trips(np.arange(rows), ts=1)
    whole = pa.nulls(rows, pa.int64())
    return pa.table(
        {
            "offset": pa.array(range(rows), pa.int64()),
            "op": pa.array(np.zeros(rows, np.uint8)),
            "version": pa.array(np.ones(rows, np.int64)),
            "corrects_offset": whole,
            "system_time": pa.array(np.full(rows, 1_790_000_000_000), pa.timestamp("ms", "UTC")),
            "row": pa.StructArray.from_arrays(row.combine_chunks().to_batches()[0].columns, row.schema.names),
        }
    )


def _stored(folder: Path, rows: pa.Table, *, row_group_rows: int) -> Path:
    (folder / "rows.parquet").unlink(missing_ok=True)
    with create_parquet(
        LocalStorage(folder),
        "rows.parquet",
        rows.schema,
        row_group_rows=row_group_rows,
    ) as sink:
        sink.write(rows)
        sink.finish()
    return folder / "rows.parquet"


def _ipc(table: pa.Table) -> bytes:
    out = io.BytesIO()
    with ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def rows_of_pages(folder: Path, *, repeat: int) -> Iterator[dict[str, Any]]:
    """The steps of a page of a feed: rows per processor second."""
    changes = _changes(_PAGE_ROWS)
    stored = _stored(folder, trips(np.arange(_PAGE_ROWS), ts=1), row_group_rows=CHANGELOG_ROW_GROUP_ROWS)
    frame = pl.DataFrame(changes.drop_columns("system_time"))
    floats = [column for column in changes["row"].combine_chunks().flatten() if column.type == pa.float64()]
    steps: dict[str, Callable[[], Any]] = {
        "Parquet to Arrow": lambda: pq.ParquetFile(stored).read(use_threads=False),
        "Arrow to an Arrow stream": lambda: _ipc(changes),
        "Arrow to JSON (polars)": frame.write_json,
        "the five floats of a row as JSON (orjson)": lambda: [
            orjson.dumps(column.to_numpy(), option=orjson.OPT_SERIALIZE_NUMPY) for column in floats
        ],
        "Arrow to JSON, as served": lambda: encode_changes_json(changes, as_ndjson=False),
    }
    for step, work in steps.items():
        seconds = cpu_seconds(work, repeat)
        yield {
            "step": step,
            "per": f"{_PAGE_ROWS:,} rows",
            "cpu ms": round(seconds * 1000, 2),
            "per s": round(_PAGE_ROWS / seconds),
        }


def bulk(folder: Path, rows: int, *, repeat: int) -> Iterator[dict[str, Any]]:
    """The steps of a bulk insert that writes each row once, sorted by key."""
    table = trips(np.random.default_rng(1).permutation(rows), ts=1)
    received = folder / "received.parquet"
    pq.write_table(table, received, compression="lz4", use_dictionary=["rider", "driver", "city"])
    order = key_order(table, _KEY)
    ordered = table.take(order)
    steps: dict[str, Callable[[], Any]] = {
        "decode the Parquet file": lambda: pq.ParquetFile(received).read(use_threads=False),
        "the hashes of the keys": lambda: hash_keys(encode_keys(table, _KEY)),
        "the order by key": lambda: key_order(table, _KEY),
        "the rows in this order": lambda: table.take(order),
        "encode Parquet": lambda: _stored(folder, ordered, row_group_rows=BASE_ROW_GROUP_ROWS),
    }
    for step, work in steps.items():
        seconds = cpu_seconds(work, repeat)
        yield {
            "step": step,
            "per": f"{rows:,} rows",
            "cpu ms": round(seconds * 1000, 2),
            "per s": round(rows / seconds),
        }


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--clients", type=int, default=50, help="clients at a time")
    options.add_argument("--rows", type=int, default=100, help="rows of a write")
    options.add_argument("--seconds", type=float, default=10.0, help="how long each server is measured")
    options.add_argument("--bulk-rows", type=int, default=1_000_000, help="rows of the bulk insert")
    options.add_argument("--repeat", type=int, default=5, help="runs of each step; its figure is the median")
    chosen = options.parse_args()
    pa.set_cpu_count(1)
    figures = list(
        small_writes(chosen.scratch, clients=chosen.clients, rows=chosen.rows, seconds=chosen.seconds)
    )
    figures += statements(chosen.scratch, writes=200)
    figures += spark_jobs(repeat=100)
    with TemporaryDirectory(prefix="headwater-bench-", dir=chosen.scratch) as folder:
        figures += merges(Path(folder), repeat=chosen.repeat * 10)
        figures += rows_of_pages(Path(folder), repeat=chosen.repeat * 4)
        figures += pages(Path(folder), repeat=chosen.repeat * 4)
        figures += reads(Path(folder), repeat=chosen.repeat)
        figures += bulk(Path(folder), chosen.bulk_rows, repeat=chosen.repeat)
    parameters = {"clients": chosen.clients, "rows": chosen.rows, "seconds": chosen.seconds}
    publish("lower_bounds", parameters, figures)


if __name__ == "__main__":
    main()
