"""The quarantine of a dataset: list bad records, redrive them, discard them."""

from __future__ import annotations

import hashlib
from typing import Annotated, Final

import msgspec
from litestar import delete, get, post
from litestar.params import QueryParameter

from app.access.tenants.values import KeyScope
from app.core.catalog.values import Dataset
from app.core.jobs.handlers.accepted import Acceptance, JobReply
from app.features.quarantine.schemas import (
    AcceptLate,
    CreateRedrive,
    QuarantinePage,
    ReadQuarantineOptions,
    quarantine_page,
)
from app.features.quarantine.service import Quarantine, Redrive
from app.http.auth import needs
from app.http.body_stream import JSON, read_body, refuse_encoding, require_media_type
from app.http.dependencies import Provided
from app.http.json_body import decode_json
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documented
from app.http.request import ApiRequest
from app.http.response import ApiResponse, encode_body
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.paging import Page

_TAGS: Final = ["quarantine"]


@get(
    "/datasets/{dataset:str}/quarantine",
    operation_id="read_quarantine",
    summary="List bad records",
    tags=_TAGS,
    opt=needs(KeyScope.READ)
    | documented(content={JSON: QuarantinePage}, description="A page of bad records."),
)
async def read_quarantine(
    options: Provided[ReadQuarantineOptions],
    path_dataset: Provided[Dataset],
    quarantine: Provided[Quarantine],
    threads: Provided[Threads],
) -> ApiResponse[bytes]:
    """Lists the records that writes with `on_error=quarantine` have quarantined, with what is wrong with each."""
    page = await threads.run(
        quarantine.page,
        path_dataset,
        job_id=options.job,
        page_size=options.page_size,
        page_token=options.page_token,
    )
    # Records may be large: a thread encodes them.
    return ApiResponse(await threads.run(_encoded, page), media_type=JSON)


@post(
    "/datasets/{dataset:str}/quarantine/redrives",
    operation_id="create_redrive",
    summary="Redrive bad records",
    tags=_TAGS,
    status_code=202,
    opt=needs(KeyScope.WRITE) | documented(body={JSON: CreateRedrive}, problems=[507]),
)
async def create_redrive(
    request: ApiRequest,
    path_dataset: Provided[Dataset],
    acceptance: Provided[Acceptance],
    quarantine: Provided[Quarantine],
    json_body_bytes_max: Provided[int],
    threads: Provided[Threads],
) -> JobReply:
    """Writes records again, repaired or as they were, in a new job with the operation of the write they came with.

    Each record is redriven once. Those that are still bad are quarantined again, under the new job.
    """
    require_media_type(request, [JSON])
    refuse_encoding(request)
    body = await read_body(request, json_body_bytes_max)
    with acceptance.reserved(path_dataset.tenant_id, path_dataset.id):
        redrive = await threads.run(_redrive, body, acceptance.idempotency_key, acceptance.actor)
        redrive_job = await threads.run(quarantine.redrive, path_dataset, redrive)
    return await acceptance.reply(redrive_job)


@delete(
    "/datasets/{dataset:str}/quarantine",
    operation_id="discard_quarantine",
    summary="Discard bad records",
    tags=_TAGS,
    opt=needs(KeyScope.WRITE),
)
async def discard_quarantine(
    path_dataset: Provided[Dataset],
    quarantine: Provided[Quarantine],
    threads: Provided[Threads],
    job: Annotated[str, QueryParameter(description="The id of the job whose records to discard.")],
) -> None:
    """Removes the bad records of a job for good, whether or not they were redriven."""
    await threads.run(quarantine.discard, path_dataset, job)


def _encoded(page: Page) -> bytes:
    return encode_body(quarantine_page(page))


def _redrive(body: bytes, key: str | None, actor: str) -> Redrive:
    new = decode_json(body, CreateRedrive)
    if isinstance(new.job, str) == isinstance(new.records, list):
        detail = "expected either `job` or `records`: which records to redrive"
        raise InvalidRequest(detail, [FieldError(pointer="/job", detail=detail)])
    digest = hashlib.sha256(msgspec.json.encode(["redrive", new])).hexdigest()
    redrive = Redrive(
        idempotency_key=key, request_hash=digest, actor=actor, accept_late=isinstance(new.late, AcceptLate)
    )
    if isinstance(new.job, str):
        return msgspec.structs.replace(redrive, job_id=new.job)
    records: dict[str, bytes | None] = {}
    for place, each in enumerate(new.records or ()):
        if each.id in records:
            detail = f"record {each.id} is named twice; name it once"
            raise InvalidRequest(detail, [FieldError(pointer=f"/records/{place}/id", detail=detail)])
        records[each.id] = each.payload.encode() if isinstance(each.payload, str) else None
    return msgspec.structs.replace(redrive, records=records)
