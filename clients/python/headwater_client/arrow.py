"""Rows as Arrow data for pyarrow, pandas, polars or DuckDB. None of these libraries is required."""

from __future__ import annotations

import importlib
import io
import re
import sys
from collections.abc import Iterable
from html import escape
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec

from headwater_client.html import ROWS_MAX, html_table

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_FILE_MAGIC = b"ARROW1"
_INDEX_LEVEL = re.compile(r"__index_level_\d+__")
_PARQUET_MAGIC = b"PAR1"


class MissingPackage(ImportError):
    """A library that the called method needs is not installed. The message says how to install it."""


class ArrowData(msgspec.Struct, frozen=True, kw_only=True):
    """Rows as the service sent them: Arrow IPC streams or files, or Parquet files, with the same columns, in order.

    `columns`: of the rows, where the parts may have more; None for all.
    """

    parts: tuple[bytes, ...]
    columns: tuple[str, ...] | None = None

    def to_arrow(self) -> pa.Table:
        """A pyarrow table. Raises MissingPackage."""
        pyarrow = required("pyarrow", extra="arrow")
        tables = [self._table(part) for part in self.parts]
        return tables[0] if len(tables) == 1 else pyarrow.concat_tables(tables)

    def _table(self, part: bytes) -> pa.Table:
        if not part.startswith(_PARQUET_MAGIC):
            ipc = required("pyarrow.ipc", extra="arrow")
            found = (ipc.open_file if part.startswith(_FILE_MAGIC) else ipc.open_stream)(part).read_all()
            return found if self.columns is None else found.select(self.columns)
        pyarrow, parquet = required("pyarrow", extra="arrow"), required("pyarrow.parquet", extra="arrow")
        with parquet.ParquetFile(pyarrow.BufferReader(part)) as file:
            columns = self.columns if self.columns is not None else file.schema_arrow.names
            rows = file.read(columns=list(columns)).select(columns)
        # As in the other forms: no column is required, and only columns have metadata.
        return rows.cast(pyarrow.schema([field.with_nullable(True) for field in rows.schema]))

    def to_pandas(self) -> pd.DataFrame:
        """A pandas data frame. Raises MissingPackage."""
        required("pandas", extra="pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """A polars data frame, without pyarrow. Raises MissingPackage."""
        polars = required("polars", extra="polars")
        frames = [_frame(polars, part) for part in self.parts]
        if self.columns is not None:
            frames = [frame.select(self.columns) for frame in frames]
        return frames[0] if len(frames) == 1 else polars.concat(frames)

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """A DuckDB relation, by default of the default connection. Raises MissingPackage."""
        source = required("duckdb", extra="duckdb") if connection is None else connection
        return source.from_arrow(self.to_arrow())

    def _repr_html_(self) -> str:
        """How notebooks show the data: the first rows."""
        rows: list[dict[str, Any]] = []
        try:
            for part in self.parts:
                rows += self._table(part).slice(0, ROWS_MAX - len(rows)).to_pylist()
                if len(rows) == ROWS_MAX:
                    break
        except MissingPackage as missing:
            return f"<p>{escape(str(missing))}</p>"
        return html_table(
            f"the first {len(rows)} rows" if len(rows) == ROWS_MAX else f"{len(rows)} rows", rows
        )


def _frame(polars: Any, part: bytes) -> Any:
    if part.startswith(_PARQUET_MAGIC):
        return polars.read_parquet(io.BytesIO(part))
    return (polars.read_ipc if part.startswith(_FILE_MAGIC) else polars.read_ipc_stream)(io.BytesIO(part))


def encoded_stream(table: Any) -> bytes:
    """The Arrow IPC stream of a pyarrow table, batch or reader, or of any value that exports Arrow data.

    The latter include polars and pandas data frames. The index of a pandas data frame is sent if it has a name. An
    index without one, such as that of a filtered, sorted or joined frame, is left out. Raises MissingPackage, and
    ValueError for a data frame with a column of several types.
    """
    pyarrow, ipc = required("pyarrow", extra="arrow"), required("pyarrow.ipc", extra="arrow")
    if isinstance(table, pyarrow.RecordBatch):
        batches: Iterable[Any] = [table]
    elif isinstance(table, pyarrow.RecordBatchReader):
        batches = table
    else:
        table = table if isinstance(table, pyarrow.Table) else _converted(pyarrow, table)
        batches = table.to_batches()
    places = _places(table.schema)
    sink = pyarrow.BufferOutputStream()
    with ipc.new_stream(sink, pyarrow.schema([table.schema.field(place) for place in places])) as writer:
        for batch in batches:
            writer.write(batch.select(places))
    return bytes(sink.getvalue().to_pybytes())


def _converted(pyarrow: Any, frame: Any) -> pa.Table:
    pandas = sys.modules.get("pandas")
    try:
        if pandas is not None and isinstance(frame, pandas.DataFrame) and frame.index.name is not None:
            # By default an index that is a range becomes metadata. In pandas 3, `set_index` makes ranges of integers.
            return pyarrow.Table.from_pandas(frame, preserve_index=True)
        return pyarrow.table(frame)
    except pyarrow.ArrowException as error:
        # What pandas holds as Python objects may be of several types.
        reason = "; ".join(map(str, error.args))
        raise ValueError(
            f"the data frame cannot be sent: {reason}; give each column one type, for example with astype"
        ) from error


def _places(schema: pa.Schema) -> list[int]:
    """The numbers of the columns, without those that pyarrow makes of an index of pandas that has no name."""
    facts = (schema.metadata or {}).get(b"pandas")
    index = [] if facts is None else msgspec.json.decode(facts).get("index_columns", [])
    return [
        place
        for place, name in enumerate(schema.names)
        if name not in index or _INDEX_LEVEL.fullmatch(name) is None
    ]


def required(name: str, *, extra: str) -> ModuleType:
    """An optional library's module. Raises MissingPackage."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise MissingPackage(
            f"this needs the package {package}, which is not installed: `pip install {package}`; the extra {extra} of "
            "headwater-client has all packages that are needed",
            name=package,
        ) from error
