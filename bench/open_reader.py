"""Full scans of a table by DuckDB, through the catalogue and of the same files directly; run by bench.open_tables.

It runs in the environment of the engines that read open tables, and knows nothing of the service but its address.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import resources
from pathlib import Path
from typing import Any

import duckdb

_OWN_FILES_ONLY = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}


def connected(request: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    """DuckDB with the catalogue attached. It keeps no bytes of files: each scan reads all of them."""
    opened = duckdb.connect(config=_OWN_FILES_ONLY)
    for name in ("avro", "httpfs", "iceberg"):
        folder = Path(
            str(resources.files(f"duckdb_extension_{name}")), "extensions", f"v{duckdb.__version__}"
        )
        opened.load_extension(str(folder / f"{name}.duckdb_extension"))
    opened.execute("SET enable_external_file_cache = false")
    opened.execute(f"CREATE SECRET opened (TYPE iceberg, TOKEN '{request['token']}')")
    opened.execute(f"ATTACH 'v3' AS opened (TYPE iceberg, ENDPOINT '{request['uri']}', SECRET opened)")
    return opened


def main() -> None:
    """Reads a request in JSON, and prints the seconds of each scan, wall clock and processor."""
    request = json.loads(sys.stdin.read())
    opened = connected(request)
    sources = {"direct": "read_parquet($files)", "facade": f"opened.headwater.{request['table']}"}
    query = "SELECT {columns} FROM {source}"
    # No statistics of files have the answer, so each value is read.
    columns = ", ".join(f"bit_xor(hash({name}))" for name in request["columns"])
    answers: dict[str, object] = {}
    found: dict[str, list[list[float]]] = {name: [] for name in sources}
    for number in range(request["runs"] + 1):
        for name, source in sources.items():
            values = {"files": request["files"]} if name == "direct" else None
            began, worked = time.perf_counter(), time.process_time()
            answers[name] = opened.execute(query.format(columns=columns, source=source), values).fetchall()
            if number:
                found[name].append([time.perf_counter() - began, time.process_time() - worked])
    if answers["direct"] != answers["facade"]:
        raise SystemExit(f"the scans have other rows: {answers}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
