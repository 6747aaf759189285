"""What reads of a dataset return: the bounds of its feed, pages of changes and of rows, entries of its timeline."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec

from app.format.errors import Fault
from app.format.instant import Action, InstantState, RowCounts


class InstantRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the timeline.

    `actor`: the id of the API key that requested it; None for the service itself. `parameters`: options of the request
    beside its operation. Files, bytes and `schema_id` are the commit's, which other instants of the same version
    share: bytes are those of data files that came and went. `error` says what made its job fail.
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
    error: Fault | None


class InstantFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries of a timeline are wanted: those that were requested in [since, until)."""

    actions: tuple[Action, ...] | None = None
    states: tuple[InstantState, ...] | None = None
    since: datetime | None = None
    until: datetime | None = None

    def selects(self, record: InstantRecord) -> bool:
        """Whether an entry is wanted."""
        return (
            (self.actions is None or record.action in self.actions)
            and (self.states is None or record.state in self.states)
            and (self.since is None or record.requested_at >= self.since)
            and (self.until is None or record.requested_at < self.until)
        )


EVERY_INSTANT: Final = InstantFilter()
