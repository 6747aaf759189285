"""ClickHouse as a library, chDB."""

from __future__ import annotations

from functools import cache

import pyarrow as pa
from chdb.session import Session
from reader_process import Request, condition, quoted, selection, serve

_SETTINGS = {
    "allow_experimental_database_iceberg": "1",
    "allow_database_iceberg": "1",
    # Bytes that are no UTF-8 would be strings otherwise: ClickHouse has one type for both.
    "output_format_arrow_string_as_string": "0",
    "output_format_arrow_fixed_string_as_fixed_byte_array": "1",
    "session_timezone": "'UTC'",
}


@cache
def session() -> Session:
    """The one session."""
    opened = Session()
    for name, value in _SETTINGS.items():
        opened.query(f"SET {name} = {value}")
    return opened


def arrow(query: str) -> pa.Table:
    """The rows of a query."""
    # The bytes may be those of the answer itself, which ends with it.
    answer = session().query(query, "Arrow")
    return pa.ipc.open_file(pa.py_buffer(bytes(bytearray(answer.bytes())))).read_all()


@cache
def _database(uri: str, token: str, warehouse: str) -> str:
    name = f"catalogue_{abs(hash((uri, token, warehouse)))}"
    session().query(
        f"CREATE DATABASE {name} ENGINE = DataLakeCatalog('{uri}/v1') SETTINGS catalog_type = 'rest', "
        f"warehouse = '{warehouse}', vended_credentials = true, auth_header = 'Authorization: Bearer {token}'"
    )
    return name


def read(request: Request) -> pa.Table:
    """The rows of a table."""
    database = _database(request["uri"], request["token"], request["warehouse"])
    table = quoted("headwater." + request["table"], "`")
    at = "" if request["version"] is None else f" SETTINGS iceberg_snapshot_id = {request['version']}"
    return arrow(f"SELECT {selection(request, '`')} FROM {database}.{table}{condition(request)}{at}")


if __name__ == "__main__":
    serve(read)
