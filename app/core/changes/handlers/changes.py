"""The feed of changes, page by page."""

from __future__ import annotations

from asyncio import get_running_loop
from collections import deque
from collections.abc import AsyncGenerator
from enum import Enum
from typing import Annotated, Final

import msgspec
from litestar import get
from litestar.response import Stream
from msgspec.structs import replace

from app.access.tenants.values import KeyScope
from app.core.catalog.values import Dataset
from app.core.changes.handlers.feed_options import FeedOptions, encoded, feed_position, feed_query
from app.core.changes.handlers.head_polls import HeadPolls
from app.core.changes.handlers.live_feed import LiveFeed
from app.core.changes.handlers.shared_pages import Encode, EncodedPage, SharedPages
from app.core.changes.position_parameters import position_text
from app.core.changes.positions import FeedPosition
from app.core.changes.schemas import ChangesPage, commits_json
from app.core.changes.service.feed_starts import FeedStarts
from app.core.changes.service.read_changes import FeedQuery
from app.core.changes.values import ChangePage
from app.http.auth import needs
from app.http.body_stream import JSON
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.limits.unread_bytes import LARGE_BYTES
from app.http.openapi.operation_docs import BINARY, TEXT, documented
from app.http.response import ApiResponse
from app.http.table_response import ARROW_STREAM, NDJSON, arrow_stream
from app.http.waiting.request_credential import RequestCredential
from app.http.waiting.subscriptions import Subscriptions
from app.kernel.changelog.delivery_forms import flat
from app.kernel.commit.watermarks import watermark_text
from app.kernel.paging import PAGE_ROWS_MAX
from app.kernel.sql.conditions.row_access import RowAccess

_TIMEOUT_SECONDS_MAX: Final = 60


class Feed(str, Enum):
    """Whether an empty page is returned at once (`normal`) or as soon as there is a change (`longpoll`)."""

    NORMAL = "normal"
    LONGPOLL = "longpoll"


