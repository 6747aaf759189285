"""The files of exports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

from litestar import get, head
from litestar.params import PathParameter

from app.access.tenants.values import KeyScope, Principal
from app.features.exports.schemas import ExportId, RunNumber
from app.features.exports.service.exports import ManageExports
from app.features.exports.tasks import ExportFormat
from app.features.exports.values import MANIFEST_NAME
from app.http.auth import needs
from app.http.body_stream import JSON
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import BINARY, TEXT, documented
from app.http.response import ApiResponse
from app.http.stored_file import FILE_HEADERS, FILE_STATUSES, Download, FileStream, without_content
from app.kernel.format.file_format import FileFormat

_TAGS: Final = ["exports"]

_CONTENT: Final[Mapping[str, Any]] = {
    JSON: TEXT,
    **{each.file_format.media_type: BINARY for each in ExportFormat},
}

FileName: TypeAlias = Annotated[str, PathParameter(description="The name of a file of a run.")]


@get(
    "/exports/{export:str}/runs/{number:int}/files/{name:str}",
    operation_id="download_export_file",
    summary="Download a file of an export",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True)
    | documented(description="The file.", content=_CONTENT, statuses=FILE_STATUSES, problems=[416]),
)
async def download_export_file(
    export: ExportId,
    number: RunNumber,
    name: FileName,
    exports: Provided[ManageExports],
    principal: Provided[Principal],
    download: Provided[Download],
    threads: Provided[Threads],
) -> FileStream:
    """Returns a file that a run has written, or `manifest.json`, which lists the others.

    A download that was interrupted continues with `Range` and `If-Range`.
    """
    file = await threads.run(exports.file, principal.tenant_id, export, number, name)
    return await download.send(exports.open, file, _media_type(name))


@head(
    "/exports/{export:str}/runs/{number:int}/files/{name:str}",
    operation_id="check_export_file",
    summary="Check a file of an export",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True) | documented(description="The file exists.", headers=FILE_HEADERS),
)
async def check_export_file(
    export: ExportId,
    number: RunNumber,
    name: FileName,
    exports: Provided[ManageExports],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> ApiResponse[None]:
    """Returns the headers that `GET` would have, such as the size and the ETag, without the file."""
    file = await threads.run(exports.file, principal.tenant_id, export, number, name)
    return without_content(file, _media_type(name))


def _media_type(name: str) -> str:
    return JSON if name == MANIFEST_NAME else FileFormat(name.rpartition(".")[2]).media_type
