"""Scans: a table in parts that its reader fetches itself, many at a time."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from litestar import get, head, post
from litestar.params import JSONBody, PathParameter
from litestar.response import Stream

from app.catalog.values import Dataset
from app.format.file_format import FileFormat
from app.format.result_file import RunFile
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.openapi_components import INT64_MAX
from app.http.openapi.operation_docs import BINARY, documented
from app.http.response import ApiResponse
from app.http.stored_file import FILE_HEADERS, FILE_STATUSES, Download, FileStream, without_content
from app.http.table_response import ARROW_STREAM, streamed
from app.reads.scans import CreateScan, PartOptions
from app.reads.schemas import Scan, scan_of
from app.reads.service.scans import ScanTables
from app.tenants.values import KeyScope

_TAGS: Final = ["reads"]
_BODY_BYTES_MAX: Final = 256 * 1024
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
    # Only for keys that see the whole dataset: files of the table have all of its columns, and rows of all kinds.
    opt=needs(KeyScope.READ) | documented(problems=[409, 410]),
)
async def create_scan(
    found: Provided[Dataset],
    scan_tables: Provided[ScanTables],
    threads: Provided[Threads],
    data: JSONBody[CreateScan] = _DEFAULTS,
) -> Scan:
    """Lists the parts of the table at a version: files of the table, and rows that the service merges.

    Nothing is written, and no job runs. The version is kept for `keep_seconds`; to keep it longer, repeat the request
    with this version. A key that sees only a part of the dataset uses a read job.
    """
    return scan_of(found.id, await threads.run(scan_tables.plan, found, data))


@get(
    "/datasets/{dataset:str}/scans/{version:int}/parts/{part:str}",
    operation_id="download_scan_part",
    summary="Download a part of a scan",
    tags=_TAGS,
    opt=needs(KeyScope.READ)
    | documented(
        description="The file, or the rows.",
        content={_PARQUET: BINARY, ARROW_STREAM: BINARY},
        statuses=FILE_STATUSES,
        problems=[410, 416],
    ),
)
async def download_scan_part(
    version: ScanVersion,
    part: PartName,
    options: Provided[PartOptions],
    found: Provided[Dataset],
    scan_tables: Provided[ScanTables],
    download: Provided[Download],
    page_threads: Provided[Threads],
) -> FileStream | Stream:
    """Sends a Parquet file of the table, whole or in part, or merged rows as an Arrow IPC stream.

    Use the link that the scan has for the part. The request keeps the version for ten more minutes.
    """
    content = await page_threads.run(scan_tables.part, found, version, part, options)
    if isinstance(content, RunFile):
        return await download.send(scan_tables.open, content, _PARQUET)
    return Stream(
        streamed(page_threads, content),
        media_type=ARROW_STREAM,
        headers={"Cache-Control": "private, no-transform"},
    )


@head(
    "/datasets/{dataset:str}/scans/{version:int}/parts/{part:str}",
    operation_id="check_scan_part",
    summary="Get the headers of a part of a scan",
    tags=_TAGS,
    opt=needs(KeyScope.READ)
    | documented(description="The part exists.", headers=FILE_HEADERS, problems=[410]),
)
async def check_scan_part(
    version: ScanVersion,
    part: PartName,
    options: Provided[PartOptions],
    found: Provided[Dataset],
    scan_tables: Provided[ScanTables],
    page_threads: Provided[Threads],
) -> ApiResponse[None]:
    """Returns the headers of `GET`, without the content: of a Parquet file among them its size and its ETag."""
    content = await page_threads.run(scan_tables.part, found, version, part, options)
    if isinstance(content, RunFile):
        return without_content(content, _PARQUET)
    return ApiResponse(None, media_type=ARROW_STREAM, headers={"Cache-Control": "private, no-transform"})
