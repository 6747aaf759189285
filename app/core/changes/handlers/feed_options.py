"""The query options of the feed, which its pages and its event stream share."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import msgspec

from app.core.catalog.values import Dataset
from app.core.changes.position_parameters import (
    FeedPositionText,
    Offset,
    PositionText,
    SinceTime,
    SinceVersion,
    reader_start_of,
    start_of,
)
from app.core.changes.positions import (
    FeedPosition,
    FeedStart,
    FromTime,
    FromVersion,
    SnapshotPosition,
    StartingPosition,
)
from app.core.changes.service.feed_starts import FeedStarts
from app.core.changes.service.read_changes import FeedQuery
from app.core.changes.values import ChangePage
from app.http.limits.threads import Threads
from app.kernel.changelog.delivery_forms import ChangeForm, json_names, symbols_of
from app.kernel.codecs.json.encode import encode_changes_json
from app.kernel.format.dataset import DEFAULT_VOCABULARY
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.identifiers import PATTERN_END
from app.kernel.format.member_errors import EXPECTED
from app.kernel.sql.conditions.row_access import RowAccess


class ColumnNames(str, Enum):
    """The names of what the feed adds to rows: those of the dataset's vocabulary, or the same for all datasets."""

    DATASET = "dataset"
    STANDARD = "standard"


class StartOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where a read of the feed starts, by one option at most; at the first change of all by default."""

    since: PositionText | None = None
    """The position to start at: an offset, `earliest` for the first change that is kept, or `now` for the head; `0` by
    default.
    """
    since_version: SinceVersion | None = None
    """Starts at the first change that was committed at this version or later."""
    since_time: SinceTime | None = None
    """Starts at the first change that was committed at this RFC 3339 time or later."""


class FeedOptions(StartOptions, frozen=True, kw_only=True):
    """Which changes are read, and in which form."""

    since: FeedPositionText | None = None
    """The position to start at: an offset, `earliest` for the first change that is kept, `now` for the head, or
    `snapshot` for the rows of the latest version, as `+A`, and the changes after it; `0` by default.
    """
    consumer: str | None = None
    """The consumer at whose position to start, instead of `since`."""
    until: Offset | None = None
    """The position to stop at: no change with this offset or a later one is read. Between a `-C` and its `+C`, the read
    stops before both.
    """
    columns: list[str] | None = None
    """The columns of `row`, comma-separated or repeated; all by default."""
    where: str | None = None
    """A filter: the changes whose row it is true of. A `-C` and its `+C` come together where it is true of either."""
    partitions: list[str] | None = None
    """Globs of partition paths, repeated: the changes whose row is in a partition that matches one."""
    form: ChangeForm = ChangeForm.TWO_EVENT
    """The form of the changes. `two_event`: as stored, an update as `-C` directly followed by `+C`. `single_event`: an
    update as one `U` with `before`, at the offset of the `+C`. `retract`: an update as `-R` and `+A`. `upsert`: an
    update as the `+A` of the new row. `debezium`, `delta`: as these systems write them.
    """
    vocabulary: ColumnNames = ColumnNames.DATASET
    """The names of what the feed adds to rows, such as `offset` and `op`: those of the dataset's
    `changelog.vocabulary`, or the `standard` ones.
    """
    schema: Annotated[
        str,
        msgspec.Meta(
            pattern=rf"^(latest|[0-9]{{1,9}}){PATTERN_END}",
            extra_json_schema={EXPECTED: "`latest` or the id of a schema"},
        ),
    ] = "latest"
    """The schema of the rows, whichever they were written under: `latest`, or the id of one that the dataset had. A
    column that a row does not have is null.
    """


def feed_query(options: FeedOptions, limit: int, access: RowAccess) -> FeedQuery:
    """What the options select of the changes that the access shows, in pages of `limit` changes."""
    return FeedQuery(
        limit=limit,
        until=options.until,
        columns=None if options.columns is None else tuple(options.columns),
        form=options.form,
        schema_id=None if options.schema == "latest" else int(options.schema),
        where=options.where,
        partitions=None if options.partitions is None else tuple(options.partitions),
        access=access,
        vocabulary=DEFAULT_VOCABULARY if options.vocabulary is ColumnNames.STANDARD else None,
    )


async def feed_position(
    options: FeedOptions, dataset: Dataset, starts: FeedStarts, threads: Threads
) -> tuple[Dataset, FeedPosition]:
    """The position that the options name, and the dataset with all changes up to there.

    Raises InvalidRequest, NotFound, OffsetAhead.
    """
    start = reader_start_of(options.since, options.since_version, options.since_time)
    if options.consumer is not None:
        if start is not None:
            detail = "expected either `consumer` or a start (`since`, `since_version`, `since_time`)"
            raise InvalidRequest(f"consumer: {detail}", [FieldError(pointer="/consumer", detail=detail)])
        return await threads.run(starts.consumer, dataset, options.consumer)
    if isinstance(start, SnapshotPosition):
        return dataset, start
    return await _found(start, dataset, starts, threads)


async def feed_start(
    options: StartOptions, dataset: Dataset, starts: FeedStarts, threads: Threads
) -> tuple[Dataset, int | StartingPosition]:
    """The offset that the options name, and the dataset with all changes up to there.

    Raises InvalidRequest, NotFound, OffsetAhead.
    """
    start = start_of(options.since, options.since_version, options.since_time)
    return await _found(start, dataset, starts, threads)


async def _found(
    start: FeedStart | None, dataset: Dataset, starts: FeedStarts, threads: Threads
) -> tuple[Dataset, int | StartingPosition]:
    if isinstance(start, FromVersion | FromTime):
        return await threads.run(starts.find, dataset, start)
    return dataset, 0 if start is None else start


def encoded(page: ChangePage, *, as_ndjson: bool) -> bytes:
    """The changes of a page in its form, as one JSON array or one JSON object a line."""
    return encode_changes_json(
        page.events.table,
        as_ndjson=as_ndjson,
        symbols=symbols_of(page.form),
        names=json_names(page.form, page.vocabulary),
    )
