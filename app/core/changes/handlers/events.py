"""The feed of changes as server-sent events, resumed by `Last-Event-ID`."""

from __future__ import annotations

import re
from asyncio import get_running_loop
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import replace
from typing import Annotated, ClassVar, Final

from litestar import get
from litestar.params import HeaderParameter
from litestar.response import Stream

from app.access.errors import NotFound
from app.access.tenants.errors import RateLimited
from app.access.tenants.values import KeyScope
from app.core.catalog.values import Dataset
from app.core.changes.handlers.feed_options import FeedOptions, encoded, feed_position, feed_query
from app.core.changes.handlers.head_polls import HeadPolls
from app.core.changes.handlers.live_feed import LiveFeed
from app.core.changes.handlers.shared_pages import EncodedPage, SharedPages
from app.core.changes.position_parameters import position_text
from app.core.changes.positions import SNAPSHOT_PATTERN, FeedPosition, SnapshotPosition
from app.core.changes.schemas import ChangeResponse, DebeziumChange, DeltaChange, SchemaEvent, WatermarkEvent
from app.core.changes.service.feed_starts import FeedStarts
from app.core.changes.service.read_changes import FeedQuery
from app.core.changes.values import ChangePage
from app.core.timeline.errors import OffsetExpired, VersionExpired
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.event_stream import EVENT_STREAM, HEARTBEAT, STREAM, STREAM_HEADERS, while_valid
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import Answer, EventTypes, documented
from app.http.parameters.query_parameters import natural
from app.http.response import encode_json
from app.http.waiting.request_credential import RequestCredential
from app.http.waiting.subscriptions import Subscriptions
from app.infra.errors import Unavailable
from app.kernel.commit.watermarks import watermark_text
from app.kernel.format.errors import GrantNotApplicable, InvalidFilter, InvalidRequest, MaskedColumn
from app.kernel.sql.conditions.row_access import RowAccess

PAGE_CHANGES: Final = 1_000
HEARTBEAT_SECONDS: Final = 15.0
_LAST_EVENT_ID: Final = "Last-Event-ID"
_ENDED: Final = (
    NotFound,
    InvalidRequest,
    InvalidFilter,
    OffsetExpired,
    VersionExpired,
    MaskedColumn,
    GrantNotApplicable,
)


class ChangeStream(Stream):
    """Changes as server-sent events; 204 where a client that resumes has had all of them."""

    answers: ClassVar[Mapping[int, Answer]] = {
        200: Answer(
            description="Server-sent events `change`: the change as JSON, and as `id` the position after it.",
            content={
                EVENT_STREAM: EventTypes(
                    {
                        "change": [ChangeResponse, DebeziumChange, DeltaChange],
                        "schema": [SchemaEvent],
                        "watermark": [WatermarkEvent],
                    }
                )
            },
            headers={"Headwater-Schema-Id": "The schema of the first rows."},
        ),
        204: Answer(description="No change is left before `until`: do not connect again."),
    }


@get(
    "/datasets/{dataset:str}/changes/events",
    operation_id="follow_changes",
    summary="Follow the feed",
    tags=["changes"],
    opt=needs(KeyScope.READ, in_part=True) | {STREAM: True} | documented(problems=[409, 410, 422]),
)
async def follow_changes(
    options: Provided[FeedOptions],
    path_dataset: Provided[Dataset],
    access: Provided[RowAccess],
    feed_starts: Provided[FeedStarts],
    pages: Provided[SharedPages],
    head_polls: Provided[HeadPolls],
    subscriptions: Provided[Subscriptions],
    credential: Provided[RequestCredential],
    threads: Provided[Threads],
    last_event_id: Annotated[
        str | None,
        HeaderParameter(
            name=_LAST_EVENT_ID,
            description="The `id` of the last event that was handled; overrides `since` and `consumer`.",
        ),
    ] = None,
) -> ChangeStream:
    """Sends the changes from a position on, and then each change as it is committed; ends where `until` is reached.

    The `id` of a `-C` is its own position, so that a client that stops after it receives the pair again, not half of
    it. An event `schema`, whose data is `{"schema_id": …}`, precedes rows of another schema. An event `watermark`,
    whose data is `{"watermark": …}`, follows the changes of a page if the feed has one. While `where` or `partitions`
    leave all changes out, an `id` without data is sent every few seconds.
    """
    # A client that never received an id sends none, or an empty one.
    resume_id = last_event_id or None
    position = _resume_position(resume_id)
    if position is None:
        dataset, start = await feed_position(options, path_dataset, feed_starts, threads)
    else:
        dataset, start = path_dataset, position
    query = feed_query(options, PAGE_CHANGES, access)
    # Read here, so that a request that is not valid gets a problem, not a stream.
    first = await pages.page(dataset, start, query, _as_events, fresh=True)
    if resume_id is not None and first.complete and first.empty:
        # The only response after which a browser does not connect again, for ever.
        return ChangeStream(_no_events(), status_code=204)
    # An empty page may end elsewhere than the client requested: at the head, or after changes that were filtered out.
    emit_start = first.empty and first.position != start
    live = LiveFeed(pages=pages, head_polls=head_polls, subscriptions=subscriptions, credential=credential)
    events = _events(live, dataset, first, query, emit_start=emit_start)
    headers = {**STREAM_HEADERS, "Headwater-Schema-Id": str(first.schema_id)}
    return ChangeStream(while_valid(events, credential), media_type=EVENT_STREAM, headers=headers)


