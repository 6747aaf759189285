"""PyIceberg. Option `files`: the paths of the planned files in place of the rows."""

from __future__ import annotations

import pyarrow as pa
from pyiceberg_tables import loaded
from reader_process import Request, serve


def read(request: Request) -> pa.Table:
    """The rows of a table."""
    table = loaded(request)
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
