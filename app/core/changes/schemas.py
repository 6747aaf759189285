"""The JSON of the feed: changes in each of their forms, corrections, and pages of both."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Annotated, Any, TypeAlias

import msgspec

from app.core.changes.position_parameters import NextPosition
from app.core.changes.service.read_corrections import CorrectedChange, CorrectionPage
from app.core.changes.values import ChangePage
from app.http.openapi.openapi_components import COMPONENT
from app.kernel.format.rows.changelog import SYMBOLS

Row: TypeAlias = Annotated[
    dict[str, Any],
    msgspec.Meta(
        extra_json_schema={COMPONENT: "Row", "description": "The columns of a row by name."},
        examples=[{"id": 1, "amount": 120}],
    ),
]
"""The columns of a row by name."""
# The feed writes times itself, with milliseconds.
_Time: TypeAlias = Annotated[
    str,
    msgspec.Meta(extra_json_schema={"format": "date-time"}, examples=["2026-11-21T10:00:00.000Z"]),
]


class ChangeOp(str, Enum):
    """Append, retract, correct-from, correct-to (which directly follows); in form `single_event`, an update."""

    APPEND = "+A"
    RETRACT = "-R"
    CORRECT_FROM = "-C"
    CORRECT_TO = "+C"
    UPDATE = "U"


class ChangeResponse(msgspec.Struct, frozen=True, kw_only=True):
    """One change of form `two_event`, `single_event`, `retract` or `upsert`."""

    offset: int
    """Its place in the feed."""
    op: ChangeOp
    """What happened to the row."""
    version: int
    """The version that committed it."""
    corrects_offset: Annotated[int, msgspec.Meta(examples=[80])] | None
    """Of `-R`, `-C` and `U`: the offset of the change that gave the row the values which this one takes back. Null
    where the feed does not record it.
    """
    system_time: _Time
    """When it was committed."""
    event_time: Annotated[str, msgspec.Meta(examples=["2026-11-21T09:59:58.000Z"])] | None
    """The value of the dataset's event time; null where it has none."""
    row: Row
    """The columns of the row; of `-R` and `-C`, as they were before."""
    before: Row | msgspec.UnsetType | None = msgspec.UNSET
    """Of a `U`: the row before it. Absent in other forms."""


class DebeziumOp(str, Enum):
    """Create, update, delete."""

    CREATE = "c"
    UPDATE = "u"
    DELETE = "d"


class DebeziumSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where a change is from."""

    dataset: str
    """The name of the dataset."""
    version: int
    """The version that committed it."""
    offset: int
    """Its place in the feed; of an update, that of its `+C`."""


class DebeziumChange(msgspec.Struct, frozen=True, kw_only=True):
    """One change of form `debezium`."""

    op: DebeziumOp
    """What happened to the row."""
    before: Row | None
    """The row before the change; null if there was none."""
    after: Row | None
    """The row after the change; null if there is none."""
    source: DebeziumSource
    """Where the change is from."""
    ts_ms: Annotated[int, msgspec.Meta(examples=[1_795_255_200_000])]
    """When it was committed, in milliseconds since 1970."""


class DeltaChangeType(str, Enum):
    """What a row of form `delta` is; an `update_preimage` is directly followed by its `update_postimage`."""

    INSERT = "insert"
    DELETE = "delete"
    UPDATE_PREIMAGE = "update_preimage"
    UPDATE_POSTIMAGE = "update_postimage"


class DeltaChange(msgspec.Struct, frozen=True, kw_only=True):
    """One change of form `delta`."""

    row: Row
    """The columns of the row."""
    change_type: DeltaChangeType = msgspec.field(name="_change_type")
    """What happened to the row."""
    commit_version: Annotated[int, msgspec.Meta(examples=[7])] = msgspec.field(name="_commit_version")
    """The version that committed it."""
    commit_timestamp: _Time = msgspec.field(name="_commit_timestamp")
    """When it was committed."""


class CommitResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A commit whose writes have metadata."""

    version: int
    """The version that it made."""
    committed_at: _Time
    """When that was."""
    metadata: Annotated[list[dict[str, str]], msgspec.Meta(examples=[[{"run": "nightly-7"}]])]
    """The metadata of each of its writes that has some, in the order of their acceptance."""


class ChangesPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the feed. One without changes is the last only if none is pending."""

    changes: list[ChangeResponse]
    """The changes in the requested form, in the order of the feed."""
    next_since: NextPosition
    """The next call's `since`, in any form."""
    pending: int
    """How many changes follow the page, of which a filter may select none; approximate within the rows of a version."""
    earliest: Annotated[int, msgspec.Meta(examples=[0])]
    """The first offset that can still be read."""
    schema_id: Annotated[int, msgspec.Meta(examples=[1])]
    """The schema of the rows."""
    watermark: datetime | msgspec.UnsetType = msgspec.UNSET
    """The watermark of the changes before `next_since`; absent where the feed has none."""
    commits: list[CommitResponse] | msgspec.UnsetType = msgspec.UNSET
    """The commits of the changes up to `next_since` whose writes have metadata; absent if there are none, and for a
    credential that sees a part of the dataset.
    """


class SchemaEvent(msgspec.Struct, frozen=True):
    """The data of an event `schema`: the rows that follow have this schema."""

    schema_id: Annotated[int, msgspec.Meta(examples=[2])]
    """The number of the schema."""


class WatermarkEvent(msgspec.Struct, frozen=True):
    """The data of an event `watermark`, which follows the changes of a page."""

    watermark: _Time
    """The watermark of the changes before it."""


class CorrectionResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A change that a later change has taken back."""

    offset: Annotated[int, msgspec.Meta(examples=[80])]
    """The offset of the change that was taken back."""
    corrected_by: Annotated[int, msgspec.Meta(examples=[120])]
    """The offset of the change that took it back."""
    op: Annotated[str, msgspec.Meta(examples=["-C"])]
    """The op of the latter: `-C`, directly followed by the `+C` with the new row, or `-R`."""
    version: int
    """The version that committed the latter."""
    system_time: _Time
    """When that was."""


class CorrectionsPage(CorrectionPage[CorrectionResponse], frozen=True, kw_only=True):
    """Corrections in the order of the feed."""


def corrections_page(page: CorrectionPage[CorrectedChange]) -> CorrectionsPage:
    """The JSON of a page of corrections."""
    return CorrectionsPage(
        corrections=[_correction(each) for each in page.corrections],
        next_since=page.next_since,
        pending=page.pending,
        earliest=page.earliest,
    )


def _correction(correction: CorrectedChange) -> CorrectionResponse:
    return CorrectionResponse(
        offset=correction.offset,
        corrected_by=correction.by,
        op=SYMBOLS[correction.op],
        version=correction.version,
        system_time=_time(correction.system_time),
    )


def commits_json(page: ChangePage) -> str:
    """The commits of a page that have metadata, as a JSON array; empty if there are none."""
    commits = [
        CommitResponse(
            version=each.version, committed_at=_time(each.committed_at), metadata=list(each.metadata)
        )
        for each in page.commits
    ]
    return msgspec.json.encode(commits).decode() if commits else ""


def _time(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
