"""Consumers: positions in a feed that are kept for its readers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, TypeAlias

from litestar import delete, get, post, put
from litestar.params import JSONBody, PathParameter, QueryParameter

from app.access.tenants.values import KeyScope
from app.core.catalog.values import Dataset
from app.core.consumers.schemas import (
    ConsumerPage,
    CreateLease,
    FeedConsumerResponse,
    LeaseResponse,
    ListConsumersOptions,
    PutConsumer,
    consumer_change,
    consumer_response,
    lease_response,
)
from app.core.consumers.service import Consumers
from app.core.consumers.values import ExpectedRevision
from app.http.auth import needs
from app.http.body_stream import JSON
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import Answer, documented
from app.http.parameters.headers import etag
from app.http.parameters.resource_names import DatasetIdentity
from app.http.response import ApiResponse, Tagged
from app.kernel.sql.conditions.row_access import RowAccess

_TAGS: Final = ["consumers"]

ConsumerName: TypeAlias = Annotated[str, PathParameter(description="The name of a consumer.")]


class ConsumerReply(ApiResponse[FeedConsumerResponse]):
    """The consumer that was created (201) or changed (200)."""

    answers: ClassVar[Mapping[int, Answer]] = {
        status: Answer(
            description=text,
            content={JSON: FeedConsumerResponse},
            headers={"ETag": "The revision of the resource, quoted."},
        )
        for status, text in {200: "The consumer was changed.", 201: "The consumer was created."}.items()
    }


@put(
    "/datasets/{dataset:str}/consumers/{name:str}",
    operation_id="put_consumer",
    summary="Create a consumer, or commit a position",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True) | documented(problems=[409, 410, 428]),
)
async def put_consumer(
    name: ConsumerName,
    data: JSONBody[PutConsumer],
    path_dataset: Provided[Dataset],
    put_condition: Provided[ExpectedRevision],
    access: Provided[RowAccess],
    consumers: Provided[Consumers],
    threads: Provided[Threads],
) -> ConsumerReply:
    """Creates a consumer at a position, or moves an existing one; `If-Match` with its ETag is then required.

    A position is the `next_since` of a page: everything before it is processed. It goes forward, unless `reset`.
    Without a position, only `max_lag` changes.
    """
    status, is_new = await threads.run(
        consumers.put, path_dataset, name, consumer_change(data), put_condition
    )
    return ConsumerReply(
        consumer_response(status, _identity(path_dataset), access),
        status_code=201 if is_new else 200,
        headers={"ETag": etag(status.consumer.revision)},
    )


@get(
    "/datasets/{dataset:str}/consumers",
    operation_id="list_consumers",
    summary="List consumers",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True),
)
async def list_consumers(
    options: Provided[ListConsumersOptions],
    path_dataset: Provided[Dataset],
    access: Provided[RowAccess],
    consumers: Provided[Consumers],
    threads: Provided[Threads],
) -> ConsumerPage:
    """Lists all positions in the feed: those of readers, and those of webhooks, exports and views."""
    page = await threads.run(
        consumers.list, path_dataset, page_size=options.page_size, page_token=options.page_token
    )
    return ConsumerPage(
        items=[consumer_response(each, _identity(path_dataset), access) for each in page.items],
        next_page_token=page.next_token,
    )


@get(
    "/datasets/{dataset:str}/consumers/{name:str}",
    operation_id="get_consumer",
    summary="Get a consumer",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True),
)
async def get_consumer(
    name: ConsumerName,
    path_dataset: Provided[Dataset],
    access: Provided[RowAccess],
    consumers: Provided[Consumers],
    threads: Provided[Threads],
) -> Tagged[FeedConsumerResponse]:
    """Returns the position of a consumer and its lag."""
    status = await threads.run(consumers.get, path_dataset, name)
    return Tagged(
        consumer_response(status, _identity(path_dataset), access), revision=status.consumer.revision
    )


@delete(
    "/datasets/{dataset:str}/consumers/{name:str}",
    operation_id="delete_consumer",
    summary="Delete a consumer",
    tags=_TAGS,
    opt=needs(KeyScope.MANAGE, in_part=True)
    | documented(description="The consumer was deleted; it keeps no changes any more.", problems=[409]),
)
async def delete_consumer(
    name: ConsumerName,
    path_dataset: Provided[Dataset],
    if_match_revision: Provided[int | None],
    consumers: Provided[Consumers],
    threads: Provided[Threads],
) -> None:
    """Deletes a consumer, also one that a member leases."""
    await threads.run(consumers.delete, path_dataset, name, revision=if_match_revision)


@post(
    "/datasets/{dataset:str}/consumers/{name:str}/lease",
    operation_id="lease_consumer",
    summary="Lease a consumer",
    tags=_TAGS,
    status_code=200,
    opt=needs(KeyScope.READ, in_part=True) | documented(problems=[409]),
)
async def lease_consumer(
    name: ConsumerName,
    data: JSONBody[CreateLease],
    path_dataset: Provided[Dataset],
    consumers: Provided[Consumers],
    threads: Provided[Threads],
) -> Tagged[LeaseResponse]:
    """Leases the consumer to one member of a group: until the lease ends, no other member commits.

    With its token, a member extends its lease. Without, a member of the same name replaces its earlier lease.
    """
    lease = await threads.run(consumers.lease, path_dataset, name, data.member, data.seconds, data.token)
    return Tagged(lease_response(lease), revision=lease.revision)


@delete(
    "/datasets/{dataset:str}/consumers/{name:str}/lease",
    operation_id="release_consumer",
    summary="Release a consumer",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True)
    | documented(description="The lease has ended; any member may lease the consumer.", problems=[409]),
)
async def release_consumer(
    name: ConsumerName,
    token: Annotated[str, QueryParameter(description="The token of the lease.")],
    path_dataset: Provided[Dataset],
    consumers: Provided[Consumers],
    threads: Provided[Threads],
) -> None:
    """Ends a lease early."""
    await threads.run(consumers.release, path_dataset, name, token)


def _identity(dataset: Dataset) -> DatasetIdentity:
    return DatasetIdentity(id=dataset.id, name=dataset.definition.name)
