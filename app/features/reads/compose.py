"""Composes the use cases of reads."""

from __future__ import annotations

from app.core.compose import read_changes, read_corrections
from app.core.jobs.engine import Engine
from app.core.jobs.service.run_tasks import TaskHandler
from app.core.jobs.values import JobKind
from app.core.platform import Platform
from app.features.reads.content import JoinedContent
from app.features.reads.repository import ReadResultStore
from app.features.reads.service.jobs import ReadJobs
from app.features.reads.service.lookup import RowLookup
from app.features.reads.service.rows import ReadTable
from app.features.reads.service.run import RunReads
from app.features.reads.service.scans import ScanTables
from app.features.versions.service.versions import VersionOf
from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.lookups.key_search import KeySearch
from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.table_walk import TableWalk


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


def tasks(platform: Platform, engine: Engine) -> dict[JobKind, TaskHandler]:
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
