"""One peer in this process: `python -m bench.peers NAME WORKLOAD --inputs … --result … --scratch …`."""

from __future__ import annotations

import tempfile
from importlib import import_module
from pathlib import Path

import msgspec

from bench.lake import measure
from bench.options import parser
from bench.peers import PEERS
from bench.workload import Workload


def main() -> None:
    """Runs the measurement, and leaves what it found as JSON."""
    options = parser(__doc__)
    options.add_argument("peer", choices=PEERS)
    options.add_argument("workload", help="as JSON")
    options.add_argument("--inputs", type=Path, required=True, help="folder of the rows that writes take")
    options.add_argument("--result", type=Path, required=True, help="file to leave the result in")
    chosen = options.parse_args()
    workload = msgspec.json.decode(chosen.workload, type=Workload)
    with tempfile.TemporaryDirectory(prefix="headwater-bench-peer-", dir=chosen.scratch) as folder:
        module, _, name = PEERS[chosen.peer].system.partition(":")
        lake = getattr(import_module(module), name)(Path(folder))
        measured = measure(lake, workload, chosen.inputs)
    chosen.result.write_bytes(msgspec.json.encode(measured))


if __name__ == "__main__":
    main()