def _resume_position(last_event_id: str | None) -> FeedPosition | None:
    """Raises InvalidRequest."""
    if last_event_id is not None and re.fullmatch(SNAPSHOT_PATTERN, last_event_id):
        return SnapshotPosition.of(last_event_id)
    return None if last_event_id is None else natural(last_event_id, _LAST_EVENT_ID)


async def _no_events() -> AsyncIterator[bytes]:
    nothing: tuple[bytes, ...] = ()
    for each in nothing:
        yield each


async def _events(
    live: LiveFeed, dataset: Dataset, page: EncodedPage, query: FeedQuery, *, emit_start: bool
) -> AsyncGenerator[bytes, None]:
    """Page after page, the next read once the last is sent, so that no more than one is ever in memory.

    Raises CredentialEnded.
    """
    clock, schema_id = get_running_loop().time, page.schema_id
    if emit_start:
        # A client that disconnects before the first event resumes here, not at the head of that time.
        yield _position(page.position)
    sent_position = page.position
    with live.head_polls.join(dataset.tenant_id, dataset.id, live.credential) as waiter:
        if not page.empty:
            yield page.content
        sent_at = clock()
        while not page.complete and not live.subscriptions.closed:
            silence = sent_at + HEARTBEAT_SECONDS - clock()
            if silence <= 0:
                # A client that resumes does not read again what was filtered out.
                yield HEARTBEAT if page.position == sent_position else _position(page.position)
                sent_at, sent_position = clock(), page.position
                continue
            try:
                if not page.pending and isinstance(page.position, int):
                    moved_dataset = await waiter.wait(page.position, silence)
                    if moved_dataset is None:
                        continue
                    dataset = moved_dataset
                page = await live.pages.page(dataset, page.position, query, _as_events)
            except _ENDED:
                # The dataset or the next changes are gone, or the request does not fit its schema any more: a client
                # that connects again gets the problem.
                return
            except (Unavailable, RateLimited):
                # The stream continues once the database is available again, or the tenant has read what it requested
                # before, and not before the next poll.
                page = replace(page, pending=0)
                continue
            if page.empty:
                continue
            if page.schema_id != schema_id:
                schema_id = page.schema_id
                yield _event("schema", SchemaEvent(schema_id))
            yield page.content
            sent_at, sent_position = clock(), page.position
    if page.complete and page.position != sent_position:
        yield _position(page.position)


def _position(position: int | SnapshotPosition) -> bytes:
    """An id without data is not an event, but clients keep it and resume from there."""
    return f"id: {position_text(position)}\n\n".encode()


def _event(name: str, data: SchemaEvent | WatermarkEvent) -> bytes:
    return f"event: {name}\ndata: ".encode() + encode_json(data) + b"\n\n"


def _as_events(page: ChangePage) -> bytes:
    lines = encoded(page, as_ndjson=True).split(b"\n")[:-1]
    positions = [str(position) for position in page.resume_at]
    events = [
        b"id: %b\nevent: change\ndata: %b\n\n" % (position.encode(), line)
        for position, line in zip(positions, lines, strict=True)
    ]
    if positions and positions[-1] != position_text(page.position):
        events.append(_position(page.position))
    if page.watermark is not None and positions:
        events.append(_event("watermark", WatermarkEvent(watermark_text(page.watermark))))
    return b"".join(events)
