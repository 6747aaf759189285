"""Composes the use cases of reads."""

from __future__ import annotations

from app.core import read_changes, read_corrections
from app.files.deletion_vector_file import VectorReader
from app.files.lookups.key_search import KeySearch
from app.files.slices.file_slice import SliceReader
from app.files.slices.memory_budget import MemoryBudget
from app.files.slices.table_walk import TableWalk
from app.jobs.service.run_tasks import TaskHandler
from app.jobs.values import JobKind
from app.platform import Platform
from app.reads.content import JoinedContent
from app.reads.jobs import ReadEngine
from app.reads.repository import ReadResultStore
from app.reads.service.jobs import ReadJobs
from app.reads.service.lookup import RowLookup
from app.reads.service.rows import ReadTable
from app.reads.service.run import RunReads
from app.reads.service.scans import ScanTables
from app.versions.service.versions import VersionOf


def read_table(platform: Platform, versions: VersionOf, walk: TableWalk) -> ReadTable:
    """Pages of rows in the API."""
    return ReadTable(
        catalog=platform.stores.catalog,
        timeline=platform.stores.timeline,
        versions=versions,
        walk=walk,
        corrections=read_corrections(platform),
    )


def row_lookup(platform: Platform, versions: VersionOf, search: KeySearch) -> RowLookup:
    """Rows by key in the API."""
    return RowLookup(
        catalog=platform.stores.catalog,
        timeline=platform.stores.timeline,
        versions=versions,
        search=search,
        changes=read_changes(platform),
    )


def read_jobs(platform: Platform, versions: VersionOf) -> ReadJobs:
    """Read jobs in the API."""
    return ReadJobs(
        requests=platform.request_job,
        timeline=platform.stores.timeline,
        versions=versions,
        index=platform.changelog,
        results=ReadResultStore(platform.database),
        content=JoinedContent(platform.storage),
        storage=platform.storage,
        keep_seconds=platform.settings.read_result_seconds,
    )


def scan_tables(platform: Platform, versions: VersionOf, memory: MemoryBudget) -> ScanTables:
    """Scans in the API. `memory`: of one read."""
    return ScanTables(
        catalog=platform.stores.catalog,
        timeline=platform.stores.timeline,
        versions=versions,
        storage=platform.storage,
        slices=SliceReader(platform.reader, VectorReader(platform.storage)),
        memory=memory,
    )


def dependencies(
    platform: Platform, versions: VersionOf, walk: TableWalk, search: KeySearch, memory: MemoryBudget
) -> dict[str, object]:
    """The use cases of the feature, by the names that handlers use."""
    return {
        "read_table": read_table(platform, versions, walk),
        "row_lookup": row_lookup(platform, versions, search),
        "read_jobs": read_jobs(platform, versions),
        "scan_tables": scan_tables(platform, versions, memory),
    }


def tasks(platform: Platform, engine: ReadEngine) -> dict[JobKind, TaskHandler]:
    """The kind of task that reads rows to files."""
    read = RunReads(
        catalog=platform.stores.catalog,
        timeline=platform.stores.timeline,
        index=platform.changelog,
        pins=platform.pins,
        results=ReadResultStore(platform.database),
        storage=platform.storage,
        engine=engine,
        inline_bytes_max=platform.settings.read_inline_bytes_max,
    )
    return {JobKind.READ: read}
