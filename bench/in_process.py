"""Reading a running service's tables in this process, through the classes that the service itself reads with.

This is what a task of a Spark job does, without Spark: one thread, files as Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from app.access.tenants.repository.credentials import CredentialStore
from app.core.catalog.repository.catalog import CatalogStore
from app.core.catalog.values import Dataset
from app.core.changes.repository import ChangelogStore
from app.core.changes.service.read_changes import FeedQuery, ReadChanges
from app.core.timeline.repository.timeline import TimelineStore
from app.features.reads.tasks import ReadSource, ReadSpec, table_sources
from app.infra.db.session import Database
from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.parquet_file import ParquetReader
from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.row_scan import RowChoice, base_rows, merged_rows
from app.infra.files.slices.table_reader import TableReader
from app.infra.files.storage import open_storage
from app.infra.settings import Settings
from app.kernel.commit.read_plan import plan_read
from app.kernel.commit.table_rows import BaseRows, MergedRows
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_format import FileFormat
from app.kernel.format.file_group import DataFile
from app.kernel.format.paths import dataset_prefix
from app.kernel.sql.conditions.parse import parse_filter
from app.process.features import stores_on
from bench.service import Service
from workers.engine.read.export_handle import rows_schema

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
    slices: SliceReader
    memory: MemoryBudget

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
        memory = MemoryBudget(bytes_max=_MERGE_BYTES)
        return cls(
            tenant_id=principal.tenant_id,
            catalog=stores_on(database).catalog,
            timeline=stores_on(database).timeline,
            changelog=ChangelogStore(database),
            reader=reader,
            tables=TableReader(storage, reader, memory),
            slices=SliceReader(reader, VectorReader(storage)),
            memory=memory,
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
        return sum(rows.num_rows for rows in self.blocks(dataset_id, where))

    def blocks(self, dataset_id: str, where: str | None = None) -> Iterator[pa.Table]:
        """The rows of the table at its head, or those that a filter selects."""
        dataset = self._dataset(dataset_id)
        files = self.timeline.live_files(self.tenant_id, dataset.id, dataset.version, None)
        return rows_of(self.slices, self.memory, dataset.definition, files, where)

    def _dataset(self, dataset_id: str) -> Dataset:
        return self.catalog.get(self.tenant_id, dataset_id)


def rows_of(
    slices: SliceReader,
    memory: MemoryBudget,
    dataset: DatasetDefinition,
    files: Iterable[DataFile],
    where: str | None = None,
) -> Iterator[pa.Table]:
    """The rows of these files, or those that a filter selects, as the tasks of a read job read them."""
    selection = None if where is None else parse_filter(where, dataset.schema)
    spec = ReadSpec(
        dataset=dataset,
        columns=tuple(dataset.schema.names()),
        where=selection,
        partitions=None,
        order_by=(),
        format=FileFormat.ARROW,
        target_bytes=dataset.target_bytes,
    )
    sources = table_sources(spec, plan_read(dataset, list(files), where=selection), None)
    return (rows for source in sources for rows in _rows(slices, memory, spec, source))


def _rows(
    slices: SliceReader, memory: MemoryBudget, spec: ReadSpec, source: ReadSource
) -> Iterator[pa.Table]:
    """The rows of a source that match the filter."""
    schema, choice = rows_schema(spec.dataset.schema), RowChoice(where=spec.where)
    match source:
        case BaseRows(file=file, first=first, end=end):
            yield from base_rows(slices, spec.dataset, file, schema, choice, first, end)
        case MergedRows(files=files):
            yield from merged_rows(slices, spec.dataset, files, schema, choice, None, memory)
