"""The feed of corrections: which changes were taken back, and by what."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from litestar import get

from app.access.tenants.values import KeyScope
from app.core.catalog.values import Dataset
from app.core.changes.handlers.feed_options import StartOptions, feed_start
from app.core.changes.position_parameters import Offset
from app.core.changes.schemas import CorrectionsPage, corrections_page
from app.core.changes.service.feed_starts import FeedStarts
from app.core.changes.service.read_corrections import CorrectionQuery, ReadCorrections
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documented

LIMIT_MAX: Final = 10_000


class ReadCorrectionsOptions(StartOptions, frozen=True, kw_only=True):
    """The options of `read_corrections`."""

    until: Offset | None = None
    """The position to stop at: no correction with this offset or a later one is read."""
    first_offset: Offset = 0
    """Only corrections of changes with this offset or a later one."""
    last_offset: Offset | None = None
    """Only corrections of changes with this offset or an earlier one."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=LIMIT_MAX)] = 1_000
    """Corrections on a page, at most."""


@get(
    "/datasets/{dataset:str}/changes/corrected",
    operation_id="read_corrections",
    summary="Read which changes were taken back",
    tags=["changes"],
    opt=needs(KeyScope.READ, in_part=True)
    | documented(description="A page of corrections.", problems=[409, 410]),
)
async def read_corrections(
    options: Provided[ReadCorrectionsOptions],
    path_dataset: Provided[Dataset],
    feed_starts: Provided[FeedStarts],
    read_corrections: Provided[ReadCorrections],
    threads: Provided[Threads],
    page_threads: Provided[Threads],
) -> CorrectionsPage:
    """Returns the changes of the feed, from a position on, that correct or retract an earlier one, and which one.

    A change is taken back at most once. A page reads a bounded part of the feed, so it may be empty though changes are
    `pending`. To find what has become of the changes of a job, send its `first_offset` and `last_offset`, and the
    former as `since`.
    """
    dataset, start = await feed_start(options, path_dataset, feed_starts, threads)
    query = CorrectionQuery(
        first=options.first_offset, last=options.last_offset, until=options.until, limit=options.limit
    )
    return corrections_page(await page_threads.run(read_corrections.page, dataset, start, query))
