"""What reads of a dataset return: the bounds of its feed, pages of changes and of rows, entries of its timeline."""

from __future__ import annotations

from datetime import datetime

import msgspec
import pyarrow as pa

from app.lake.dataset import Vocabulary
from app.lake.errors import OffsetAhead, OffsetExpired
from app.lake.forms import ChangeForm, Events
from app.lake.instant import Action, InstantState, RowCounts


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
    """One entry of the timeline."""

    id: str
    action: Action
    operation: str
    state: InstantState
    job_id: str | None
    version: int | None
    requested_at: datetime
    completed_at: datetime | None
    rows: RowCounts
    files_added: int
    files_removed: int
    bytes_added: int
    first_offset: int | None
    last_offset: int | None


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
