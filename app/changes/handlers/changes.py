"""The feed of changes, page by page."""

from __future__ import annotations

from asyncio import get_running_loop
from enum import Enum
from typing import Annotated, Any, Final

import msgspec
from litestar import Response, get
from litestar.params import QueryParameter

from app.catalog.values import Dataset
from app.changelog.forms import ChangeForm, flat
from app.changes.handlers.feed_parameters import (
    ConsumerName,
    Form,
    Partitions,
    SchemaChoice,
    Since,
    Until,
    Where,
    encoded,
    requested_schema,
    start_of,
)
from app.changes.handlers.shared_pages import Encode, EncodedPage
from app.changes.positions import StartingPosition
from app.changes.service.read_changes import FeedQuery
from app.changes.values import ChangePage
from app.http.body_stream import JSON
from app.http.context import ApiRequest, Services, services_of, tenant_of
from app.http.headers import negotiate
from app.http.openapi.operation_docs import BINARY, TEXT, Answer, documented
from app.http.query_parameters import Columns, DatasetReference
from app.http.table_response import ARROW_STREAM, NDJSON, arrow_stream

LIMIT_MAX: Final = 10_000
_TIMEOUT_SECONDS_MAX: Final = 60


class Feed(str, Enum):
    """Whether an empty page is answered at once (`normal`) or as soon as there is a change (`longpoll`)."""

    NORMAL = "normal"
    LONGPOLL = "longpoll"


class ChangeOp(str, Enum):
    """Append, retract, correct-from, correct-to (which directly follows); in form `single_event`, an update."""

    APPEND = "+A"
    RETRACT = "-R"
    CORRECT_FROM = "-C"
    CORRECT_TO = "+C"
    UPDATE = "U"


class ChangeResponse(msgspec.Struct, frozen=True, kw_only=True):
    """One change. `row` has the dataset's columns, and so has `before`, which only form `single_event` has.

    `corrects_offset`: of `-R`, `-C` and `U`, the change that gave the row the values which this one takes back, where
    the feed knows; otherwise null.
    """

    offset: int
    op: ChangeOp
    version: int
    corrects_offset: int | None
    system_time: str
    event_time: str | None
    row: dict[str, Any]
    before: dict[str, Any] | msgspec.UnsetType | None = msgspec.UNSET


class DebeziumOp(str, Enum):
    """Create, update, delete."""

    CREATE = "c"
    UPDATE = "u"
    DELETE = "d"


class DebeziumSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where a change is from. An update has the offset of its `+C`."""

    dataset: str
    version: int
    offset: int


class DebeziumChange(msgspec.Struct, frozen=True, kw_only=True):
    """One change of form `debezium`: the row before and after it, and the time of its commit."""

    op: DebeziumOp
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    source: DebeziumSource
    ts_ms: int


class DeltaChangeType(str, Enum):
    """What a row of form `delta` is; an `update_preimage` is directly followed by its `update_postimage`."""

    INSERT = "insert"
    DELETE = "delete"
    UPDATE_PREIMAGE = "update_preimage"
    UPDATE_POSTIMAGE = "update_postimage"


class DeltaChange(msgspec.Struct, frozen=True, kw_only=True):
    """One change of form `delta`."""

    row: dict[str, Any]
    change_type: DeltaChangeType = msgspec.field(name="_change_type")
    commit_version: int = msgspec.field(name="_commit_version")
    commit_timestamp: str = msgspec.field(name="_commit_timestamp")


class ChangesPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the feed. `next_since` is the next call's `since`, in any form; `pending` changes follow, of which a
    filter may select none. A page without changes is the last only if none is pending.

    `schema_id` is the schema under which the rows are told.
    """

    changes: list[ChangeResponse]
    next_since: int
    pending: int
    earliest: int
    schema_id: int


_POSITION_HEADERS: Final = {
    "Headwater-Next-Since": "The next call's `since`.",
    "Headwater-Pending": "Changes after this page, whether or not they are asked for.",
    "Headwater-Earliest": "The first offset that can still be read.",
    "Headwater-Schema-Id": "The schema under which the rows are told.",
}


