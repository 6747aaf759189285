"""Transactions: writes to several datasets, all or nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, TypeAlias

import msgspec
from litestar import get, post
from litestar.params import PathParameter, QueryParameter

from app.access.errors import NotFound
from app.access.tenants.values import KeyScope, Principal
from app.core.catalog.service import GrantedDatasets
from app.core.jobs.errors import JobCancelled
from app.core.jobs.handlers.waiting import JobWaiter
from app.core.jobs.schemas import transaction_path
from app.core.jobs.values import JobState
from app.features.transactions.schemas import CreateTransaction, TransactionResponse, transaction_response
from app.features.transactions.service import AcceptTransaction, IncomingTransaction
from app.features.transactions.values import AcceptedTransaction, Transaction
from app.features.writes.schemas import incoming_write
from app.http.auth import needs
from app.http.body_stream import JSON, read_body, refuse_encoding, require_media_type
from app.http.dependencies import Provided
from app.http.in_flight import InFlight
from app.http.json_body import decode_json
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import Answer, documented
from app.http.parameters.headers import WAIT_SECONDS_MAX, Preference
from app.http.problems import JobFailed, document, fault_document
from app.http.request import ApiRequest
from app.http.response import ApiResponse

_TAGS: Final = ["transactions"]
_HEADERS: Final = {
    "Location": "The transaction's path.",
    "Idempotency-Replayed": "`true` if an earlier request with the same key made the transaction.",
}

TransactionId: TypeAlias = Annotated[str, PathParameter(description="The id of a transaction.")]


class TransactionReply(ApiResponse[TransactionResponse]):
    """The transaction of a request: 202 while it runs, 200 once it has succeeded."""

    answers: ClassVar[Mapping[int, Answer]] = {
        200: Answer(
            description="Committed within the wait that `Prefer` requested.",
            content={JSON: TransactionResponse},
            headers={"Preference-Applied": "The wait that was applied.", **_HEADERS},
        ),
        202: Answer(
            description="Accepted: all writes are durable and their jobs will run.",
            content={JSON: TransactionResponse},
            headers={"Retry-After": "Seconds after which to poll the transaction.", **_HEADERS},
        ),
    }


@post(
    "/transactions",
    operation_id="create_transaction",
    summary="Write to several datasets at once",
    tags=_TAGS,
    status_code=202,
    opt=needs(KeyScope.WRITE) | documented(body={JSON: CreateTransaction}, problems=[404, 409, 422, 507]),
)
async def create_transaction(
    request: ApiRequest,
    idempotency_key: Provided[str | None],
    preference: Provided[Preference],
    json_body_bytes_max: Provided[int],
    transactions: Provided[AcceptTransaction],
    in_flight: Provided[InFlight],
    waiter: Provided[JobWaiter],
    granted_datasets: Provided[GrantedDatasets],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> TransactionReply:
    """Accepts writes to different datasets that become visible together, each as a version of its dataset, or not at
    all: if one fails, all do.
    """
    with in_flight.reserved(principal.tenant_id, "transactions", idempotency_key):
        require_media_type(request, [JSON])
        refuse_encoding(request)
        body = await read_body(request, json_body_bytes_max)
        incoming = await threads.run(_incoming, body, idempotency_key, principal.actor)
        outcome = await threads.run(transactions.accept, principal.tenant_id, incoming, granted_datasets)
    transaction = outcome.transaction
    # The transaction of an earlier request may be of other datasets.
    missing = NotFound(f"there is no transaction {transaction.id!r}")
    await threads.run(granted_datasets.check_ids, [job.dataset_id for job in transaction.jobs], missing)
    if preference.wait_seconds is not None:
        await waiter.until_all_final(transaction.jobs, preference.wait_seconds)
        transaction = await threads.run(transactions.get, principal.tenant_id, transaction.id)
    return _reply(transaction, outcome, preference)


@get(
    "/transactions/{transaction:str}",
    operation_id="get_transaction",
    summary="Get a transaction, or wait for it",
    tags=_TAGS,
    opt=needs(KeyScope.READ)
    | documented(
        description="The transaction as it stands.",
        headers={
            "Retry-After": "Seconds after which to poll the transaction; absent once it has ended.",
            "Preference-Applied": "The wait that was applied.",
        },
    ),
)
async def get_transaction(
    transaction: TransactionId,
    preference: Provided[Preference],
    transactions: Provided[AcceptTransaction],
    waiter: Provided[JobWaiter],
    principal: Provided[Principal],
    threads: Provided[Threads],
    wait: Annotated[
        int,
        QueryParameter(
            ge=0,
            le=WAIT_SECONDS_MAX,
            description="Seconds to wait for the transaction to end before the response.",
        ),
    ] = 0,
) -> ApiResponse[TransactionResponse]:
    """Returns a transaction as it stands, however it ended: a failed one is a response here, not an error."""
    current = await threads.run(transactions.get, principal.tenant_id, transaction)
    if seconds := wait or preference.wait_seconds or 0:
        await waiter.until_all_final(current.jobs, seconds)
        current = await threads.run(transactions.get, principal.tenant_id, transaction)
    headers = {} if current.state.final else {"Retry-After": "1"}
    if not wait:
        headers.update(preference.applied())
    return ApiResponse(transaction_response(current), headers=headers)


def _incoming(body: bytes, key: str | None, actor: str) -> IncomingTransaction:
    new = decode_json(body, CreateTransaction)
    writes = tuple(
        (write.dataset, msgspec.structs.replace(incoming_write(write, None), actor=actor))
        for write in new.writes
    )
    parts = [[reference, write.request_hash] for reference, write in writes]
    digest = hashlib.sha256(msgspec.json.encode(parts)).hexdigest()
    return IncomingTransaction(writes=writes, idempotency_key=key, request_hash=digest)


def _reply(
    transaction: Transaction, outcome: AcceptedTransaction, preference: Preference
) -> TransactionReply:
    """The transaction as it stands. Raises JobFailed with the problem that failed it."""
    headers = {"Location": transaction_path(transaction.id)}
    if outcome.is_replay:
        headers["Idempotency-Replayed"] = "true"
    if transaction.state.final:
        headers.update(preference.applied())
    if transaction.state in (JobState.FAILED, JobState.CANCELLED):
        raise JobFailed(_problem_of(transaction), headers)
    if transaction.state is JobState.SUCCEEDED:
        return TransactionReply(transaction_response(transaction), status_code=200, headers=headers)
    headers["Retry-After"] = "1"
    return TransactionReply(transaction_response(transaction), status_code=202, headers=headers)


def _problem_of(transaction: Transaction) -> dict[str, Any]:
    """The problem that ended the transaction, with the transaction as a member."""
    members = msgspec.to_builtins(transaction_response(transaction), enc_hook=str)
    failed_job = transaction.failed_job
    if failed_job is None or transaction.error is None:
        detail = "the transaction was cancelled while it was waited for"
        problem = document(JobCancelled.code, JobCancelled.title, detail, {})
        return {**problem, "transaction": members}
    place = {"job_id": failed_job.id, "dataset_id": failed_job.dataset_id}
    return {**fault_document(transaction.error), **place, "transaction": members}
