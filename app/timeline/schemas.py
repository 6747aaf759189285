"""The JSON forms of what the API answers with."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec

from app.format.instant import Action, InstantState, RowCounts
from app.http.encoding import PROBLEM
from app.http.problems import fault_document
from app.timeline.instants import InstantRecord


class InstantResponse(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a timeline: an attempt to change the dataset.

    `actor` is the id of the API key that asked for it, null for what the service does by itself; `parameters` what the
    request said beside its operation; `error` why it failed. Files and bytes are those of its version, which instants
    that were committed together share.
    """

    id: str
    action: Action
    operation: str
    state: InstantState
    job_id: str | None
    transaction_id: str | None
    actor: str | None
    actor_name: str | None
    writer_id: str | None
    batch_id: int | None
    parameters: dict[str, Any]
    version: int | None
    schema_id: int | None
    requested_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    rows: RowCounts
    files_added: int
    files_removed: int
    bytes_added: int
    bytes_removed: int
    first_offset: int | None
    last_offset: int | None
    error: Annotated[dict[str, Any], PROBLEM] | None


class InstantPage(msgspec.Struct, frozen=True, kw_only=True):
    """Instants, the latest request first."""

    items: list[InstantResponse]
    next_page_token: str | None


def instant_response(record: InstantRecord) -> InstantResponse:
    """The JSON form of a timeline entry."""
    values = msgspec.structs.asdict(record)
    return InstantResponse(
        **values | {"error": None if record.error is None else fault_document(record.error)}
    )
