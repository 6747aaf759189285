"""The JSON of timelines, and the options of their list."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec

from app.format.instant import Action, InstantState, RowCounts
from app.http.encoding import PROBLEM
from app.http.parameters.page_options import PageOptions
from app.http.problems import fault_document
from app.timeline.instants import InstantRecord


class ReadTimelineOptions(PageOptions, frozen=True, kw_only=True):
    """The options of `read_timeline`."""

    action: list[Action] | None = None
    """The instants that do this only; repeated, one of these."""
    state: list[InstantState] | None = None
    """The instants in this state only; repeated, in one of these."""
    since_time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    """An RFC 3339 time: what was requested then or later."""
    until_time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    """An RFC 3339 time: what was requested before."""


class InstantResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a timeline: an attempt to change the dataset."""

    id: Annotated[str, msgspec.Meta(examples=["20261121100000000000-4f5e7d"])]
    """Its id; ids grow with the time of the request."""
    action: Action
    """What it does to the dataset."""
    operation: Annotated[str, msgspec.Meta(examples=["upsert"])]
    """The operation of a write, or the kind of its job."""
    state: InstantState
    """Where it is in its life; only `completed` is visible to readers."""
    job_id: str | None
    """The job that does it; null for none."""
    transaction_id: str | None
    """The transaction that it is part of; null for none."""
    actor: str | None
    """The id of the API key that requested it; null for the service itself."""
    actor_name: str | None
    """The name of that key."""
    writer_id: str | None
    """The stream that the batch is of; null for none."""
    batch_id: int | None
    """The number of the batch; null for none."""
    parameters: dict[str, Any]
    """The options of the request that differ from their defaults."""
    version: int | None
    """The version that it made; null for none."""
    schema_id: int | None
    """The schema of that version."""
    requested_at: datetime
    """When it was requested."""
    started_at: datetime | None
    """When its last attempt started."""
    completed_at: datetime | None
    """When it was committed."""
    rows: RowCounts
    """What it did to rows."""
    files_added: int
    """Data files that its version added; instants that were committed together share a version."""
    files_removed: int
    """Data files that its version removed."""
    bytes_added: int
    """The size of the files that its version added."""
    bytes_removed: int
    """The size of the files that its version removed."""
    first_offset: int | None
    """The offset of the first change of its version; null for none."""
    last_offset: int | None
    """The offset of the last change of its version; null for none."""
    error: Annotated[dict[str, Any], PROBLEM] | None
    """Why it failed; null unless it did."""


class InstantPage(msgspec.Struct, frozen=True, kw_only=True):
    """Instants, the latest request first."""

    items: list[InstantResponse]
    """The instants of this page; fewer than `page_size` where many archived ones had to be passed over."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


def instant_response(record: InstantRecord) -> InstantResponse:
    """The JSON of a timeline entry."""
    values = msgspec.structs.asdict(record)
    return InstantResponse(
        **values | {"error": None if record.error is None else fault_document(record.error)}
    )
