"""Scans: a table in parts that its reader fetches itself, many at a time."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from litestar import get, head, post
from litestar.params import JSONBody, PathParameter
from litestar.response import Stream

from app.access.tenants.values import KeyScope
from app.core.catalog.values import Dataset
from app.features.reads.scans import CreateScan, FileOptions, PartOptions
from app.features.reads.schemas import Scan, scan_of
from app.features.reads.service.scans import ScanTables
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.limits.threads import PARTY, PageThreads, Threads
from app.http.openapi.openapi_components import INT64_MAX
from app.http.openapi.operation_docs import BINARY, documented
from app.http.response import ApiResponse
from app.http.stored_file import FILE_HEADERS, FILE_STATUSES, Download, FileStream, without_content
from app.http.table_response import ARROW_STREAM, streamed
from app.infra.errors import Unavailable
from app.infra.sharing.fair_slots import FairSlots, HeldSlot
from app.kernel.format.file_format import FileFormat
from app.kernel.sql.conditions.row_access import RowAccess

_TAGS: Final = ["reads"]
_BODY_BYTES_MAX: Final = 256 * 1024
_STREAM_SECONDS_MAX: Final = 60.0
_DEFAULTS: Final = CreateScan()
_PARQUET: Final = FileFormat.PARQUET.media_type

ScanVersion: TypeAlias = Annotated[
    int, PathParameter(description="The version of the scan.", ge=0, le=INT64_MAX)
]
PartName: TypeAlias = Annotated[str, PathParameter(description="The name of a part of the scan.")]


@post(
    "/datasets/{dataset:str}/scans",
    operation_id="create_scan",
    summary="Plan a read of a table in parts",
    tags=_TAGS,
    status_code=200,
    request_max_body_size=_BODY_BYTES_MAX,
    opt=needs(KeyScope.READ, in_part=True) | documented(problems=[409, 410, 503]),
)
async def create_scan(
    path_dataset: Provided[Dataset],
    access: Provided[RowAccess],
    scan_tables: Provided[ScanTables],
    threads: Provided[Threads],
    data: JSONBody[CreateScan] = _DEFAULTS,
) -> Scan:
    """Lists the parts of the table at a version: files of the table, and rows that the service merges.

    Nothing is written, and no job runs. The version is kept for `keep_seconds`; to keep it longer, repeat the request
    with this version. A key that sees a part of the dataset gets files with what it sees, which are made for it (503
    until they are), and rows.
    """
    return scan_of(path_dataset.id, await threads.run(scan_tables.plan, path_dataset, data, access))


@get(
    "/datasets/{dataset:str}/scans/{version:int}/files/{part:str}",
    operation_id="download_scan_file",
    summary="Download a file of a scan",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True)
    | documented(
        description="The file.", content={_PARQUET: BINARY}, statuses=FILE_STATUSES, problems=[410, 416, 503]
    ),
)
async def download_scan_file(
    version: ScanVersion,
    part: PartName,
    options: Provided[FileOptions],
    path_dataset: Provided[Dataset],
    access: Provided[RowAccess],
    scan_tables: Provided[ScanTables],
    download: Provided[Download],
    threads: Provided[Threads],
) -> FileStream:
    """Sends a Parquet file of the table, whole or in part. Use the link that the scan has for the part.

    The request keeps the version for ten more minutes. If the file has deleted rows, or not the columns as the schema
    of the version has them, it is not sent (404): the rows of the part are.
    """
    file = await threads.run(scan_tables.file, path_dataset, version, part, options.columns, access)
    return await download.send(scan_tables.open, file, _PARQUET)


@head(
    "/datasets/{dataset:str}/scans/{version:int}/files/{part:str}",
    operation_id="check_scan_file",
    summary="Get the headers of a file of a scan",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True)
    | documented(description="The file exists.", headers=FILE_HEADERS, problems=[410, 503]),
)
async def check_scan_file(
    version: ScanVersion,
    part: PartName,
    options: Provided[FileOptions],
    path_dataset: Provided[Dataset],
    access: Provided[RowAccess],
    scan_tables: Provided[ScanTables],
    threads: Provided[Threads],
) -> ApiResponse[None]:
    """Returns the headers of `GET`, without the file: among them its size and its ETag."""
    file = await threads.run(scan_tables.file, path_dataset, version, part, options.columns, access)
    return without_content(file, _PARQUET)


@get(
    "/datasets/{dataset:str}/scans/{version:int}/rows/{part:str}",
    operation_id="read_scan_rows",
    summary="Read the rows of a part of a scan",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True)
    | documented(description="The rows.", content={ARROW_STREAM: BINARY}, problems=[410, 503]),
)
async def read_scan_rows(
    version: ScanVersion,
    part: PartName,
    options: Provided[PartOptions],
    path_dataset: Provided[Dataset],
    access: Provided[RowAccess],
    scan_tables: Provided[ScanTables],
    page_threads: Provided[PageThreads],
    row_streams: Provided[FairSlots],
) -> Stream:
    """Sends the rows of a part as an Arrow IPC stream: logs merged, deleted rows left out, under the version's schema.

    Use the link that the scan has for the part. The request keeps the version for ten more minutes.
    """
    party = PARTY.get()
    # What a reader has not fetched yet is in memory, so few streams are open at a time, whatever their readers do.
    if not await row_streams.acquire(party, _STREAM_SECONDS_MAX):
        raise Unavailable("other parts of scans are being read by this tenant or by others; try again")
    slot = HeldSlot(row_streams, party)
    try:
        rows = await page_threads.run(scan_tables.rows, path_dataset, version, part, options, access)
    except BaseException:
        slot.release()
        raise
    return Stream(
        slot.during(streamed(page_threads.run_part, rows)),
        media_type=ARROW_STREAM,
        headers={"Cache-Control": "private, no-transform"},
    )
