"""Values of the feed: its bounds, and pages of changes."""

from __future__ import annotations

import msgspec

from app.changelog.forms import ChangeForm, Events
from app.format.dataset import Vocabulary
from app.sql.conditions.row_access import EVERYTHING, RowAccess


class ChangePage(msgspec.Struct, frozen=True, kw_only=True):
    """The changes [since, next_since), as events of the requested form; positions count changes in any form.

    `pending`: the number of changes after the page. `earliest`: the first offset that can still be read. `complete`:
    the page ends at the requested `until`, so later pages are empty. `schema_id`: the schema of the rows. `vocabulary`:
    the dataset's names of the columns that the feed adds.
    """

    events: Events
    schema_id: int
    form: ChangeForm
    next_since: int
    pending: int
    earliest: int
    complete: bool
    vocabulary: Vocabulary


class DeliveryFormat(msgspec.Struct, frozen=True, kw_only=True):
    """Which changes of a feed are delivered, and how.

    `form`: the form of the changes. `columns`: those of each row, all for None; the record key need not be among them.
    `where`: a filter on the rows. `partitions`: globs, one of which the partition of a row must match. A pair is
    delivered whole if either half is selected. `schema_id`: the schema under which the rows are; None for the latest.
    `access`: what the reader may see; a pair of which it may see one half is delivered as +A or -R.
    """

    form: ChangeForm = ChangeForm.TWO_EVENT
    columns: tuple[str, ...] | None = None
    where: str | None = None
    partitions: tuple[str, ...] | None = None
    schema_id: int | None = None
    access: RowAccess = EVERYTHING