@get(
    "/datasets/{dataset:str}/changes",
    operation_id="read_changes",
    summary="Read the feed",
    tags=["changes"],
    opt=documented(
        {
            200: Answer(
                description="A page of changes, empty if there are none.",
                content={JSON: ChangesPage, NDJSON: TEXT, ARROW_STREAM: BINARY},
                headers=_POSITION_HEADERS,
            )
        },
        problems=[400, 404, 406, 409, 410, 422],
    ),
)
async def read_changes(
    request: ApiRequest,
    dataset: DatasetReference,
    since: Since = None,
    consumer: ConsumerName = None,
    limit: Annotated[
        int,
        QueryParameter(
            ge=1,
            le=LIMIT_MAX,
            description="Changes on a page; one more where that keeps a `-C` with its `+C`.",
        ),
    ] = 1_000,
    until: Until = None,
    columns: Columns = None,
    where: Where = None,
    partitions: Partitions = None,
    form: Form = ChangeForm.TWO_EVENT,
    schema: SchemaChoice = "latest",
    feed: Annotated[
        Feed, QueryParameter(description="`longpoll` waits for a change where there is none.")
    ] = (Feed.NORMAL),
    timeout: Annotated[  # noqa: ASYNC109  (the name of the parameter; nothing here is cancelled by it)
        int, QueryParameter(ge=0, le=_TIMEOUT_SECONDS_MAX, description="Seconds that a longpoll waits.")
    ] = 25,
) -> Response[Any]:
    """Changes from a position on, in commit order, without gaps but for those that `where` and `partitions` leave out.

    NDJSON and Arrow give the position in headers. A longpoll that times out answers with an empty page, and so does
    one that has reached `until`, at once. `columns` are those of `row`; they need not hold the record key, nor what
    `where` asks for. A page looks at a bounded number of changes, so with a filter it may be empty though changes are
    `pending`.
    """
    services = services_of(request)
    media_type = negotiate(request.headers, (JSON, NDJSON, ARROW_STREAM))
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    found, start = await start_of(services, found, since, consumer)
    query = FeedQuery(
        limit=limit,
        until=until,
        columns=None if columns is None else tuple(columns),
        form=form,
        schema_id=requested_schema(schema),
        where=where,
        partitions=None if partitions is None else tuple(partitions),
    )
    if feed is Feed.LONGPOLL:
        page = await _next_page(services, found, start, query, _ENCODERS[media_type], timeout)
    else:
        page = await services.pages.page(found, start, query, _ENCODERS[media_type])
    headers = {
        "Headwater-Next-Since": str(page.next_since),
        "Headwater-Pending": str(page.pending),
        "Headwater-Earliest": str(page.earliest),
        "Headwater-Schema-Id": str(page.schema_id),
    }
    return Response(page.content, media_type=media_type, headers=headers)


async def _next_page(
    services: Services,
    dataset: Dataset,
    since: int | StartingPosition,
    query: FeedQuery,
    encode: Encode,
    seconds: float,
) -> EncodedPage:
    """The next page that has an event; an empty one if none came in so many seconds."""
    deadline = get_running_loop().time() + seconds
    with services.head_polls.join(dataset.tenant_id, dataset.id) as waiter:
        page = await services.pages.page(dataset, since, query, encode)
        while page.empty and not page.complete and not services.subscriptions.closed:
            left = deadline - get_running_loop().time()
            if not page.pending:
                moved = await waiter.wait(page.next_since, left)
                if moved is None:
                    break
                dataset = moved
            elif left <= 0:
                break
            page = await services.pages.page(dataset, page.next_since, query, encode)
    return page


def _as_json(page: ChangePage) -> bytes:
    changes = encoded(page, as_ndjson=False)
    position = (
        f'"next_since":{page.next_since},"pending":{page.pending},"earliest":{page.earliest},'
        f'"schema_id":{page.schema_id}'
    )
    # Joined at once: a sum would copy the page, which may have megabytes, with every term.
    return b"".join((b'{"changes":', changes, b",", position.encode(), b"}"))


def _as_ndjson(page: ChangePage) -> bytes:
    return encoded(page, as_ndjson=True)


def _as_arrow(page: ChangePage) -> bytes:
    return arrow_stream(flat(page.events.table, page.form, page.vocabulary))


_ENCODERS: Final[dict[str, Encode]] = {JSON: _as_json, NDJSON: _as_ndjson, ARROW_STREAM: _as_arrow}
