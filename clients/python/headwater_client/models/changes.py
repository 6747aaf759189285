"""Values of changes. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from headwater_client.html import ChangesHtml

ChangeForm = Literal["two_event", "single_event", "retract", "upsert", "debezium", "delta"]
"""The delivery format of changes."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change of form `two_event`, `single_event`, `retract` or `upsert`."""

    offset: int
    """Its place in the feed."""
    op: str
    """What happened to the row."""
    version: int
    """The version that committed it."""
    corrects_offset: int | None
    """Of `-R`, `-C` and `U`: the offset of the change that gave the row the values which this one takes back. Null
    where the feed does not record it.
    """
    system_time: datetime
    """When it was committed."""
    event_time: str | None
    """The value of the dataset's event time; null where it has none."""
    row: dict[str, Any]
    """The columns of the row; of `-R` and `-C`, as they were before."""
    before: dict[str, Any] | None = None
    """Of a `U`: the row before it. Absent in other forms."""


class ChangesPage(ChangesHtml, msgspec.Struct, frozen=True, kw_only=True):
    """A page of the feed. One without changes is the last only if none is pending."""

    changes: tuple[Change, ...]
    """The changes in the requested form, in the order of the feed."""
    next_since: NextPosition
    """A position: an offset, or a text within the rows of a version."""
    pending: int
    """How many changes follow the page, of which a filter may select none; approximate within the rows of a version."""
    earliest: int
    """The first offset that can still be read."""
    schema_id: int
    """The schema of the rows."""
    watermark: datetime | None = None
    """The watermark of the changes before `next_since`; absent where the feed has none."""
    commits: tuple[Commit, ...] | None = None
    """The commits of the changes up to `next_since` whose writes have metadata; absent if there are none, and for a
    credential that sees a part of the dataset.
    """


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """A commit whose writes have metadata."""

    version: int
    """The version that it made."""
    committed_at: datetime
    """When that was."""
    metadata: tuple[dict[str, str], ...]
    """The metadata of each of its writes that has some, in the order of their acceptance."""


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """A change that a later change has taken back."""

    offset: int
    """The offset of the change that was taken back."""
    corrected_by: int
    """The offset of the change that took it back."""
    op: str
    """The op of the latter: `-C`, directly followed by the `+C` with the new row, or `-R`."""
    version: int
    """The version that committed the latter."""
    system_time: datetime
    """When that was."""


class CorrectionsPage(msgspec.Struct, frozen=True, kw_only=True):
    """Corrections in the order of the feed."""

    corrections: tuple[Correction, ...]
    """The corrections."""
    next_since: int
    """The next call's `since`."""
    pending: int
    """How many changes follow the page, each of which may be a correction."""
    earliest: int
    """The first offset that can still be read."""


class DebeziumChange(msgspec.Struct, frozen=True, kw_only=True):
    """One change of form `debezium`."""

    op: str
    """What happened to the row."""
    before: dict[str, Any] | None
    """The row before the change; null if there was none."""
    after: dict[str, Any] | None
    """The row after the change; null if there is none."""
    source: DebeziumSource
    """Where the change is from."""
    ts_ms: int
    """When it was committed, in milliseconds since 1970."""


class DebeziumSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where a change is from."""

    dataset: str
    """The name of the dataset."""
    version: int
    """The version that committed it."""
    offset: int
    """Its place in the feed; of an update, that of its `+C`."""


class DeltaChange(msgspec.Struct, frozen=True, kw_only=True):
    """One change of form `delta`."""

    row: dict[str, Any]
    """The columns of the row."""
    _change_type: str
    """What happened to the row."""
    _commit_version: int
    """The version that committed it."""
    _commit_timestamp: datetime
    """When it was committed."""


class SchemaEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The data of an event `schema`: the rows that follow have this schema."""

    schema_id: int
    """The number of the schema."""


class WatermarkEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The data of an event `watermark`, which follows the changes of a page."""

    watermark: datetime
    """The watermark of the changes before it."""


NextPosition = int | str
