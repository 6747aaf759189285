"""Files that the service has written, streamed from storage, whole or in part."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final

import pyarrow as pa
from litestar import Response
from litestar.response import Stream

from app.format.result_file import RunFile
from app.http.byte_range import requested_range
from app.http.context import ApiRequest, Services, services_of

_STEP_BYTES: Final = 1024 * 1024
FILE_HEADERS: Final = {
    "ETag": "The file's checksum, quoted.",
    "Accept-Ranges": "`bytes`: a part of the file may be asked for.",
    "Content-Length": "How many bytes follow.",
    "Content-Disposition": "The name to save it by.",
}
PART_HEADERS: Final = {**FILE_HEADERS, "Content-Range": "Which part it is, and the size of the file."}
RANGE_HEADERS: Final = {
    "Range": "`bytes=first-last`, `bytes=first-` or `bytes=-count`: a part of the file.",
    "If-Range": "The ETag of the file that the range is of; of another one comes the whole.",
}


async def download(
    request: ApiRequest, open_: Callable[[RunFile], pa.NativeFile], file: RunFile, media_type: str
) -> Stream:
    """The file, or the part that is asked for. Raises RangeNotSatisfiable, CorruptFile."""
    services = services_of(request)
    part = requested_range(request.headers, file.size_bytes, _entity_tag(file))
    sent = part or range(file.size_bytes)
    headers = _headers(file, len(sent))
    if part is not None:
        headers["Content-Range"] = f"bytes {part[0]}-{part[-1]}/{file.size_bytes}"
    opened = await services.threads.run(open_, file)
    return Stream(
        _chunks(services, opened, sent),
        status_code=200 if part is None else 206,
        media_type=media_type,
        headers=headers,
    )


def without_content(file: RunFile, media_type: str) -> Response[None]:
    """What `download` would answer, without the file."""
    return Response(None, media_type=media_type, headers=_headers(file, file.size_bytes))


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
