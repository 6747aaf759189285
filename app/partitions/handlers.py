"""Partitions that are done: saying so, and the events that tell of it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from litestar import Response, get, post
from litestar.params import QueryParameter

from app.http.body_stream import JSON, read_body, refuse_encoding, require_media_type
from app.http.context import ApiRequest, services_of, tenant_of
from app.http.encoding import encode
from app.http.json_body import decode_json
from app.http.openapi.operation_docs import Answer, documented
from app.http.query_parameters import INT64_MAX, PAGE_SIZE_MAX, DatasetReference
from app.partitions.values import DoneReason, PartitionEvent, PartitionEventKind, PartitionMark

_BODY_BYTES_MAX: Final = 4 * 1024 * 1024
_TAGS: Final = ["partitions"]

_Paths = Annotated[list[str], msgspec.Meta(min_length=1, max_length=PAGE_SIZE_MAX)]


class EndedPartitions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The paths of partitions that get no more input."""

    partitions: _Paths


class PartitionMarkResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A partition: the last version whose write changed it, and when.

    `done_version`: the version that has all of its data; null, as is `done_at`, while it is open.
    """

    path: str
    changed_version: int
    changed_at: datetime
    done_version: int | None
    done_at: datetime | None


class PartitionMarkList(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions, in the order that they were asked for."""

    items: list[PartitionMarkResponse]


class PartitionEventResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Event `number` of a dataset: `version` has all data of a partition that is done, or brought more to one that was.

    `reason`: why a partition is done; null for one that was reopened.
    """

    number: int
    kind: PartitionEventKind
    partition: str
    version: int
    reason: DoneReason | None
    at: datetime


class PartitionEventPage(msgspec.Struct, frozen=True, kw_only=True):
    """Events in order. `next_since`: where to go on; it is `count` where there are no more for now."""

    items: list[PartitionEventResponse]
    next_since: int
    count: int


@post(
    "/datasets/{dataset:str}/partitions/done",
    operation_id="end_partitions",
    summary="Mark partitions as done",
    tags=_TAGS,
    status_code=200,
    opt=documented(
        {200: Answer(description="Done.", content={JSON: PartitionMarkList})},
        body={JSON: EndedPartitions},
        problems=[400, 404, 413, 415, 422],
    ),
)
async def end_partitions(request: ApiRequest, dataset: DatasetReference) -> Response[Any]:
    """Says that partitions get no more input. All of them are done as of the head's version, or none is.

    One that is done already stays so. If data comes to it later all the same, it is open again, and can be done again.
    """
    services = services_of(request)
    require_media_type(request, [JSON])
    refuse_encoding(request)
    wanted = decode_json(await read_body(request, _BODY_BYTES_MAX), EndedPartitions)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    marks = await services.threads.run(services.partitions.end, found, wanted.partitions)
    response = PartitionMarkList(items=[_mark_response(mark) for mark in marks])
    return Response(encode(response), media_type=JSON)


@get(
    "/datasets/{dataset:str}/partitions/events",
    operation_id="read_partition_events",
    summary="Read the events of partitions",
    tags=_TAGS,
    opt=documented(
        {200: Answer(description="Events.", content={JSON: PartitionEventPage})}, problems=[400, 404, 409]
    ),
)
async def read_partition_events(
    request: ApiRequest,
    dataset: DatasetReference,
    since: Annotated[
        int, QueryParameter(ge=0, le=INT64_MAX, description="The number of the first event to tell.")
    ] = 0,
    limit: Annotated[
        int, QueryParameter(ge=1, le=PAGE_SIZE_MAX, description="How many events to tell at most.")
    ] = 100,
) -> Response[Any]:
    """Which partitions were done or reopened, in order. Events are numbered without a gap, and never forgotten."""
    services = services_of(request)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    found_events = await services.threads.run(services.partitions.events, found, since, limit)
    response = PartitionEventPage(
        items=[event_response(event) for event in found_events.items],
        next_since=found_events.next_since,
        count=found_events.count,
    )
    return Response(encode(response), media_type=JSON)


def event_response(event: PartitionEvent) -> PartitionEventResponse:
    """The JSON form of an event."""
    return msgspec.convert(event, PartitionEventResponse, from_attributes=True)


def _mark_response(mark: PartitionMark) -> PartitionMarkResponse:
    return msgspec.convert(mark, PartitionMarkResponse, from_attributes=True)
