"""Starting positions in a feed, as requests write them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, TypeAlias

import msgspec

from app.core.changes.positions import (
    SNAPSHOT,
    SNAPSHOT_PATTERN,
    FeedStart,
    ReaderStart,
    SnapshotPosition,
    StartingPosition,
    one_start,
)
from app.http.openapi.openapi_components import COMPONENT, INT64_MAX
from app.kernel.format.identifiers import PATTERN_END
from app.kernel.format.member_errors import EXPECTED

_DIGITS_MAX = 19
_PATTERN: Final = rf"^(earliest|now|[0-9]{{1,{_DIGITS_MAX}}}){PATTERN_END}"

_FEED_PATTERN: Final = rf"^(earliest|now|{SNAPSHOT_PATTERN}|[0-9]{{1,{_DIGITS_MAX}}}){PATTERN_END}"

_START: Final = msgspec.Meta(pattern=_PATTERN, extra_json_schema={EXPECTED: "an offset, `earliest` or `now`"})

Offset: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=INT64_MAX)]
"""A position as a number."""
Position: TypeAlias = Annotated[
    Offset | Annotated[str, _START],
    msgspec.Meta(extra_json_schema={COMPONENT: "Position", "examples": [120]}),
]
"""An offset, as a number or as digits; `earliest` for the first change that is kept, `now` for the head."""
PositionText: TypeAlias = Annotated[str, _START]
"""A position as query parameters write it."""
_READER_START: Final = msgspec.Meta(
    pattern=_FEED_PATTERN,
    extra_json_schema={
        EXPECTED: "an offset, `earliest`, `now`, `snapshot`, or `next_since` of a page of rows, which has the form "
        "`snapshot:2:0:100`"
    },
)
FeedPositionText: TypeAlias = Annotated[str, _READER_START]
"""A position as readers of a feed write it: one that may also be in the rows of a version."""
ReaderPosition: TypeAlias = Annotated[
    Offset | Annotated[str, _READER_START],
    msgspec.Meta(extra_json_schema={COMPONENT: "ReaderPosition", "examples": [120]}),
]
"""An offset, as a number or as digits; `earliest` or `now`; `snapshot` for the first row of the latest version, or the
text of a position within the rows of a version.
"""
NextPosition: TypeAlias = Annotated[
    Annotated[int, msgspec.Meta(ge=0)] | Annotated[str, msgspec.Meta(pattern=rf"^{SNAPSHOT}:")],
    msgspec.Meta(
        extra_json_schema={
            COMPONENT: "NextPosition",
            "examples": [120],
            "description": "A position: an offset, or a text within the rows of a version.",
        }
    ),
]
"""Where a reader continues: an offset, or a text within the rows of a version."""
SinceVersion: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=INT64_MAX)]
"""A version of the dataset: the position of the first change that was committed at it or later."""
SinceTime: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time: the position of the first change that was committed at it or later."""


def parse_position(since: int | str) -> int | StartingPosition:
    """The position that a request names. An offset beyond 64 bits is beyond every head, and refused as such."""
    if isinstance(since, int):
        return since
    return min(int(since), INT64_MAX) if since.isdecimal() else StartingPosition(since)


def position_text(position: int | SnapshotPosition) -> str:
    """The position of the next page, as requests and responses write it."""
    return position.text if isinstance(position, SnapshotPosition) else str(position)


def position_value(position: int | SnapshotPosition) -> int | str:
    """The position as a member of a response."""
    return position.text if isinstance(position, SnapshotPosition) else position


def reader_start_of(
    since: int | str | None, since_version: int | None, since_time: datetime | None, *, name: str = "since"
) -> ReaderStart | None:
    """As `start_of`, of a reader that may start with the rows of a version. Raises InvalidRequest."""
    if isinstance(since, str) and since.startswith(SNAPSHOT):
        return one_start(SnapshotPosition.of(since), since_version, since_time, name=name)
    return start_of(since, since_version, since_time, name=name)


def start_of(
    since: int | str | None, since_version: int | None, since_time: datetime | None, *, name: str = "since"
) -> FeedStart | None:
    """The start that a request names in one of three members, of which `name` is the first; None if in none.

    Raises InvalidRequest if in more than one.
    """
    return one_start(None if since is None else parse_position(since), since_version, since_time, name=name)
