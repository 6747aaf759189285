"""What reads of a dataset return: the bounds of its feed, pages of changes and of rows, entries of its timeline."""

from __future__ import annotations

import msgspec

from app.changelog.forms import ChangeForm, Events
from app.format.dataset import Vocabulary
from app.format.errors import OffsetAhead, OffsetExpired


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
