"""The feed of changes as server-sent events, resumed by `Last-Event-ID`."""

from __future__ import annotations

from asyncio import get_running_loop
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Final

from litestar import Response, get

from app.catalog.values import Dataset
from app.changelog.forms import ChangeForm
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
from app.changes.handlers.shared_pages import EncodedPage
from app.changes.positions import StartingPosition
from app.changes.service.read_changes import FeedQuery
from app.changes.values import ChangePage
from app.format.errors import InvalidFilter, InvalidRequest, NotFound, OffsetExpired, Unavailable
from app.http.context import ApiRequest, Services, services_of, tenant_of
from app.http.event_stream import EVENT_STREAM, HEARTBEAT, event_stream
from app.http.openapi.operation_docs import TEXT, Answer, documented
from app.http.query_parameters import Columns, DatasetReference, natural

PAGE_CHANGES: Final = 1_000
HEARTBEAT_SECONDS: Final = 15.0
_LAST_EVENT_ID: Final = "Last-Event-ID"


@get(
    "/datasets/{dataset:str}/changes/events",
    operation_id="follow_changes",
    summary="Follow the feed",
    tags=["changes"],
    opt=documented(
        {
            200: Answer(
                description="Server-sent events `change`: the change as JSON, and as `id` the position behind it.",
                content={EVENT_STREAM: TEXT},
                headers={"Headwater-Schema-Id": "The schema under which the first rows are told."},
            ),
            204: Answer(description="Nothing is left before `until`: do not connect again."),
        },
        request_headers={
            _LAST_EVENT_ID: "The `id` of the last event that was handled; overrides `since` and `consumer`."
        },
        problems=[400, 404, 409, 410, 422],
    ),
)
async def follow_changes(
    request: ApiRequest,
    dataset: DatasetReference,
    since: Since = None,
    consumer: ConsumerName = None,
    until: Until = None,
    columns: Columns = None,
    where: Where = None,
    partitions: Partitions = None,
    form: Form = ChangeForm.TWO_EVENT,
    schema: SchemaChoice = "latest",
) -> Response[Any]:
    """Sends the changes from a position on, and then each as it comes; ends where `until` is reached.

    The `id` of a `-C` is its own position, so that whoever stops behind it gets the pair again, not half of it. An
    event `schema`, whose data is `{"schema_id": …}`, says that the rows behind it are told under another schema. While
    `where` or `partitions` leave all changes out, an `id` without data comes every few seconds.
    """
    services = services_of(request)
    # A reader that was never told an id sends none, or an empty one.
    resumed = request.headers.get(_LAST_EVENT_ID) or None
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    start: int | StartingPosition
    if resumed is None:
        found, start = await start_of(services, found, since, consumer)
    else:
        start = natural(resumed, _LAST_EVENT_ID)
    query = FeedQuery(
        limit=PAGE_CHANGES,
        until=until,
        columns=None if columns is None else tuple(columns),
        form=form,
        schema_id=requested_schema(schema),
        where=where,
        partitions=None if partitions is None else tuple(partitions),
    )
    # Read here, so that what is wrong with the request is answered rather than streamed.
    first = await services.pages.page(found, start, query, _as_events)
    if resumed is not None and first.complete and first.empty:
        # The only answer by which a browser does not connect again, for ever.
        return Response(None, status_code=204)
    # An empty page may end elsewhere than the reader said: at the head, or behind changes that are not asked for.
    emit_start = first.empty and first.next_since != start
    events = _events(services, found, first, query, emit_start=emit_start)
    return event_stream(events, {"Headwater-Schema-Id": str(first.schema_id)})


async def _events(
    services: Services, dataset: Dataset, page: EncodedPage, query: FeedQuery, *, emit_start: bool
) -> AsyncIterator[bytes]:
    """Page after page, the next read once the last is sent, so that no more than one is ever in memory."""
    clock, schema_id = get_running_loop().time, page.schema_id
    if emit_start:
        # A reader that breaks off before the first event goes on from here, not from where the head is by then.
        yield _position(page.next_since)
    sent_position = page.next_since
    with services.head_polls.join(dataset.tenant_id, dataset.id) as waiter:
        if not page.empty:
            yield page.content
        sent_at = clock()
        while not page.complete and not services.subscriptions.closed:
            silence = sent_at + HEARTBEAT_SECONDS - clock()
            if silence <= 0:
                # Whoever comes again need not look again at changes that were not asked for.
                yield HEARTBEAT if page.next_since == sent_position else _position(page.next_since)
                sent_at, sent_position = clock(), page.next_since
                continue
            try:
                if not page.pending:
                    moved = await waiter.wait(page.next_since, silence)
                    if moved is None:
                        continue
                    dataset = moved
                page = await services.pages.page(dataset, page.next_since, query, _as_events)
            except (NotFound, InvalidRequest, InvalidFilter, OffsetExpired):
                # The dataset is gone, or the changes that were next are, or what was asked for does not go with its
                # schema any more: whoever connects again is told.
                return
            except Unavailable:
                # Whoever waits is told once the database answers again, and not before the next look.
                page = replace(page, pending=0)
                continue
            if page.empty:
                continue
            if page.schema_id != schema_id:
                schema_id = page.schema_id
                yield b'event: schema\ndata: {"schema_id": %d}\n\n' % schema_id
            yield page.content
            sent_at, sent_position = clock(), page.next_since
    if page.complete and page.next_since != sent_position:
        yield _position(page.next_since)


def _position(next_since: int) -> bytes:
    """An id without data is no event, but kept: a reader that breaks off goes on from there."""
    return b"id: %d\n\n" % next_since


def _as_events(page: ChangePage) -> bytes:
    lines = encoded(page, as_ndjson=True).split(b"\n")[:-1]
    positions = page.events.resume_at.to_pylist()
    events = [b"id: %d\nevent: change\ndata: %b\n\n" % event for event in zip(positions, lines, strict=True)]
    if positions and positions[-1] != page.next_since:
        events.append(_position(page.next_since))
    return b"".join(events)
