"""Upserts on a Spark cluster with two hosts and storage on S3: tasks that go back to the host with hot copies, and not.

Two Spark workers with addresses and folders of their own stand for the hosts, and versitygw for S3 (`make
cluster-programs` builds it). All run on this machine, so the storage is nearer than a real one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import httpx
import numpy as np
import psutil

from app.infra.files.storage import create_bucket
from app.infra.runtime.java import java_home
from app.infra.runtime.loopback import LOOPBACK, free_port
from bench.options import parser
from bench.processes import processor_seconds
from bench.report import publish
from bench.service import ROOT, running_service
from bench.table import Table
from bench.trips import write_parquet

_START_SECONDS_MAX: Final = 60.0
_STOP_SECONDS_MAX: Final = 20.0
_LOG_SHOWN: Final = 20_000
_ADDRESSES: Final = ("127.0.0.2", "127.0.0.3")
_STORED: Final = re.compile(r" s3_(?:PutObject|UploadPart) .* \d{3} \S+ \d+ (\d+) \d+ \d+ ")


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """The S3 server, and the Spark workers with their folders. `environment`: that of the service."""

    storage: psutil.Process
    log: Path
    workers: list[psutil.Process]
    folders: list[Path]
    environment: dict[str, str]

    def totals(self) -> dict[str, float]:
        """So far: seconds of processors, megabytes that the S3 server has sent, its requests, and copies."""
        executors = [child for worker in self.workers for child in worker.children(recursive=True)]
        lines = self.log.read_text(errors="replace").splitlines()
        stored = sum(int(found[1]) for found in map(_STORED.search, lines) if found)
        copies = [file.stat().st_size for folder in self.folders for file in folder.glob("hot/boot-*/*")]
        return {
            "executors' processor s": processor_seconds(executors),
            # What it writes goes to its clients or into files.
            "MB from S3": (self.storage.io_counters().write_chars - stored) / 1e6,
            "GETs": sum(" s3_GetObject " in line for line in lines),
            "new copies": len(copies),
            "MB copied": sum(copies) / 1e6,
        }


@contextmanager
def _process(command: list[str], environment: dict[str, str], log: Path) -> Iterator[psutil.Process]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=os.environ | environment, cwd=log.parent, stdout=output, stderr=output
        )
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(url: str, text: str) -> None:
    deadline = time.monotonic() + _START_SECONDS_MAX
    while time.monotonic() < deadline:
        try:
            if text in httpx.get(url, trust_env=False, timeout=2).text:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.2)
    raise SystemExit(f"{url} does not answer with {text!r}")


@contextmanager
def running_hosts(folder: Path, versitygw: Path, wait_seconds: float) -> Iterator[Hosts]:
    """Starts them on loopback addresses."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    spark = str(Path(spec.origin).parent / "bin" / "spark-class")
    s3, master, web = (free_port() for _ in range(3))
    secret = "of a measurement"
    aws = {
        "AWS_ENDPOINT_URL": f"http://{LOOPBACK}:{s3}",
        "AWS_ACCESS_KEY_ID": "headwater",
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_REGION": "us-east-1",
        "NO_PROXY": "*",
    }
    java = {"JAVA_HOME": str(java_home(folder)), "PYTHONPATH": f"{ROOT}:{ROOT / 'clients' / 'python'}"}
    uri, log = "s3://headwater/tables", folder / "access.log"
    (folder / "storage").mkdir()
    gateway = {
        "ROOT_ACCESS_KEY": "headwater",
        "ROOT_SECRET_KEY": secret,
        "VGW_PORT": f"{LOOPBACK}:{s3}",
        "VGW_HEALTH": "/health",
        "VGW_QUIET": "true",
        "VGW_ACCESS_LOG": str(log),
    }
    with ExitStack() as stack:
        command = [str(versitygw), "posix", str(folder / "storage")]
        storage = stack.enter_context(_process(command, gateway, folder / "storage.log"))
        _wait(f"{aws['AWS_ENDPOINT_URL']}/health", "")
        os.environ.update(aws)
        create_bucket(uri)
        command = [spark, "org.apache.spark.deploy.master.Master", "--host", LOOPBACK]
        command += ["--port", str(master), "--webui-port", str(web)]
        local = java | {"SPARK_LOCAL_IP": LOOPBACK}
        stack.enter_context(_process(command, local, folder / "master.log"))
        _wait(f"http://{LOOPBACK}:{web}/json/", "ALIVE")
        workers, folders = [], []
        for address in _ADDRESSES:
            own = folder / address
            own.mkdir()
            folders.append(own)
            variables = {
                "SPARK_LOCAL_IP": address,
                "SPARK_WORKER_CORES": "1",
                "SPARK_WORKER_MEMORY": "1g",
                "SPARK_WORKER_DIR": str(own / "work"),
                "SPARK_LOCAL_DIRS": str(own / "local"),
                "HEADWATER_EXECUTOR_DIR": str(own),
            }
            command = [spark, "org.apache.spark.deploy.worker.Worker", "--host", address]
            command += [f"spark://{LOOPBACK}:{master}"]
            workers.append(
                stack.enter_context(_process(command, java | aws | variables, folder / f"{address}.log"))
            )
            _wait(f"http://{LOOPBACK}:{web}/json/", address)
        environment = aws | {
            "HEADWATER_STORAGE_URI": uri,
            "HEADWATER_SPARK_MASTER": f"spark://{LOOPBACK}:{master}",
            "HEADWATER_SPARK_UI_URL": f"http://{LOOPBACK}:{web}",
            "HEADWATER_SPARK_DRIVER_HOST": LOOPBACK,
            "HEADWATER_SPARK_CORES_MAX": str(len(_ADDRESSES)),
            "HEADWATER_SPARK_EXECUTOR_MEMORY_BYTES": str(512 * 2**20),
            "HEADWATER_SPARK_LOCALITY_WAIT_SECONDS": f"{wait_seconds:g}",
        }
        yield Hosts(storage=storage, log=log, workers=workers, folders=folders, environment=environment)


