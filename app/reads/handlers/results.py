"""The results of read jobs: in one answer, or as files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from litestar import Response, get, head
from litestar.params import PathParameter
from litestar.response import Stream

from app.format.file_format import FileFormat
from app.format.result_file import RunFile
from app.http.auth import SCOPE
from app.http.body_stream import JSON
from app.http.context import ApiRequest, Services, services_of, tenant_of
from app.http.encoding import encode
from app.http.headers import preference
from app.http.openapi.operation_docs import BINARY, TEXT, Answer, documented
from app.http.problems import JobCancelled
from app.http.stored_file import FILE_HEADERS, PART_HEADERS, RANGE_HEADERS, download, without_content
from app.http.table_response import ARROW_STREAM
from app.jobs.handlers.jobs import JobId
from app.jobs.handlers.waiting import until_final
from app.jobs.tasks import ReadQuery
from app.jobs.values import Job, JobState
from app.reads.handlers.reads import TAGS
from app.reads.jobs import ReadResult, ReadSchema

FileName: TypeAlias = Annotated[str, PathParameter(description="The name of a file of the result.")]


class ReadRows(msgspec.Struct, frozen=True, kw_only=True, tag_field="disposition", tag="inline"):
    """A result in JSON: rows as of `version`, or those that changed after `begin` and up to it."""

    rows: list[dict[str, Any]]
    version: int
    begin: int | None
    schema: ReadSchema


class ResultLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """Where a file of a result is."""

    self_: str


class ResultFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a result. `checksum` is `xxh3-128:` and the digest, hexadecimal."""

    name: str
    rows: int
    size_bytes: int
    checksum: str
    links: ResultLinks


class ReadFiles(msgspec.Struct, frozen=True, kw_only=True, tag_field="disposition", tag="files"):
    """A result as files: all rows are in them, in order from file to file."""

    files: list[ResultFile]
    format: FileFormat
    query: ReadQuery
    version: int
    begin: int | None
    rows: int
    size_bytes: int
    schema: ReadSchema


_CONTENT: Final[Mapping[str, Any]] = {
    JSON: TEXT,
    **{each.media_type: BINARY for each in FileFormat if each is not FileFormat.JSON},
}
_RESULT: Final[Mapping[str, Any]] = {
    JSON: ReadRows | ReadFiles,
    "text/csv": TEXT,
    "application/x-ndjson": TEXT,
    ARROW_STREAM: BINARY,
    FileFormat.PARQUET.media_type: BINARY,
}


@get(
    "/jobs/{job:str}/result",
    operation_id="get_result",
    summary="Get the result of a read job",
    tags=TAGS,
    opt=documented(
        {
            200: Answer(
                description="The rows, or links to the files that have them.",
                content=_RESULT,
                headers={
                    "Headwater-Version": "The version of the rows.",
                    "Headwater-Schema-Id": "The schema of the dataset that their columns are of.",
                    "Headwater-Disposition": "`inline` for the rows, `files` for links to them.",
                },
            )
        },
        request_headers={"Prefer": "`wait=N` waits up to N seconds (60 at most) for the job to end."},
        problems=[404, 409, 410],
    ),
)
async def get_result(request: ApiRequest, job: JobId) -> Response[Any]:
    """What a read job has read, in the format that it was asked for. Where that is more than one answer may have, or
    files were asked for, it lists them. A job that failed answers with its problem.
    """
    services = services_of(request)
    found = await services.threads.run(services.jobs.get, tenant_of(request), job)
    found = await until_final(services, found, preference(request.headers).wait_seconds or 0)
    result, files = await services.threads.run(services.read_jobs.result, _not_cancelled(found))
    headers = {
        "Headwater-Version": str(result.version),
        "Headwater-Schema-Id": str(result.schema.id),
        "Headwater-Disposition": "inline" if result.inline else "files",
        "Cache-Control": "private, no-transform",
    }
    if not result.inline:
        return Response(encode(_listed(found, result, files)), media_type=JSON, headers=headers)
    parts = await services.threads.run(services.read_jobs.joined, result, files)
    return Stream(
        _chunks(services, parts),
        media_type=ARROW_STREAM if result.format is FileFormat.ARROW else result.format.media_type,
        headers=headers,
    )


@get(
    "/jobs/{job:str}/result/files/{name:str}",
    operation_id="download_result_file",
    summary="Download a file of a result",
    tags=TAGS,
    opt=documented(
        {
            200: Answer(description="The file.", content=_CONTENT, headers=FILE_HEADERS),
            206: Answer(description="The part that was asked for.", content=_CONTENT, headers=PART_HEADERS),
        },
        request_headers=RANGE_HEADERS,
        problems=[404, 409, 410, 416],
    ),
)
async def download_result_file(request: ApiRequest, job: JobId, name: FileName) -> Stream:
    """A file that a read job has written. A download that broke off goes on with `Range` and `If-Range`."""
    services = services_of(request)
    file = await _file(request, job, name)
    return await download(request, services.read_jobs.open, file, _media_type(name))


@head(
    "/jobs/{job:str}/result/files/{name:str}",
    operation_id="check_result_file",
    summary="Look at a file of a result",
    tags=TAGS,
    opt={
        SCOPE: "read",
        **documented(
            {200: Answer(description="It is there.", headers=FILE_HEADERS)}, problems=[404, 409, 410]
        ),
    },
)
async def check_result_file(request: ApiRequest, job: JobId, name: FileName) -> Response[None]:
    """What `GET` would answer, without the file: its size and its ETag."""
    return without_content(await _file(request, job, name), _media_type(name))


async def _file(request: ApiRequest, job: str, name: str) -> RunFile:
    services = services_of(request)
    found = await services.threads.run(services.jobs.get, tenant_of(request), job)
    return await services.threads.run(services.read_jobs.file, _not_cancelled(found), name)


def _not_cancelled(job: Job) -> Job:
    if job.state is JobState.CANCELLED:
        raise JobCancelled("the job was cancelled, so it has no result")
    return job


def _media_type(name: str) -> str:
    return FileFormat(name.rpartition(".")[2]).media_type


async def _chunks(services: Services, parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The parts of a content, which are read as fast as they are sent."""
    try:
        while (part := await services.threads.run(next, parts, None)) is not None:
            if part:
                yield part
    finally:
        close = getattr(parts, "close", None)
        if close is not None:
            close()


def _listed(job: Job, result: ReadResult, files: list[RunFile]) -> ReadFiles:
    return ReadFiles(
        files=[
            ResultFile(
                name=file.name,
                rows=file.row_count,
                size_bytes=file.size_bytes,
                checksum=f"xxh3-128:{file.checksum}",
                links=ResultLinks(self_=f"/jobs/{job.id}/result/files/{file.name}"),
            )
            for file in files
        ],
        format=result.format,
        query=result.query,
        version=result.version,
        begin=result.begin,
        rows=result.rows,
        size_bytes=result.size_bytes,
        schema=result.schema,
    )
