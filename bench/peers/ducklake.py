"""DuckLake, the extension of DuckDB, with its catalogue in a DuckDB file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Final

import duckdb
import psutil
import pyarrow as pa

_BATCH_ROWS: Final = 122_880
_COLUMNS: Final = (
    "uuid VARCHAR NOT NULL, ts BIGINT NOT NULL, rider VARCHAR, driver VARCHAR, begin_lat DOUBLE, begin_lon DOUBLE, "
    "end_lat DOUBLE, end_lon DOUBLE, fare DOUBLE, city VARCHAR"
)
_MERGE: Final = (
    "MERGE INTO lake.trips t USING read_parquet($file) s ON t.uuid = s.uuid "
    "WHEN MATCHED AND s.ts >= t.ts THEN UPDATE WHEN NOT MATCHED THEN INSERT"
)


class DuckLake:
    """One connection, kept open, as a long-lived client has it."""

    name = "DuckLake"
    version = f"duckdb {duckdb.__version__}"

    def __init__(self, folder: Path) -> None:
        self.works = self.holds = psutil.Process()
        self._root = folder
        self._tables = 0
        # The extension comes with its package: nothing is to be fetched.
        self._connection = duckdb.connect(
            config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
        )
        self._connection.load_extension(str(_extension()))

    @property
    def readers(self) -> Sequence[psutil.Process]:
        """None: it is a library."""
        return ()

    def create(self) -> None:
        """A catalogue and a data folder of its own for every table."""
        if self._tables:
            self._connection.execute("DETACH lake")
        self._tables += 1
        (self._folder / "catalogue").mkdir(parents=True)
        catalogue, data = self._folder / "catalogue" / "lake.ducklake", self._folder / "data"
        self._connection.execute(f"ATTACH 'ducklake:{catalogue}' AS lake (DATA_PATH '{data}')")
        self._connection.execute(f"CREATE TABLE lake.trips ({_COLUMNS})")

    @property
    def _folder(self) -> Path:
        return self._root / f"table-{self._tables}"

    def stage(self, file: Path) -> str:
        """DuckDB reads the file where it is."""
        return str(file)

    def insert(self, source: str) -> Mapping[str, float]:
        """An insert: DuckLake has no keys, so none are looked up."""
        return self._run("INSERT INTO lake.trips FROM read_parquet($file)", source)

    bulk_insert = insert

    def upsert(self, source: str) -> Mapping[str, float]:
        """A merge by key."""
        return self._run(_MERGE, source)

    def _run(self, statement: str, source: str) -> Mapping[str, float]:
        self._connection.execute(statement, {"file": source}).fetchall()
        return {}

    def delete(self, where: str) -> Mapping[str, float]:
        """A delete by condition."""
        self._connection.execute(f"DELETE FROM lake.trips WHERE {where}").fetchall()
        return {}

    def changes(self) -> Mapping[str, Callable[[], int]]:
        """`table_changes` of the last snapshot, which derives them from files and deletes."""
        [found] = self._connection.execute("FROM lake.current_snapshot()").fetchall()
        return {"changes": partial(self._whole, f"FROM lake.table_changes('trips', {found[0]}, {found[0]})")}

    def read(self, where: str | None) -> int:
        """A query without or with a condition."""
        if where is not None:
            return self._whole(f"FROM lake.trips WHERE {where}")
        batches = self._connection.execute("FROM lake.trips").to_arrow_reader(_BATCH_ROWS)
        return sum(batch.num_rows for batch in batches)

    def rows(self) -> Iterator[pa.Table]:
        """A query of everything."""
        batches = self._connection.execute("FROM lake.trips").to_arrow_reader(_BATCH_ROWS)
        return (pa.table(batch) for batch in batches)

    def _whole(self, query: str) -> int:
        # As one table: that is faster here than a stream of batches, and a large union as a stream never ends.
        rows: pa.Table = self._connection.sql(query).to_arrow_table()
        return rows.num_rows

    def files(self) -> dict[Path, int]:
        """Data, delete files and the catalogue."""
        paths = self._folder.rglob("*")
        return {path.relative_to(self._folder): path.stat().st_size for path in paths if path.is_file()}


def _extension() -> Path:
    folder = Path(str(resources.files("duckdb_extension_ducklake"))) / "extensions" / f"v{duckdb.__version__}"
    return folder / "ducklake.duckdb_extension"
