"""All ways to write, by Headwater and by its peers: one run, the same rows, the same files to read them from.

Headwater is written to over HTTP, and all of it runs as real processes. Its peers are libraries, each in a process of
its own, one after another. What a write changed, and the table, are read in-process everywhere, the table on one core.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from bench.comparison import LEGEND, compare, disagreements
from bench.headwater import Headwater
from bench.lake import Measured, measure
from bench.options import parser
from bench.peers import PEERS
from bench.report import ROOT, publish
from bench.service import running_service
from bench.workload import FILTER, Workload, row_bytes

# Tables of the service, and their settings.
_TABLES: Final = {
    "copy_on_write": {"table_type": "copy_on_write"},
    "merge_on_read": {"table_type": "merge_on_read"},
    "merge_on_read_lz4": {"table_type": "merge_on_read", "compression": "lz4"},
}


def by_headwater(
    tables: Sequence[str], workload: Workload, inputs: Path, scratch: Path
) -> Iterator[Measured]:
    """The tables in one service, one after the other."""
    with running_service(scratch) as service, service.client() as client:
        for name in tables:
            lake = Headwater(service, client, name, _TABLES[name], buckets=workload.buckets)
            yield measure(lake, workload, inputs)


def by_peer(name: str, workload: Workload, inputs: Path, scratch: Path) -> Measured:
    """A peer in a process of its own."""
    result = inputs / f"{name}.json"
    places = ["--inputs", str(inputs), "--result", str(result), "--scratch", str(scratch)]
    command = [_python(name), "-m", "bench.peers", name, msgspec.json.encode(workload).decode(), *places]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    if code:
        return Measured(system=name, notes=[f"{name}: its process ended with exit code {code}"])
    return msgspec.json.decode(result.read_bytes(), type=Measured)


def _python(name: str) -> str:
    release = PEERS[name].spark
    return (
        sys.executable if release is None else str(ROOT / f".venv-bench-spark-{release}" / "bin" / "python")
    )


def main() -> None:
    """Runs the measurement."""
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=10_000_000, help="rows of the table")
    options.add_argument("--buckets", type=int, default=16, help="its buckets in Headwater")
    options.add_argument("--small-upsert", type=int, default=10_000, help="rows of the smallest upserts")
    options.add_argument(
        "--half-new", action="store_true", help="half of the upserted rows are new, not none"
    )
    options.add_argument("--repeat", type=int, default=3, help="runs of a case, of which the median is shown")
    options.add_argument("--loads", type=int, default=1, help="the same for loading the whole table")
    options.add_argument(
        "--systems",
        nargs="+",
        choices=(*_TABLES, *PEERS),
        default=(
            "copy_on_write",
            "merge_on_read",
            *(name for name, peer in PEERS.items() if peer.spark is None),
        ),
        help="whom to measure",
    )
    chosen = options.parse_args()
    workload = Workload(
        rows=chosen.rows,
        buckets=chosen.buckets,
        small_upsert=min(chosen.small_upsert, chosen.rows),
        repeat=chosen.repeat,
        loads=chosen.loads,
        half_new=chosen.half_new,
    )
    tables = [name for name in _TABLES if name in chosen.systems]
    chosen.scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="headwater-bench-inputs-", dir=chosen.scratch) as folder:
        inputs = Path(folder)
        measured: list[Measured] = []
        if tables:
            measured += by_headwater(tables, workload, inputs, chosen.scratch)
        measured += [
            by_peer(name, workload, inputs, chosen.scratch) for name in PEERS if name in chosen.systems
        ]
    publish(
        "write",
        {
            **msgspec.structs.asdict(workload),
            "filter": FILTER,
            **{each.system: each.version for each in measured if each.version},
        },
        compare(measured, peers=PEERS, row_bytes=row_bytes()),
        notes=[*LEGEND, *(note for each in measured for note in each.notes), *disagreements(measured)],
        samples={each.system: msgspec.to_builtins(each.samples) for each in measured},
    )


if __name__ == "__main__":
    main()
