"""The results of read jobs: as one response, or as files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

from litestar import get, head
from litestar.params import PathParameter
from litestar.response import Stream

from app.access.tenants.values import KeyScope, Principal
from app.core.jobs.errors import JobCancelled
from app.core.jobs.handlers.waiting import JobWaiter
from app.core.jobs.schemas import JobId
from app.core.jobs.service.jobs import Jobs
from app.core.jobs.values import Job, JobState
from app.features.reads.handlers.corrected import CORRECTED_HEADER, corrected_header
from app.features.reads.schemas import ReadFiles, ReadRows, read_files
from app.features.reads.service.jobs import ReadJobs
from app.http.auth import needs
from app.http.body_stream import JSON
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import BINARY, TEXT, documented
from app.http.parameters.headers import Preference
from app.http.response import ApiResponse
from app.http.stored_file import FILE_HEADERS, FILE_STATUSES, Download, FileStream, without_content
from app.http.table_response import ARROW_STREAM, streamed
from app.kernel.format.file_format import FileFormat

_TAGS: Final = ["reads"]

FileName: TypeAlias = Annotated[str, PathParameter(description="The name of a file of the result.")]

_FILE: Final[Mapping[str, Any]] = {
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
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True)
    | documented(
        description="The rows, or links to the files that have them.",
        content=_RESULT,
        headers={
            "Headwater-Version": "The version of the rows.",
            "Headwater-Schema-Id": "The schema of the dataset that the columns are of.",
            **CORRECTED_HEADER,
            "Headwater-Disposition": "`inline` for the rows, `files` for links to them.",
        },
        problems=[409, 410],
    ),
)
async def get_result(
    job: JobId,
    preference: Provided[Preference],
    principal: Provided[Principal],
    jobs: Provided[Jobs],
    waiter: Provided[JobWaiter],
    read_jobs: Provided[ReadJobs],
    threads: Provided[Threads],
) -> Stream | ApiResponse[ReadFiles]:
    """Returns the rows that a read job has read, in the format that its request named.

    If that is too much for one response, or if the read job has disposition `files`, it lists the files. A failed job
    responds with its problem.
    """
    read_job = await threads.run(jobs.get, principal.tenant_id, job)
    read_job = await waiter.until_final(read_job, preference.wait_seconds or 0)
    result, files = await threads.run(read_jobs.result, _not_cancelled(read_job))
    headers = {
        "Headwater-Version": str(result.version),
        "Headwater-Schema-Id": str(result.schema.id),
        "Headwater-Disposition": "inline" if result.inline else "files",
        "Cache-Control": "private, no-transform",
        **corrected_header(result.corrected),
    }
    if not result.inline:
        return ApiResponse(read_files(read_job, result, files), media_type=JSON, headers=headers)
    parts = await threads.run(read_jobs.joined, result, files)
    return Stream(
        streamed(threads.run, parts),
        media_type=ARROW_STREAM if result.format is FileFormat.ARROW else result.format.media_type,
        headers=headers,
    )


@get(
    "/jobs/{job:str}/result/files/{name:str}",
    operation_id="download_result_file",
    summary="Download a file of a result",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True)
    | documented(description="The file.", content=_FILE, statuses=FILE_STATUSES, problems=[409, 410, 416]),
)
async def download_result_file(
    job: JobId,
    name: FileName,
    principal: Provided[Principal],
    jobs: Provided[Jobs],
    read_jobs: Provided[ReadJobs],
    download: Provided[Download],
    threads: Provided[Threads],
) -> FileStream:
    """Sends a file that a read job has written. An interrupted download is resumed with `Range` and `If-Range`."""
    read_job = await threads.run(jobs.get, principal.tenant_id, job)
    file = await threads.run(read_jobs.file, _not_cancelled(read_job), name)
    return await download.send(read_jobs.open, file, _media_type(name))


@head(
    "/jobs/{job:str}/result/files/{name:str}",
    operation_id="check_result_file",
    summary="Get the headers of a file of a result",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True)
    | documented(description="The file exists.", headers=FILE_HEADERS, problems=[409, 410]),
)
async def check_result_file(
    job: JobId,
    name: FileName,
    principal: Provided[Principal],
    jobs: Provided[Jobs],
    read_jobs: Provided[ReadJobs],
    threads: Provided[Threads],
) -> ApiResponse[None]:
    """Returns the headers of `GET`, without the file: among them its size and its ETag."""
    read_job = await threads.run(jobs.get, principal.tenant_id, job)
    file = await threads.run(read_jobs.file, _not_cancelled(read_job), name)
    return without_content(file, _media_type(name))


def _not_cancelled(job: Job) -> Job:
    if job.state is JobState.CANCELLED:
        raise JobCancelled("the job was cancelled, so it has no result")
    return job


def _media_type(name: str) -> str:
    return FileFormat(name.rpartition(".")[2]).media_type
