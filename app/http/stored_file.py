"""Files that the service has written, streamed from storage, whole or in part."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import pyarrow as pa
from litestar.response import Stream

from app.http.limits.threads import Threads
from app.http.parameters.byte_range import requested_range
from app.http.response import ApiResponse
from app.infra.files.s3.links import StorageLinks
from app.kernel.format.result_file import RunFile

_STEP_BYTES: Final = 1024 * 1024
FILE_HEADERS: Final = {
    "ETag": "The file's checksum, quoted.",
    "Accept-Ranges": "`bytes`: a part of the file can be requested.",
    "Content-Length": "The number of bytes in the body.",
    "Content-Disposition": "The name to save the file by.",
}
RANGE_HEADERS: Final = {
    "Range": "`bytes=first-last`, `bytes=first-` or `bytes=-count`: the part of the file to send.",
    "If-Range": "The ETag of the file that `Range` is of. If the file has another one, all of it is sent.",
}
FILE_STATUSES: Final = {
    206: "The part that `Range` requested.",
    307: "`Location` is a link to the file in the storage, which is valid for a short time.",
}


class FileStream(Stream):
    """A file, or the part of it that was requested."""

    header_descriptions: ClassVar[Mapping[str, str]] = {
        **FILE_HEADERS,
        "Content-Range": "Of a part: which bytes of the file it has, and the size of the file.",
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class Download:
    """Sends files. `range_` and `if_range`: the headers of the request.

    `links`: of the storage, if the client prefers them; None if it does not, or the storage has none.
    """

    range_: str | None
    if_range: str | None
    threads: Threads
    links: StorageLinks | None

    async def send(
        self, open_: Callable[[RunFile], pa.NativeFile], file: RunFile, media_type: str
    ) -> FileStream:
        """The file, the part that was requested, or a link. Raises RangeNotSatisfiable, CorruptFile."""
        if self.links is not None:
            return await self._link(self.links, file, media_type)
        part = requested_range(self.range_, self.if_range, file.size_bytes, _entity_tag(file))
        span = part or range(file.size_bytes)
        headers = _headers(file, len(span))
        if part is not None:
            headers["Content-Range"] = f"bytes {part[0]}-{part[-1]}/{file.size_bytes}"
        stream = await self.threads.run(open_, file)
        return FileStream(
            _chunks(self.threads, stream, span),
            status_code=200 if part is None else 206,
            media_type=media_type,
            headers=headers,
        )

    async def _link(self, links: StorageLinks, file: RunFile, media_type: str) -> FileStream:
        """Ranges are for the storage: the client sends the same headers there."""
        url = await self.threads.run(links.download, file.path, name=file.name, media_type=media_type)
        headers = {"Location": url, "Cache-Control": "no-store", "Preference-Applied": "redirect"}
        return FileStream(iter(()), status_code=307, headers={**headers, "Content-Length": "0"})


def without_content(file: RunFile, media_type: str) -> ApiResponse[None]:
    """The response of `Download.send` without the file."""
    return ApiResponse(None, media_type=media_type, headers=_headers(file, file.size_bytes))


async def _chunks(threads: Threads, stream: pa.NativeFile, part: range) -> AsyncIterator[bytes]:
    """The bytes of a part, read as fast as they are sent."""
    try:
        for start in range(part.start, part.stop, _STEP_BYTES):
            count = min(_STEP_BYTES, part.stop - start)
            yield await threads.run(stream.read_at, count, start)
    finally:
        # Not in a thread: the request of a client that disconnected is cancelled, so nothing can be awaited.
        stream.close()


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
