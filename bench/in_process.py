"""Reading a running service's tables in this process, through the classes that the service itself reads with.

This is what a task of a Spark job does, without Spark: one thread, files as Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from app.catalog.repository.catalog import CatalogStore
from app.catalog.values import Dataset
from app.changes.repository.changelog import ChangelogStore
from app.changes.service.read_changes import FeedQuery, ReadChanges
from app.composition import stores_on
from app.db.session import Database
from app.files.parquet_file import ParquetReader
from app.files.slices.memory_budget import MemoryBudget
from app.files.slices.table_reader import TableReader
from app.files.storage import open_storage
from app.format.file_group import DataFile
from app.format.paths import dataset_prefix
from app.settings import Settings
from app.sql.conditions.evaluate import matches
from app.sql.conditions.parse import parse_filter
from app.tenants.repository.credentials import CredentialStore
from app.timeline.repository.timeline import TimelineStore
from bench.service import Service

_PAGE_ROWS = 65_536
_MERGE_BYTES = 512 * 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class InProcess:
    """The stores of a running service, and a reader of its files."""

    tenant_id: str
    catalog: CatalogStore
    timeline: TimelineStore
    changelog: ChangelogStore
    reader: ParquetReader
    tables: TableReader

    @classmethod
    def of(cls, service: Service) -> InProcess:
        """Set up as the service's API is."""
        settings = Settings.from_environment(service.process("app.main").environ())
        database = Database(settings.database_url, application_name="headwater bench")
        principal = CredentialStore(database).authenticate(service.api_key)
        if principal is None:
            raise SystemExit("the key that the service announced is not known to its database")
        storage = open_storage(settings.storage_uri)
        reader = ParquetReader(storage)
        return cls(
            tenant_id=principal.tenant_id,
            catalog=stores_on(database).catalog,
            timeline=stores_on(database).timeline,
            changelog=ChangelogStore(database),
            reader=reader,
            tables=TableReader(storage, reader, MemoryBudget(bytes_max=_MERGE_BYTES)),
        )

    def folder(self, dataset_id: str) -> str:
        """Where a dataset's files are, below the storage root."""
        return dataset_prefix(self.tenant_id, dataset_id)

    def changes(self, dataset_id: str, since: int, until: int) -> int:
        """Reads the changes at positions [since, until); how many there were."""
        dataset = self._dataset(dataset_id)
        feed = ReadChanges(catalog=self.catalog, index=self.changelog, reader=self.reader)
        query = FeedQuery(limit=_PAGE_ROWS, until=until)
        at = since
        while at < until:
            at = feed.page(dataset, at, query).next_since
        return at - since

    def rows(self, dataset_id: str, where: str | None) -> int:
        """Reads the rows of the table at its head, or those that a filter selects; how many there were."""
        dataset = self._dataset(dataset_id)
        groups = self._groups(dataset)
        if where is None:
            return sum(rows.num_rows for rows in groups)
        selection = parse_filter(where, dataset.definition.schema)
        return sum(rows.filter(pa.array(matches(selection, rows))).num_rows for rows in groups)

    def _groups(self, dataset: Dataset) -> Iterator[pa.Table]:
        """Every file group's live rows; the one place that knows how a group is read."""
        files = self.timeline.live_files(self.tenant_id, dataset.id, dataset.version, None)
        groups: dict[str, list[DataFile]] = {}
        for file in sorted(files, key=lambda file: (file.added_version or 0, file.path)):
            groups.setdefault(file.file_group, []).append(file)
        schema = dataset.definition.schema.to_arrow()
        for group in groups.values():
            rows = sum(file.live_rows for file in group)
            yield self.tables.read_group(dataset.definition, group, schema, 0, rows)

    def _dataset(self, dataset_id: str) -> Dataset:
        return self.catalog.get(self.tenant_id, dataset_id)
