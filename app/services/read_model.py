"""What reads of a dataset return: the bounds of its feed, pages of changes and of rows, entries of its timeline."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec
import pyarrow as pa

from app.lake.dataset import Vocabulary
from app.lake.errors import OffsetAhead, OffsetExpired
from app.lake.forms import ChangeForm, Events
from app.lake.instant import Action, InstantState, RowCounts
from app.services.model import Fault


class FeedBounds(msgspec.Struct, frozen=True, kw_only=True):
    """The readable part of a feed: offsets [earliest, next_offset)."""

    earliest: int
    next_offset: int

    def checked(self, since: int) -> int:
        """A position that the feed can be read from. Raises OffsetAhead, OffsetExpired."""
        if since > self.next_offset:
            raise OffsetAhead(
                f"the position {since} is beyond the head at {self.next_offset}: it is of another or a recreated "
                "dataset; start again from `earliest`, or follow from `now`",
                since=since,
                head=self.next_offset,
            )
        if since < self.earliest:
            raise OffsetExpired(
                f"changes before {self.earliest} are kept no longer: read the table and go on from there, or from "
                "`earliest`, knowing that changes are missing",
                since=since,
                earliest=self.earliest,
            )
        return since


class InstantRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the timeline.

    `actor`: the API key that asked, by its id; None for what the service did by itself. `parameters`: what the request
    said beside its operation. Files, bytes and `schema_id` are the commit's, which other instants of the same version
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


class ChangePage(msgspec.Struct, frozen=True, kw_only=True):
    """The changes [since, next_since), as events of the form that was asked for; positions count changes in any form.

    `pending` counts the changes after the page, `earliest` is the first offset that can still be read. A `complete`
    page ends where the reader wanted to stop: none after it would have a change. `schema_id` is the schema under which
    the rows are told, `vocabulary` how the dataset calls the columns that the feed adds.
    """

    events: Events
    schema_id: int
    form: ChangeForm
    next_since: int
    pending: int
    earliest: int
    complete: bool
    vocabulary: Vocabulary


class RowPage(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of the table at `version`, under the schema it had then; every page of one walk is of the same version."""

    rows: pa.Table
    version: int
    schema_id: int
    next_page_token: str | None
