"""One row by its key from a large table: `GET …/rows/{key}`, one request at a time, beside DuckLake in this process.

Half of the keys have no row. DuckLake is measured where its extension is installed; it has no index, and reads the
files whose bounds may contain the key.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from bench.options import parser
from bench.report import percentiles, publish
from bench.service import running_service
from bench.table import Table
from bench.trips import trips, write_parquet

_WARMING: Final = 50
_OK, _NONE = 200, 404


def keys_of(rows: int, count: int) -> list[tuple[str, bool]]:
    """Random keys, and whether each has a row."""
    random = np.random.default_rng(7)
    known = random.choice(rows, count // 2, replace=False)
    unknown = np.arange(rows, rows + count - count // 2)
    numbers = random.permutation(np.concatenate([known, unknown]))
    texts = trips(numbers, ts=0).column("uuid").to_pylist()
    return [(text, bool(number < rows)) for text, number in zip(texts, numbers, strict=True)]


def timed(find: Callable[[str], bool], keys: Sequence[tuple[str, bool]]) -> dict[str, Any]:
    """Milliseconds of a lookup, after some that are not counted."""
    seconds = []
    for key, known in keys:
        began = time.perf_counter()
        found = find(key)
        seconds.append(time.perf_counter() - began)
        assert found is known, key
    return percentiles(seconds[_WARMING:])


def ducklake(scratch: Path, rows: int, keys: Sequence[tuple[str, bool]]) -> dict[str, Any] | None:
    """DuckLake's own lookups; None if it is not installed."""
    try:
        from bench.peers.ducklake import DuckLake  # noqa: PLC0415

        with TemporaryDirectory(prefix="headwater-bench-", dir=scratch) as folder:
            lake = DuckLake(Path(folder))
            lake.create()
            file = Path(folder) / "client.parquet"
            write_parquet(file, np.arange(rows), ts=0)
            lake.bulk_insert(lake.stage(file))
            return timed(lambda key: lake.read(f"uuid = '{key}'") == 1, keys)
    except ModuleNotFoundError:
        return None


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=10_000_000, help="rows of the table")
    options.add_argument("--buckets", type=int, default=16, help="its buckets")
    options.add_argument("--lookups", type=int, default=2_050, help="lookups over HTTP")
    options.add_argument("--peer-lookups", type=int, default=250, help="lookups in DuckLake")
    chosen = options.parse_args()
    keys, figures = keys_of(chosen.rows, chosen.lookups), []
    with running_service(chosen.scratch) as service, service.client() as client:
        table = Table.create(service, client, "trips", buckets=chosen.buckets, table_type="merge_on_read")
        table.write("bulk_insert", np.arange(chosen.rows), ts=0)

        def find(key: str) -> bool:
            answer = client.get(f"/datasets/{table.id}/rows/{key}")
            assert answer.status_code in (_OK, _NONE), answer.text
            return answer.status_code == _OK

        figures.append({"system": "Headwater, over HTTP", **timed(find, keys)})
        print(figures[-1], flush=True)
    peer = ducklake(chosen.scratch, chosen.rows, keys[: chosen.peer_lookups])
    if peer is not None:
        figures.append({"system": "DuckLake, in process", **peer})
    publish("row-lookups", {"rows": chosen.rows, "buckets": chosen.buckets}, figures)


if __name__ == "__main__":
    main()
