"""Polars. Option `reader`: `native` or `pyiceberg`."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
from pyiceberg_tables import loaded
from reader_process import Request, s3_properties, serve


def read(request: Request) -> pa.Table:
    """The rows of a table."""
    table = loaded(request)
    frame = pl.scan_iceberg(
        table,
        snapshot_id=request["version"],
        storage_options=s3_properties(table.io.properties),
        reader_override=request["options"].get("reader"),
    )
    if request["where"]:
        frame = frame.filter(pl.sql_expr(request["where"]))
    if request["columns"] is not None:
        frame = frame.select(request["columns"])
    return frame.collect().to_arrow()


if __name__ == "__main__":
    serve(read)
