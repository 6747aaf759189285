"""Daft."""

from __future__ import annotations

import daft
import pyarrow as pa
from daft.io import IOConfig, S3Config
from pyiceberg_tables import loaded
from reader_process import Request, serve


def read(request: Request) -> pa.Table:
    """The rows of a table."""
    table = loaded(request)
    names = table.io.properties
    objects = S3Config(
        endpoint_url=names["s3.endpoint"],
        region_name=names["s3.region"],
        key_id=names["s3.access-key-id"],
        access_key=names["s3.secret-access-key"],
        session_token=names["s3.session-token"],
        use_ssl=names["s3.endpoint"].startswith("https"),
        force_virtual_addressing=False,
    )
    frame = daft.read_iceberg(table, snapshot_id=request["version"], io_config=IOConfig(s3=objects))
    if request["where"]:
        frame = frame.where(daft.sql_expr(request["where"]))
    if request["columns"] is not None:
        frame = frame.select(*request["columns"])
    return frame.to_arrow()


if __name__ == "__main__":
    serve(read)
