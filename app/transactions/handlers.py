"""Transactions: writes to several datasets that happen together or not at all."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from litestar import Response, get, post
from litestar.params import PathParameter, QueryParameter

from app.http.body_stream import JSON, read_body, refuse_encoding, require_media_type
from app.http.context import ApiRequest, Services, actor_of, services_of, tenant_of
from app.http.encoding import encode
from app.http.headers import WAIT_SECONDS_MAX, Preference, idempotency_key, preference
from app.http.json_body import decode_json
from app.http.openapi.operation_docs import Answer, documented
from app.http.problems import JobCancelled, document, fault_document, respond
from app.jobs.handlers.waiting import until_final
from app.jobs.schemas import transaction_path
from app.jobs.values import JobState
from app.transactions.schemas import TransactionResponse, transaction_response
from app.transactions.service import IncomingTransaction
from app.transactions.values import AcceptedTransaction, Transaction
from app.writes.handlers.write_request import NewWrite, incoming_write

_TAGS: Final = ["transactions"]
_HEADERS: Final = {
    "Location": "The transaction's path.",
    "Idempotency-Replayed": "`true` if an earlier request with the same key made the transaction.",
}

TransactionId: TypeAlias = Annotated[str, PathParameter(description="The id of a transaction.")]


class DatasetWrite(NewWrite, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A write of a transaction. `dataset`: the id or the name of the dataset that it is to."""

    dataset: str


class NewTransaction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Writes to 2–16 different datasets."""

    writes: Annotated[list[DatasetWrite], msgspec.Meta(min_length=2, max_length=16)]


@post(
    "/transactions",
    operation_id="create_transaction",
    summary="Write to several datasets at once",
    tags=_TAGS,
    status_code=202,
    opt=documented(
        {
            200: Answer(
                description="Committed within the wait that `Prefer` asked for.",
                content={JSON: TransactionResponse},
                headers={"Preference-Applied": "The wait that was applied.", **_HEADERS},
            ),
            202: Answer(
                description="Accepted: all writes are durable and on their way.",
                content={JSON: TransactionResponse},
                headers={"Retry-After": "Seconds after which to look again.", **_HEADERS},
            ),
        },
        body={JSON: NewTransaction},
        request_headers={
            "Idempotency-Key": "Makes a retry safe: the same key with the same request gives the same transaction.",
            "Prefer": "`wait=N` waits up to N seconds (60 at most) for the transaction to end.",
        },
        problems=[400, 404, 409, 413, 415, 422, 507],
    ),
)
async def create_transaction(request: ApiRequest) -> Response[Any]:
    """Accepts writes to different datasets that become visible together, each as a version of its dataset, or not at
    all: if one fails, all do.
    """
    services = services_of(request)
    preferred = preference(request.headers)
    key = idempotency_key(request.headers)
    with services.in_flight.reserved(tenant_of(request), "transactions", key):
        require_media_type(request, [JSON])
        refuse_encoding(request)
        body = await read_body(request, services.json_body_bytes_max)
        incoming = await services.threads.run(_incoming, body, key, actor_of(request))
        accepted = await services.threads.run(
            services.accept_transaction.accept, tenant_of(request), incoming
        )
    return await _answer(request, services, accepted, preferred)


@get(
    "/transactions/{transaction:str}",
    operation_id="get_transaction",
    summary="Get a transaction, or wait for it",
    tags=_TAGS,
    opt=documented(
        {200: Answer(description="The transaction as it stands.", content={JSON: TransactionResponse})},
        problems=[400, 404],
    ),
)
async def get_transaction(
    request: ApiRequest,
    transaction: TransactionId,
    wait: Annotated[
        int,
        QueryParameter(
            ge=0,
            le=WAIT_SECONDS_MAX,
            description="Seconds to wait for the transaction to end before answering.",
        ),
    ] = 0,
) -> Response[Any]:
    """The transaction as it stands, however it ended: a failed one is an answer here, not an error."""
    services = services_of(request)
    preferred = preference(request.headers)
    found = await services.threads.run(services.transactions.get, tenant_of(request), transaction)
    found = await _until_final(request, services, found, wait or preferred.wait_seconds or 0)
    headers = {} if found.state.final else {"Retry-After": "1"}
    if not wait:
        headers.update(preferred.applied())
    return Response(encode(transaction_response(found)), media_type=JSON, headers=headers)


def _incoming(body: bytes, key: str | None, actor: str) -> IncomingTransaction:
    new = decode_json(body, NewTransaction)
    writes = tuple(
        (write.dataset, msgspec.structs.replace(incoming_write(write, None), actor=actor))
        for write in new.writes
    )
    parts = [[reference, write.request_hash] for reference, write in writes]
    digest = hashlib.sha256(msgspec.json.encode(parts)).hexdigest()
    return IncomingTransaction(writes=writes, idempotency_key=key, request_hash=digest)


async def _until_final(
    request: ApiRequest, services: Services, transaction: Transaction, seconds: float
) -> Transaction:
    # All its jobs end at once, so any of them tells.
    await until_final(services, transaction.jobs[0], seconds)
    return await services.threads.run(services.transactions.get, tenant_of(request), transaction.id)


async def _answer(
    request: ApiRequest, services: Services, accepted: AcceptedTransaction, preferred: Preference
) -> Response[Any]:
    """The transaction once the client has waited as long as it likes; if it failed, the problem that failed it."""
    found = accepted.transaction
    replayed = {"Idempotency-Replayed": "true"} if accepted.replayed else {}
    headers = {**replayed, "Location": transaction_path(found.id)}
    if preferred.wait_seconds is not None:
        found = await _until_final(request, services, found, preferred.wait_seconds)
        if found.state.final:
            headers.update(preferred.applied())
    if found.state is JobState.CANCELLED:
        members = document(
            JobCancelled.code, JobCancelled.title, "the transaction was cancelled while it was waited for", {}
        )
        return respond(request, {**members, "transaction": _members(found)}, headers)
    if found.failed_job is not None and found.error is not None:
        failed_job = {"job_id": found.failed_job.id, "dataset_id": found.failed_job.dataset_id}
        return respond(
            request, {**fault_document(found.error), **failed_job, "transaction": _members(found)}, headers
        )
    if found.state is JobState.SUCCEEDED:
        return Response(
            encode(transaction_response(found)), status_code=200, media_type=JSON, headers=headers
        )
    headers["Retry-After"] = "1"
    return Response(encode(transaction_response(found)), status_code=202, media_type=JSON, headers=headers)


def _members(transaction: Transaction) -> Any:
    return msgspec.to_builtins(transaction_response(transaction), enc_hook=str)
