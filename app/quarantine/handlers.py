"""The quarantine of a dataset: bad records, and driving them again."""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime
from enum import Enum
from functools import partial
from typing import Annotated, Any, Final

import msgspec
from litestar import Response, delete, get, post
from litestar.params import QueryParameter

from app.format.errors import FieldError, InvalidRequest
from app.http.body_stream import JSON, read_body, refuse_encoding, require_media_type
from app.http.context import ApiRequest, actor_of, services_of, tenant_of
from app.http.encoding import encode
from app.http.headers import idempotency_key, preference
from app.http.json_body import decode_json
from app.http.openapi.operation_docs import Answer, documented
from app.http.query_parameters import DatasetReference, PageSize, PageToken
from app.jobs.handlers.accepted import ACCEPTED_ANSWERS, ACCEPTING_HEADERS, answer_accepted
from app.paging import Page
from app.quarantine.service import QuarantinedRecord, Redrive

_TAGS: Final = ["quarantine"]
NAMED_RECORDS_MAX: Final = 10_000


class RecordState(str, Enum):
    """Whether a record waits in quarantine, or was driven again."""

    QUARANTINED = "quarantined"
    REDRIVEN = "redriven"


class PayloadEncoding(str, Enum):
    """How a payload is given: as it is, or, where it is no UTF-8, in base64."""

    TEXT = "text"
    BASE64 = "base64"


class QuarantinedRecordResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A bad record of a write. `position` is its row number in the write, `payload` what was sent: the JSON text of a
    row, the record of a CSV whose header line `header` is; a row of Arrow or Parquet as JSON. Pointers in `errors`
    start at the record. `redrive_job_id` is the job that drove it again.
    """

    id: str
    job_id: str
    position: int
    errors: list[FieldError]
    payload: str
    encoding: PayloadEncoding
    header: str | None
    written_at: datetime
    state: RecordState
    redrive_job_id: str | None


class QuarantinePage(msgspec.Struct, frozen=True, kw_only=True):
    """Records in the order in which they were set aside."""

    items: list[QuarantinedRecordResponse]
    next_page_token: str | None


class RedrivenRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A record to drive again, as it was or with the repaired `payload`."""

    id: str
    payload: str | msgspec.UnsetType = msgspec.UNSET


class NewRedrive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which records to drive again: those of `job` that wait, 100000 at a time, or the `records` of one job."""

    job: str | msgspec.UnsetType = msgspec.UNSET
    records: (
        Annotated[list[RedrivenRecord], msgspec.Meta(min_length=1, max_length=NAMED_RECORDS_MAX)]
        | msgspec.UnsetType
    ) = msgspec.UNSET


@get(
    "/datasets/{dataset:str}/quarantine",
    operation_id="read_quarantine",
    summary="List bad records",
    tags=_TAGS,
    opt=documented(
        {200: Answer(description="A page of bad records.", content={JSON: QuarantinePage})},
        problems=[400, 404],
    ),
)
async def read_quarantine(
    request: ApiRequest,
    dataset: DatasetReference,
    job: Annotated[str | None, QueryParameter(description="The id of a job: its records only.")] = None,
    page_size: PageSize = 100,
    page_token: PageToken = None,
) -> Response[Any]:
    """The records that writes with `on_error=quarantine` have set aside, with what is wrong with each.

    A page of large records ends early.
    """
    services = services_of(request)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    page = await services.threads.run(
        services.quarantine.page, found, job_id=job, page_size=page_size, page_token=page_token
    )
    return Response(await services.threads.run(partial(_encoded, page)), media_type=JSON)


@post(
    "/datasets/{dataset:str}/quarantine/redrive",
    operation_id="redrive_quarantine",
    summary="Drive bad records again",
    tags=_TAGS,
    status_code=202,
    opt=documented(
        ACCEPTED_ANSWERS,
        body={JSON: NewRedrive},
        request_headers=ACCEPTING_HEADERS,
        problems=[400, 404, 409, 413, 415, 422, 507],
    ),
)
async def redrive_quarantine(request: ApiRequest, dataset: DatasetReference) -> Response[Any]:
    """Writes records again, repaired or as they were, in a new job with the operation of the one they came with.

    Each record is driven again once; those that are bad again are set aside anew, under the new job.
    """
    services = services_of(request)
    preferred = preference(request.headers)
    key = idempotency_key(request.headers)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    require_media_type(request, [JSON])
    refuse_encoding(request)
    body = await read_body(request, services.json_body_bytes_max)
    with services.in_flight.reserved(found.tenant_id, found.id, key):
        redrive = await services.threads.run(_redrive, body, key)
        redrive = msgspec.structs.replace(redrive, actor=actor_of(request))
        accepted = await services.threads.run(services.quarantine.redrive, found, redrive)
    return await answer_accepted(request, services, accepted, preferred)


@delete(
    "/datasets/{dataset:str}/quarantine",
    operation_id="discard_quarantine",
    summary="Discard bad records",
    tags=_TAGS,
    status_code=204,
    opt=documented({204: Answer(description="Discarded.")}, problems=[400, 404]),
)
async def discard_quarantine(
    request: ApiRequest,
    dataset: DatasetReference,
    job: Annotated[str, QueryParameter(description="The id of the job whose records to discard.")],
) -> None:
    """Forgets the bad records of a job for good, whether or not they were driven again."""
    services = services_of(request)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    await services.threads.run(services.quarantine.discard, found, job)


def _redrive(body: bytes, key: str | None) -> Redrive:
    new = decode_json(body, NewRedrive)
    if isinstance(new.job, str) == isinstance(new.records, list):
        detail = "give either the job or the records to drive again"
        raise InvalidRequest(detail, [FieldError(pointer="/job", detail=detail)])
    digest = hashlib.sha256(msgspec.json.encode(["redrive", new])).hexdigest()
    if isinstance(new.job, str):
        return Redrive(job_id=new.job, idempotency_key=key, request_hash=digest)
    records: dict[str, bytes | None] = {}
    for place, each in enumerate(new.records or ()):
        if each.id in records:
            detail = f"record {each.id} is named twice"
            raise InvalidRequest(detail, [FieldError(pointer=f"/records/{place}/id", detail=detail)])
        records[each.id] = each.payload.encode() if isinstance(each.payload, str) else None
    return Redrive(records=records, idempotency_key=key, request_hash=digest)


def _encoded(page: Page) -> bytes:
    items = [_response(item) for item in page.items]
    return encode(QuarantinePage(items=items, next_page_token=page.next_token))


def _response(item: QuarantinedRecord) -> QuarantinedRecordResponse:
    record = item.record
    encoding, payload = PayloadEncoding.TEXT, record.payload
    try:
        payload.decode("utf-8")
    except UnicodeDecodeError:
        encoding, payload = PayloadEncoding.BASE64, base64.b64encode(payload)
    return QuarantinedRecordResponse(
        id=item.id,
        job_id=item.job_id,
        position=record.position,
        errors=list(record.errors),
        payload=payload.decode("utf-8"),
        encoding=encoding,
        header=None if record.header is None else record.header.decode("utf-8"),
        written_at=item.written_at,
        state=RecordState.QUARANTINED if item.redriven_by is None else RecordState.REDRIVEN,
        redrive_job_id=item.redriven_by,
    )