class ReadChangesOptions(FeedOptions, frozen=True, kw_only=True):
    """The options of `read_changes`."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=PAGE_ROWS_MAX)] = 1_000
    """Changes on a page, at most; one more where that keeps a `-C` with its `+C`."""
    feed: Feed = Feed.NORMAL
    """`longpoll` waits for a change where there is none."""
    timeout: Annotated[int, msgspec.Meta(ge=0, le=_TIMEOUT_SECONDS_MAX)] = 25
    """How many seconds a longpoll waits."""


@get(
    "/datasets/{dataset:str}/changes",
    operation_id="read_changes",
    summary="Read the feed",
    tags=["changes"],
    opt=needs(KeyScope.READ, in_part=True)
    | documented(
        description="A page of changes, empty if there are none.",
        content={JSON: ChangesPage, NDJSON: TEXT, ARROW_STREAM: BINARY},
        headers={
            "Headwater-Next-Since": "The next call's `since`.",
            "Headwater-Pending": "How many changes follow the page, of which a filter may select none.",
            "Headwater-Earliest": "The first offset that can still be read.",
            "Headwater-Schema-Id": "The schema of the rows.",
            "Headwater-Watermark": "The watermark of the changes before the next position, if the feed has one.",
        },
        problems=[409, 410, 422],
    ),
)
async def read_changes(
    media_type: Provided[str],
    options: Provided[ReadChangesOptions],
    path_dataset: Provided[Dataset],
    access: Provided[RowAccess],
    feed_starts: Provided[FeedStarts],
    pages: Provided[SharedPages],
    head_polls: Provided[HeadPolls],
    subscriptions: Provided[Subscriptions],
    credential: Provided[RequestCredential],
    threads: Provided[Threads],
) -> ApiResponse[bytes] | Stream:
    """Returns changes from a position on, in commit order, without gaps but for those that filters leave out.

    `since=snapshot` begins with the rows of the latest version as `+A`. `next_since` is a text as long as rows
    follow, then the position of the first change after that version. NDJSON and Arrow have it in a header. A
    longpoll that times out returns an empty page, and so does one that has reached `until`, at once. `columns` are
    those of `row`; they need not include the record key, nor the columns of `where`. A page reads a bounded number
    of changes, so with a filter it may be empty though changes are `pending`.
    """
    dataset, start = await feed_position(options, path_dataset, feed_starts, threads)
    # The metadata of a commit may describe rows that a reader of some of them may not see.
    query = replace(feed_query(options, options.limit, access), commits=not access.restricted)
    if options.feed is Feed.LONGPOLL:
        live = LiveFeed(
            pages=pages, head_polls=head_polls, subscriptions=subscriptions, credential=credential
        )
        page = await _next_page(live, dataset, start, query, _ENCODERS[media_type], options.timeout)
    else:
        page = await pages.page(dataset, start, query, _ENCODERS[media_type], fresh=True)
    headers = {
        "Headwater-Next-Since": position_text(page.position),
        "Headwater-Pending": str(page.pending),
        "Headwater-Earliest": str(page.earliest),
        "Headwater-Schema-Id": str(page.schema_id),
    }
    if page.watermark is not None:
        headers["Headwater-Watermark"] = watermark_text(page.watermark)
    parts = _with_position(page) if media_type == JSON else (page.content,)
    if len(page.content) <= LARGE_BYTES:
        return ApiResponse(b"".join(parts), media_type=media_type, headers=headers)
    # As it is cached: each response would have a copy of its own.
    headers["Content-Length"] = str(sum(map(len, parts)))
    return Stream(_in_turn(deque(parts)), media_type=media_type, headers=headers)


async def _next_page(
    live: LiveFeed,
    dataset: Dataset,
    since: FeedPosition,
    query: FeedQuery,
    encode: Encode,
    seconds: float,
) -> EncodedPage:
    """The next page that has an event; an empty one if none was committed within `seconds`.

    Raises CredentialEnded, Unavailable if the credential cannot be checked, and what reading raises.
    """
    deadline = get_running_loop().time() + seconds
    with live.head_polls.join(dataset.tenant_id, dataset.id, live.credential) as waiter:
        page = await live.pages.page(dataset, since, query, encode, fresh=True)
        while page.empty and not page.complete and not live.subscriptions.closed:
            remaining_seconds = deadline - get_running_loop().time()
            if not page.pending and isinstance(page.position, int):
                moved_dataset = await waiter.wait(page.position, remaining_seconds)
                if moved_dataset is None:
                    break
                dataset = moved_dataset
            elif remaining_seconds <= 0:
                break
            page = await live.pages.page(dataset, page.position, query, encode)
    await live.credential.check()
    return page


def _with_position(page: EncodedPage) -> tuple[bytes, ...]:
    """The JSON object of a page, in parts."""
    next_since = msgspec.json.encode(
        page.position if isinstance(page.position, int) else position_text(page.position)
    ).decode()
    position = (
        f'"next_since":{next_since},"pending":{page.pending},"earliest":{page.earliest},'
        f'"schema_id":{page.schema_id}'
    )
    if page.commits:
        position += f',"commits":{page.commits}'
    if page.watermark is not None:
        position += f',"watermark":"{watermark_text(page.watermark)}"'
    return b'{"changes":', page.content, b",%b}\n" % position.encode()


async def _in_turn(parts: deque[bytes]) -> AsyncGenerator[bytes, None]:
    """The parts, none of which is kept once it is sent."""
    while parts:
        yield parts.popleft()


def _as_json(page: ChangePage) -> bytes:
    return encoded(page, as_ndjson=False)


def _as_ndjson(page: ChangePage) -> bytes:
    return encoded(page, as_ndjson=True)


def _as_arrow(page: ChangePage) -> bytes:
    # One record batch, from however many files the changes were read.
    table = flat(page.events.table, page.form, page.vocabulary).combine_chunks()
    if page.commits:
        table = table.replace_schema_metadata(
            {**(table.schema.metadata or {}), "commits": commits_json(page)}
        )
    return arrow_stream(table)


_ENCODERS: Final[dict[str, Encode]] = {JSON: _as_json, NDJSON: _as_ndjson, ARROW_STREAM: _as_arrow}
