"""PyIceberg. Option `files`: the paths of the planned files in place of the rows. `until`: a file to wait for.

`pause_seconds`: how long to wait between the loading of the table and the scan.
"""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
from pyiceberg_tables import loaded
from reader_process import Request, serve


def _wait(gate: Path) -> None:
    """Marks the table as loaded, and waits until the gate exists."""
    gate.with_suffix(".loaded").touch()
    while not gate.exists():
        time.sleep(0.01)


def read(request: Request) -> pa.Table:
    """The rows of a table."""
    table = loaded(request)
    if "until" in request["options"]:
        _wait(Path(request["options"]["until"]))
    time.sleep(request["options"].get("pause_seconds", 0))
    scan = table.scan(
        row_filter=request["where"] or "true",
        selected_fields=tuple(request["columns"] or ("*",)),
        snapshot_id=request["version"],
    )
    if "files" in request["options"]:
        return pa.table({"path": pa.array([task.file.file_path for task in scan.plan_files()], pa.string())})
    return scan.to_arrow()


if __name__ == "__main__":
    serve(read)
