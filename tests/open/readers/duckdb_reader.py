"""DuckDB with its extension for Iceberg, whose files come with packages: nothing is fetched."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

import duckdb
import pyarrow as pa
from reader_process import Request, condition, quoted, selection, serve

_OWN_FILES_ONLY = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """The one connection, with the extensions."""
    opened = duckdb.connect(config=_OWN_FILES_ONLY)
    for name in ("avro", "httpfs", "iceberg"):
        folder = (
            Path(str(resources.files(f"duckdb_extension_{name}"))) / "extensions" / f"v{duckdb.__version__}"
        )
        opened.load_extension(str(folder / f"{name}.duckdb_extension"))
    return opened


@cache
def _catalogue(uri: str, token: str, warehouse: str) -> str:
    """The name under which the catalogue is attached."""
    [(number,)] = connection().execute("SELECT count(*) FROM duckdb_databases()").fetchall()
    name = f"catalogue_{number}"
    connection().execute(f"CREATE SECRET {name} (TYPE iceberg, TOKEN '{token}')")
    connection().execute(f"ATTACH '{warehouse}' AS {name} (TYPE iceberg, ENDPOINT '{uri}', SECRET {name})")
    return name


def read(request: Request) -> pa.Table:
    """The rows of a table."""
    catalogue = _catalogue(request["uri"], request["token"], request["warehouse"])
    version = "" if request["version"] is None else f" AT (VERSION => {request['version']})"
    table = f"{catalogue}.headwater.{quoted(request['table'])}{version}"
    query = f"SELECT {selection(request)} FROM {table}{condition(request)}"
    return connection().execute(query).to_arrow_table()


if __name__ == "__main__":
    serve(read)
