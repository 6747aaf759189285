"""Values of the feed: its bounds, and pages of changes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec
import numpy as np
import numpy.typing as npt

from app.core.changes.positions import SnapshotPosition
from app.kernel.changelog.delivery_forms import ChangeForm, Events
from app.kernel.format.commit_metadata import CommitMetadata
from app.kernel.format.dataset import Vocabulary
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess


class SnapshotPlaces(msgspec.Struct, frozen=True, kw_only=True):
    """The places of rows of a version: by row, the number of its file group, and the number after its own (int64)."""

    version: int
    groups: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]

    def count_before(self, place: SnapshotPosition) -> int:
        """How many of the rows, which are in order, are before a place of the version."""
        before = (self.groups < place.group) | ((self.groups == place.group) & (self.rows <= place.row))
        return int(np.count_nonzero(before))

    def texts(self) -> list[str]:
        """The positions behind the rows, as requests write them."""
        places = zip(self.groups.tolist(), self.rows.tolist(), strict=True)
        return [SnapshotPosition(version=self.version, group=group, row=row).text for group, row in places]


class ChangePage(msgspec.Struct, frozen=True, kw_only=True):
    """The changes [since, next_since), as events of the requested form; positions count changes in any form.

    Or rows of a version: then `places` are those of its rows, `snapshot` is where the next page starts, if rows follow,
    and `next_since` is where the changes after the version start.

    `pending`: the number of changes after the page. `earliest`: the first offset that can still be read. `complete`:
    the page ends at the requested `until`, so later pages are empty. `schema_id`: the schema of the rows. `vocabulary`:
    the dataset's names of the columns that the feed adds. `watermark`: that of the changes before `next_since`.
    `commits`: those of its changes that have metadata, if they were requested.
    """

    events: Events
    schema_id: int
    form: ChangeForm
    next_since: int
    pending: int
    earliest: int
    complete: bool
    vocabulary: Vocabulary
    snapshot: SnapshotPosition | None = None
    places: SnapshotPlaces | None = None
    watermark: datetime | None = None
    commits: tuple[CommitMetadata, ...] = ()

    @property
    def position(self) -> int | SnapshotPosition:
        """Where the next page starts."""
        return self.next_since if self.snapshot is None else self.snapshot

    @property
    def resume_at(self) -> Sequence[int | str]:
        """By event, the position at which a reader resumes that has read everything up to and including it."""
        return self.events.resume_at.to_pylist() if self.places is None else self.places.texts()


class DeliveryFormat(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which changes of a feed are delivered, and how.

    `form`: the form of the changes. `columns`: those of each row, all for None; the record key need not be among them.
    `where`: a filter on the rows. `partitions`: globs, one of which the partition of a row must match. A pair is
    delivered whole if either half is selected. `schema_id`: the schema under which the rows are; None for the latest.
    `access`: what the reader may see; a pair of which it may see one half is delivered as +A or -R. `vocabulary`: the
    names of the columns that the feed adds; None for those of the dataset.
    """

    form: ChangeForm = ChangeForm.TWO_EVENT
    columns: tuple[str, ...] | None = None
    where: str | None = None
    partitions: tuple[str, ...] | None = None
    schema_id: int | None = None
    access: RowAccess = EVERYTHING
    vocabulary: Vocabulary | None = None
