"""delta-rs with its change data feed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import deltalake
import psutil
import pyarrow as pa
import pyarrow.parquet as pq


class DeltaRs:
    """One table, kept open, as a long-lived client has it."""

    name = "delta-rs"
    version = f"deltalake {deltalake.__version__}"

    def __init__(self, folder: Path) -> None:
        self.works = self.holds = psutil.Process()
        self._root = folder
        self._tables = 0
        self._opened: deltalake.DeltaTable | None = None

    @property
    def readers(self) -> Sequence[psutil.Process]:
        """None: it is a library."""
        return ()

    def create(self) -> None:
        """A folder of its own for every table."""
        self._tables += 1
        self._opened = None

    @property
    def _folder(self) -> Path:
        return self._root / f"table-{self._tables}"

    @property
    def _table(self) -> deltalake.DeltaTable:
        if self._opened is None:
            self._opened = deltalake.DeltaTable(str(self._folder))
        return self._opened

    def stage(self, file: Path) -> str:
        """The file is read where it is."""
        return str(file)

    def insert(self, source: str) -> Mapping[str, float]:
        """An append: delta-rs has no keys, so none are looked up."""
        with pq.ParquetFile(source) as file:
            rows = pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches())
            with_feed = {"delta.enableChangeDataFeed": "true"}
            deltalake.write_deltalake(str(self._folder), rows, configuration=with_feed)
        return {}

    bulk_insert = insert

    def upsert(self, source: str) -> Mapping[str, float]:
        """A merge by key."""
        rows = pq.read_table(source)
        merge = self._table.merge(rows, predicate="t.uuid = s.uuid", source_alias="s", target_alias="t")
        merge.when_matched_update_all(predicate="s.ts >= t.ts").when_not_matched_insert_all().execute()
        return {}

    def delete(self, where: str) -> Mapping[str, float]:
        """A delete by condition."""
        self._table.delete(where)
        return {}

    def changes(self) -> Mapping[str, Callable[[], int]]:
        """The change data feed of the last version."""
        return {"changes": self._last_changes}

    def _last_changes(self) -> int:
        version = self._table.version()
        batches = self._table.load_cdf(starting_version=version, ending_version=version)
        return sum(batch.num_rows for batch in batches)

    def read(self, where: str | None) -> int:
        """A query without or with a condition."""
        query = "SELECT * FROM trips" + (f" WHERE {where}" if where else "")
        batches = deltalake.QueryBuilder().register("trips", self._table).execute(query)
        return sum(batch.num_rows for batch in batches)

    def rows(self) -> Iterator[pa.Table]:
        """A query of everything."""
        found = deltalake.QueryBuilder().register("trips", self._table).execute("SELECT * FROM trips")
        return (pa.table(batch) for batch in found)

    def files(self) -> dict[Path, int]:
        """Data, change data and the log."""
        paths = self._folder.rglob("*")
        return {path.relative_to(self._folder): path.stat().st_size for path in paths if path.is_file()}
