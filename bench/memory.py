"""Memory: the API at rest and while a large upload streams through it, the worker during a large upsert.

Proportional memory counts a page that n processes share as 1/n in each, so a sum over forked processes counts it once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx2
import numpy as np
import psutil

from bench.options import parser
from bench.processes import MEBIBYTE, Peak, memory, peak_memory, tree
from bench.report import publish
from bench.service import running_service
from bench.table import Table, half_new

_PIECE_BYTES = 256 * 1024


def line(what: str, peak: Peak, target_mib: int | None) -> dict[str, Any]:
    """One line of the table. Targets hold for resident memory of the API, for proportional memory of the worker."""
    return {
        "what": what,
        "resident MiB": round(peak.resident / MEBIBYTE),
        "proportional MiB": round(peak.proportional / MEBIBYTE),
        "target MiB": target_mib or "",
        "samples": peak.samples,
        "by program": {name: round(size / MEBIBYTE) for name, size in sorted(peak.by_program.items())},
    }


def at_rest(what: str, process: psutil.Process, target_mib: int | None) -> dict[str, Any]:
    """A process tree as it stands."""
    found = memory(tree(process))
    return line(what, Peak(resident=found.resident, proportional=found.proportional, samples=1), target_mib)


def upload(client: httpx2.Client, dataset: str, size: int) -> float:
    """Sends this number of random bytes in pieces; returns seconds."""
    piece = np.random.default_rng(1).bytes(_PIECE_BYTES)

    def stream() -> Iterator[bytes]:
        for _ in range(size // _PIECE_BYTES):
            yield piece

    began = time.perf_counter()
    reply = client.post(
        f"/datasets/{dataset}/uploads", content=stream(), headers={"Content-Type": "application/octet-stream"}
    )
    stored = reply.raise_for_status().json()["size_bytes"]
    if stored != size // _PIECE_BYTES * _PIECE_BYTES:
        raise SystemExit(f"{stored} of {size} bytes arrived")
    return time.perf_counter() - began


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--upload-mib", type=int, default=2048, help="size of the upload")
    options.add_argument("--rows", type=int, default=10_000_000, help="rows of the table")
    options.add_argument("--buckets", type=int, default=16, help="its buckets")
    options.add_argument("--upsert", type=int, default=1_000_000, help="rows of the upsert, half of them new")
    chosen = options.parse_args()
    figures = []
    with running_service(chosen.scratch) as service, service.client() as client:
        api, worker = service.process("app.main"), service.process("workers.main")
        table = Table.create(service, client, "trips", buckets=chosen.buckets)
        figures.append(at_rest("API at rest, just started", api, 250))
        figures.append(at_rest("worker at rest, just started", worker, None))
        with peak_memory(api, every_seconds=0.05) as peak:
            seconds = upload(client, table.id, chosen.upload_mib * MEBIBYTE)
        figures.append(line(f"API, {chosen.upload_mib} MiB upload in {seconds:.1f} s", peak, 400))
        with peak_memory(worker, every_seconds=0.2) as peak, peak_memory(api, every_seconds=0.05) as api_peak:
            table.write("bulk_insert", np.arange(chosen.rows), ts=0)
        figures.append(line(f"worker, load of {chosen.rows:,} rows", peak, None))
        figures.append(line("API during that load", api_peak, 400))
        numbers = half_new(chosen.upsert, of=chosen.rows, first_new=chosen.rows, seed=1)
        with peak_memory(worker, every_seconds=0.2) as peak:
            table.write("upsert", numbers, ts=1)
        figures.append(line(f"worker, upsert of {chosen.upsert:,} rows into them", peak, 3072))
        for accept in ("application/json", "application/vnd.apache.arrow.stream"):
            with peak_memory(api, every_seconds=0.05) as peak:
                for _ in range(20):
                    params = {"since": 0, "limit": 10_000}
                    client.get(
                        f"/datasets/{table.id}/changes", params=params, headers={"Accept": accept}
                    ).raise_for_status()
            figures.append(line(f"API, 20 pages of 10,000 changes as {accept}", peak, 400))
        time.sleep(5)
        figures.append(at_rest("API at rest afterwards", api, 250))
    publish("memory", {"table rows": chosen.rows, "buckets": chosen.buckets}, figures)


if __name__ == "__main__":
    main()
