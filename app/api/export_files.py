"""The files of exports, streamed from storage, whole or in part."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any, Final, TypeAlias

import pyarrow as pa
from litestar import Response, get, head
from litestar.params import PathParameter
from litestar.response import Stream

from app.api.auth import SCOPE
from app.api.bodies import JSON
from app.api.byte_range import asked_range
from app.api.context import ApiRequest, Services, services_of, tenant_of
from app.api.documented import BINARY, TEXT, Answer, documented
from app.api.exports import TAGS, ExportId, RunNumber
from app.lake.export import ExportFormat
from app.lake.file_format import FileFormat
from app.services.export_model import MANIFEST_NAME, RunFile

_STEP_BYTES: Final = 1024 * 1024
_CONTENT: Final[Mapping[str, Any]] = {
    JSON: TEXT,
    **{each.file_format.media_type.partition(";")[0]: BINARY for each in ExportFormat},
}
_HEADERS: Final = {
    "ETag": "The file's checksum, quoted.",
    "Accept-Ranges": "`bytes`: a part of the file may be asked for.",
    "Content-Length": "How many bytes follow.",
    "Content-Disposition": "The name to save it by.",
}
_REQUEST_HEADERS: Final = {
    "Range": "`bytes=first-last`, `bytes=first-` or `bytes=-count`: a part of the file.",
    "If-Range": "The ETag of the file that the range is of; of another one comes the whole.",
}

FileName: TypeAlias = Annotated[str, PathParameter(description="The name of a file of a run.")]


@get(
    "/exports/{export:str}/runs/{number:int}/files/{name:str}",
    operation_id="download_export_file",
    summary="Download a file of an export",
    tags=TAGS,
    opt=documented(
        {
            200: Answer(description="The file.", content=_CONTENT, headers=_HEADERS),
            206: Answer(
                description="The part that was asked for.",
                content=_CONTENT,
                headers={**_HEADERS, "Content-Range": "Which part it is, and the size of the file."},
            ),
        },
        request_headers=_REQUEST_HEADERS,
        problems=[400, 404, 416],
    ),
)
async def download_export_file(
    request: ApiRequest, export: ExportId, number: RunNumber, name: FileName
) -> Stream:
    """A file that a run has written, or `manifest.json`, which lists the others. A download that broke off goes on
    with `Range` and `If-Range`.
    """
    services = services_of(request)
    file = await services.threads.run(services.exports.file, tenant_of(request), export, number, name)
    part = asked_range(request.headers, file.size_bytes, _entity_tag(file))
    sent = part or range(file.size_bytes)
    headers = _headers(file, len(sent))
    if part is not None:
        headers["Content-Range"] = f"bytes {part[0]}-{part[-1]}/{file.size_bytes}"
    opened = await services.threads.run(services.exports.open, file)
    return Stream(
        _chunks(services, opened, sent),
        status_code=200 if part is None else 206,
        media_type=_media_type(name),
        headers=headers,
    )


@head(
    "/exports/{export:str}/runs/{number:int}/files/{name:str}",
    operation_id="check_export_file",
    summary="Look at a file of an export",
    tags=TAGS,
    opt={
        SCOPE: "read",
        **documented({200: Answer(description="It is there.", headers=_HEADERS)}, problems=[400, 404]),
    },
)
async def check_export_file(
    request: ApiRequest, export: ExportId, number: RunNumber, name: FileName
) -> Response[None]:
    """What `GET` would answer, without the file: its size and its ETag."""
    services = services_of(request)
    file = await services.threads.run(services.exports.file, tenant_of(request), export, number, name)
    return Response(None, media_type=_media_type(name), headers=_headers(file, file.size_bytes))


async def _chunks(services: Services, opened: pa.NativeFile, part: range) -> AsyncIterator[bytes]:
    """The bytes of a part, which are read as fast as they are sent."""
    try:
        for start in range(part.start, part.stop, _STEP_BYTES):
            count = min(_STEP_BYTES, part.stop - start)
            yield await services.threads.run(opened.read_at, count, start)
    finally:
        # At once: a client that is gone has had the request cancelled, and nothing waits for it any more.
        opened.close()


def _headers(file: RunFile, size_bytes: int) -> dict[str, str]:
    return {
        "ETag": _entity_tag(file),
        "Accept-Ranges": "bytes",
        "Content-Length": str(size_bytes),
        "Content-Disposition": f'attachment; filename="{file.name}"',
        "Cache-Control": "private, no-transform",
    }


def _entity_tag(file: RunFile) -> str:
    return f'"{file.checksum}"'


def _media_type(name: str) -> str:
    return JSON if name == MANIFEST_NAME else FileFormat(name.rpartition(".")[2]).media_type
