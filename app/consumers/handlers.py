"""Consumers: positions in a feed that are kept for its readers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final
from urllib.parse import quote

import msgspec
from litestar import Response, delete, get, post, put
from litestar.datastructures import Headers
from litestar.params import PathParameter, QueryParameter

from app.consumers.followers import Consumer, ConsumerKind
from app.consumers.values import ConsumerChange, ConsumerStatus, ExpectedRevision, MaxLag
from app.format.errors import PreconditionFailed
from app.http.body_stream import JSON, read_body, refuse_encoding, require_media_type
from app.http.context import ApiRequest, services_of, tenant_of
from app.http.encoding import encode
from app.http.headers import etag, expected_version
from app.http.json_body import decode_json
from app.http.openapi.operation_docs import Answer, documented
from app.http.query_parameters import DatasetReference, PageSize, PageToken

_BODY_BYTES_MAX: Final = 64 * 1024
_TAGS: Final = ["consumers"]
_ETAG: Final = {"ETag": "The consumer's revision, quoted."}
_LEASE_SECONDS_MAX: Final = 3_600

Name = Annotated[str, PathParameter(description="The name of a consumer.")]


class Lag(msgspec.Struct, frozen=True, kw_only=True):
    """How far a consumer is behind: changes that it has not committed, and the age of the oldest of them."""

    changes: int
    seconds: float


class HolderResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The member that holds the consumer, and until when unless it extends its lease."""

    member: str
    until: datetime


class ConsumerLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """Where a consumer's resources are."""

    self_: str
    dataset: str
    changes: str


class ConsumerResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer: the changes before `offset` are done with. `revision` is its ETag, and counts what became of it.

    The feed has the changes from `earliest` to `head`; `expired`: some that the consumer has not committed are gone.
    """

    name: str
    kind: ConsumerKind
    revision: int
    offset: int
    head: int
    earliest: int
    lag: Lag
    max_lag: MaxLag | None
    expired: bool
    lease: HolderResponse | None
    created_at: datetime
    moved_at: datetime
    links: ConsumerLinks


class ConsumerPage(msgspec.Struct, frozen=True, kw_only=True):
    """Consumers by name."""

    items: list[ConsumerResponse]
    next_page_token: str | None


class NewLease(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who wants to hold a consumer, and for how many seconds. `token`: that of the hold to extend."""

    member: Annotated[str, msgspec.Meta(min_length=1, max_length=255, pattern="^[^\\x00-\\x1f]*$")]
    seconds: Annotated[int, msgspec.Meta(ge=1, le=_LEASE_SECONDS_MAX)]
    token: str | None = None


class LeaseResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A hold on a consumer. `token` goes with the commits of its member; `offset` is where they go on.

    `revision` is that of the consumer.
    """

    token: str
    until: datetime
    offset: int
    revision: int


_ANSWER: Final = Answer(description="The consumer.", content={JSON: ConsumerResponse}, headers=_ETAG)


@put(
    "/datasets/{dataset:str}/consumers/{name:str}",
    operation_id="put_consumer",
    summary="Make a consumer, or commit a position",
    tags=_TAGS,
    opt=documented(
        {200: _ANSWER, 201: Answer(description="Made.", content={JSON: ConsumerResponse}, headers=_ETAG)},
        body={JSON: ConsumerChange},
        request_headers={
            "If-Match": "The ETag that the consumer must still have; required where there is one.",
            "If-None-Match": "`*`: there must be none yet.",
        },
        problems=[400, 404, 409, 410, 412, 413, 415, 428],
    ),
)
async def put_consumer(request: ApiRequest, dataset: DatasetReference, name: Name) -> Response[Any]:
    """Makes a consumer at a position, or moves the one that there is.

    A position is what a page gave as `next_since`: everything before it is done with. It goes forward, unless `reset`.
    Without `offset`, only `max_lag` changes.
    """
    services = services_of(request)
    require_media_type(request, [JSON])
    refuse_encoding(request)
    expected = _expected_revision(request.headers)
    change = decode_json(await read_body(request, _BODY_BYTES_MAX), ConsumerChange)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    consumer_status, made = await services.threads.run(services.consumers.put, found, name, change, expected)
    return _answer(consumer_status, status=201 if made else 200)


@get(
    "/datasets/{dataset:str}/consumers",
    operation_id="list_consumers",
    summary="List consumers",
    tags=_TAGS,
    opt=documented(
        {200: Answer(description="A page, by name.", content={JSON: ConsumerPage})}, problems=[400, 404]
    ),
)
async def list_consumers(
    request: ApiRequest, dataset: DatasetReference, page_size: PageSize = 100, page_token: PageToken = None
) -> Response[Any]:
    """Every position in the feed that is kept: those of readers, and those of webhooks, exports and views."""
    services = services_of(request)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    page = await services.threads.run(
        services.consumers.list, found, page_size=page_size, page_token=page_token
    )
    items = [_response(consumer_status) for consumer_status in page.items]
    return Response(encode(ConsumerPage(items=items, next_page_token=page.next_token)), media_type=JSON)


@get(
    "/datasets/{dataset:str}/consumers/{name:str}",
    operation_id="get_consumer",
    summary="Get a consumer",
    tags=_TAGS,
    opt=documented({200: _ANSWER}, problems=[404]),
)
async def get_consumer(request: ApiRequest, dataset: DatasetReference, name: Name) -> Response[Any]:
    """Where a consumer stands, and how far behind."""
    services = services_of(request)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    return _answer(await services.threads.run(services.consumers.get, found, name))


@delete(
    "/datasets/{dataset:str}/consumers/{name:str}",
    operation_id="delete_consumer",
    summary="End a consumer",
    tags=_TAGS,
    status_code=204,
    opt=documented(
        {204: Answer(description="Ended; it keeps no changes any more.")},
        request_headers={"If-Match": "The ETag that the consumer must still have."},
        problems=[404, 409, 412],
    ),
)
async def delete_consumer(request: ApiRequest, dataset: DatasetReference, name: Name) -> None:
    """Forgets a position, also one that a member holds."""
    services = services_of(request)
    revision = expected_version(request.headers)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    await services.threads.run(services.consumers.delete, found, name, revision=revision)


@post(
    "/datasets/{dataset:str}/consumers/{name:str}/lease",
    operation_id="lease_consumer",
    summary="Hold a consumer",
    tags=_TAGS,
    status_code=200,
    opt=documented(
        {200: Answer(description="Held.", content={JSON: LeaseResponse}, headers=_ETAG)},
        body={JSON: NewLease},
        problems=[400, 404, 409, 413, 415],
    ),
)
async def lease_consumer(request: ApiRequest, dataset: DatasetReference, name: Name) -> Response[Any]:
    """Gives the consumer to one member of a group: until its lease runs out, nobody else commits.

    With its token a member extends its lease. Without, a member of the same name takes the consumer over from its
    former self.
    """
    services = services_of(request)
    require_media_type(request, [JSON])
    refuse_encoding(request)
    new = decode_json(await read_body(request, _BODY_BYTES_MAX), NewLease)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    held = await services.threads.run(
        services.consumers.lease, found, name, new.member, new.seconds, new.token
    )
    response = LeaseResponse(token=held.token, until=held.until, offset=held.position, revision=held.revision)
    return Response(encode(response), media_type=JSON, headers={"ETag": etag(held.revision)})


@delete(
    "/datasets/{dataset:str}/consumers/{name:str}/lease",
    operation_id="release_consumer",
    summary="Let go of a consumer",
    tags=_TAGS,
    status_code=204,
    opt=documented({204: Answer(description="Any member may hold it now.")}, problems=[400, 404, 409]),
)
async def release_consumer(
    request: ApiRequest,
    dataset: DatasetReference,
    name: Name,
    token: Annotated[str, QueryParameter(description="The token of the lease.")],
) -> None:
    """Ends a lease before it runs out."""
    services = services_of(request)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    await services.threads.run(services.consumers.release, found, name, token)


def _answer(consumer_status: ConsumerStatus, status: int = 200) -> Response[Any]:
    headers = {"ETag": etag(consumer_status.consumer.revision)}
    return Response(encode(_response(consumer_status)), status_code=status, media_type=JSON, headers=headers)


def _response(consumer_status: ConsumerStatus) -> ConsumerResponse:
    consumer, bounds = consumer_status.consumer, consumer_status.bounds
    dataset = f"/datasets/{consumer.dataset_id}"
    name = quote(consumer.name, safe="")
    return ConsumerResponse(
        name=consumer.name,
        kind=consumer.kind,
        revision=consumer.revision,
        offset=consumer.position,
        head=bounds.next_offset,
        earliest=bounds.earliest,
        lag=Lag(changes=consumer_status.behind_changes, seconds=round(consumer_status.behind_seconds, 3)),
        max_lag=_max_lag(consumer),
        expired=consumer_status.expired,
        lease=_holder(consumer_status),
        created_at=consumer.created_at,
        moved_at=consumer.moved_at,
        links=ConsumerLinks(
            self_=f"{dataset}/consumers/{name}",
            dataset=dataset,
            changes=f"{dataset}/changes?consumer={name}",
        ),
    )


def _max_lag(consumer: Consumer) -> MaxLag | None:
    if consumer.max_lag_rows is None and consumer.max_lag_seconds is None:
        return None
    return MaxLag(changes=consumer.max_lag_rows, seconds=consumer.max_lag_seconds)


def _holder(consumer_status: ConsumerStatus) -> HolderResponse | None:
    consumer = consumer_status.consumer
    # Who serves the followers is nobody's concern.
    if consumer.kind is not ConsumerKind.READER or consumer.member is None or consumer.lease_until is None:
        return None
    return (
        HolderResponse(member=consumer.member, until=consumer.lease_until)
        if consumer_status.lease_seconds > 0
        else None
    )


def _expected_revision(headers: Headers) -> ExpectedRevision:
    """What If-Match and If-None-Match say of the resource to be put. Raises PreconditionFailed."""
    unless = headers.get("if-none-match")
    if unless is not None and unless.strip() != "*":
        raise PreconditionFailed(f"If-None-Match: {unless} is not understood here", expected="*")
    return ExpectedRevision(absent=unless is not None, revision=expected_version(headers))