def _upserts(table: Table, hosts: Hosts, *, rows: int, size: int, count: int) -> dict[str, Any]:
    """Upserts of random rows of the table, one after another."""
    random = np.random.default_rng(size)
    before, seconds = hosts.totals(), []
    file = table.service.data / "client.parquet"
    for number in range(count):
        write_parquet(file, random.choice(rows, size, replace=False), ts=number + 1)
        source = table.upload(file)
        began = time.perf_counter()
        table.commit("upsert", source=source)
        seconds.append(time.perf_counter() - began)
    after = hosts.totals()
    return {
        "median ms": float(np.median(seconds)) * 1000,
        **{name: round(after[name] - before[name], 2) for name in before},
    }


def measure(
    scratch: Path, versitygw: Path, *, wait: float, rows: int, buckets: int, sizes: list[int], upserts: int
) -> list[dict[str, Any]]:
    """One line for each size of an upsert."""
    figures = []
    with (
        tempfile.TemporaryDirectory(prefix="headwater-locality-", dir=scratch) as folder,
        running_hosts(Path(folder), versitygw, wait) as hosts,
        running_service(scratch, hosts.environment) as service,
        service.client() as client,
    ):
        table = Table.create(service, client, "trips", buckets=buckets, table_type="merge_on_read")
        file = service.data / "load.parquet"
        write_parquet(file, np.arange(rows), ts=0)
        try:
            table.commit("bulk_insert", source=table.upload(file))
            for size in sizes:
                found = _upserts(table, hosts, rows=rows, size=size, count=upserts)
                figures.append({"wait s": wait, "rows": size, **found})
                print(figures[-1], flush=True)
        except httpx.HTTPStatusError as error:
            log = service.data.with_suffix(".log").read_text(errors="replace")
            raise SystemExit(f"{error.response.text}\n{log[-_LOG_SHOWN:]}") from error
    return figures


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=1_000_000, help="rows of the table")
    options.add_argument("--buckets", type=int, default=8, help="its buckets")
    options.add_argument("--sizes", type=int, nargs="+", default=[1_000, 100_000], help="rows of an upsert")
    options.add_argument("--upserts", type=int, default=20, help="upserts of each size")
    options.add_argument(
        "--waits", type=float, nargs="+", default=[0.1, 0.0], help="waits in seconds; 0: off"
    )
    options.add_argument(
        "--versitygw", type=Path, default=ROOT / ".venv-cluster" / "bin" / "versitygw", help="the S3 server"
    )
    chosen = options.parse_args()
    if not chosen.versitygw.exists():
        sys.exit("versitygw is missing: `make cluster-programs` builds it")
    table = {"rows": chosen.rows, "buckets": chosen.buckets, "upserts": chosen.upserts}
    figures = [
        line
        for wait in chosen.waits
        for line in measure(
            chosen.scratch,
            chosen.versitygw.absolute(),
            wait=wait,
            rows=chosen.rows,
            buckets=chosen.buckets,
            sizes=chosen.sizes,
            upserts=chosen.upserts,
        )
    ]
    publish("locality", table, figures)


if __name__ == "__main__":
    main()
