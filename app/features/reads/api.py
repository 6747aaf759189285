"""What reads serve."""

from __future__ import annotations

from typing import Final

from app.core.compose import read_changes, read_corrections, read_memory, table_walk
from app.core.feature.api import ApiProcess, FeatureApi
from app.core.timeline.service.plan_files import FilePlanner
from app.features.exports.compose import destinations_on
from app.features.objects.compose import process_keys
from app.features.reads.content import JoinedContent
from app.features.reads.handlers.lookups import get_row, lookup_rows
from app.features.reads.handlers.reads import create_read
from app.features.reads.handlers.results import check_result_file, download_result_file, get_result
from app.features.reads.handlers.rows import read_rows
from app.features.reads.handlers.scans import check_scan_file, create_scan, download_scan_file, read_scan_rows
from app.features.reads.problems import PROBLEMS
from app.features.reads.repository import ReadResultStore
from app.features.reads.service.jobs import ReadJobs
from app.features.reads.service.later_corrections import LaterCorrections
from app.features.reads.service.lookup import RowLookup
from app.features.reads.service.rows import ReadTable
from app.features.reads.service.scans import ScanTables
from app.features.reads.service.sealed_places import SealedPlaces
from app.features.rendered_files.compose import rendered_files
from app.features.versions.compose import version_of
from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.slices.file_slice import SliceReader


def _dependencies(process: ApiProcess) -> dict[str, object]:
    platform, versions, memory = process.platform, version_of(process.platform), read_memory(process.platform)
    catalog, timeline = platform.stores.catalog, platform.stores.timeline
    later = LaterCorrections(timeline=timeline, corrections=read_corrections(platform))
    places = SealedPlaces(secrets=process.once(process_keys).secrets)
    return {
        "read_table": ReadTable(
            catalog=catalog,
            timeline=timeline,
            versions=versions,
            walk=table_walk(platform, memory),
            later=later,
            places=places,
        ),
        "row_lookup": RowLookup(
            catalog=catalog,
            timeline=timeline,
            versions=versions,
            search=process.key_search,
            changes=read_changes(platform),
            later=later,
        ),
        "read_jobs": ReadJobs(
            requests=platform.request_job,
            timeline=timeline,
            versions=versions,
            index=platform.changelog,
            results=ReadResultStore(platform.database),
            content=JoinedContent(platform.storage),
            storage=platform.storage,
            destinations=destinations_on(platform),
            keep_seconds=platform.settings.read_result_seconds,
        ),
        "scan_tables": ScanTables(
            catalog=catalog,
            timeline=timeline,
            planner=FilePlanner(timeline=timeline),
            versions=versions,
            storage=platform.storage,
            slices=SliceReader(platform.reader, VectorReader(platform.storage)),
            memory=memory,
            rendered=process.once(rendered_files),
            places=places,
        ),
    }


API: Final = FeatureApi(
    name="reads",
    routes=(
        read_rows,
        get_row,
        lookup_rows,
        create_read,
        get_result,
        download_result_file,
        check_result_file,
        create_scan,
        download_scan_file,
        check_scan_file,
        read_scan_rows,
    ),
    dependencies=_dependencies,
    problems=(PROBLEMS,),
)
