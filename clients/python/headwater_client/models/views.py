"""Values of views. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from headwater_client.models.datasets import CreateBucket, CreateChangelog, TableType
from headwater_client.models.writes import DatasetIdentity


class ChangeOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a view, and the change of its input that it was made of."""

    offset: int
    """The offset of the change in the feed of the view."""
    op: str
    """What happened to the row."""
    version: int
    """The version of the view that it is part of."""
    origin: int | None
    """The offset of the change in the feed of the input; null if it is not known, or not any more."""


class ChangeOriginsPage(msgspec.Struct, frozen=True, kw_only=True):
    """The origins of changes of a view, in the order of its feed."""

    dataset: DatasetIdentity
    """The input of the view, in whose feed the origins are."""
    origins: tuple[ChangeOrigin, ...]
    """The changes of this page."""
    next_since: int
    """The next call's `since`."""
    pending: int
    """How many changes of the view follow the page."""


class CreateView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A view to register."""

    name: str
    """Its name, which no other dataset or view has."""
    sql: str
    """The SELECT over other datasets whose result it has."""
    allow_cross_join: bool = False
    """Whether a join may compare every row of one side with every row of the other."""
    record_key: tuple[str, ...] | None = None
    """The columns that identify a row; by default those that the SQL shows to do so, if any."""
    event_time_field: str | None = None
    """The column with the event time of a row, which the feed has as `event_time`; null for none. By default that of
    the input, if each row is made of one row of the input and has that column unchanged.
    """
    ordering_field: str | None = None
    """The column by which readers of the feed know which row of a key is the later one. Refreshes do not compare it."""
    partition_by: tuple[str, ...] = ()
    """How its rows are partitioned, as of a dataset."""
    table_type: TableType | None = None
    """How updates are stored; the default is that of a dataset."""
    bucket: CreateBucket | None = None
    """How its rows are split into buckets, as of a dataset."""
    changelog: CreateChangelog | None = None
    """How its feed is made and kept, as of a dataset."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A view: a dataset that is derived from others by SQL."""

    id: str
    """Its id, which is that of its dataset."""
    name: str
    """Its name, which is that of its dataset."""
    sql: str
    """The SQL with which it was registered."""
    allow_cross_join: bool
    """Whether its joins may compare every row of one side with every row of the other."""
    record_key: tuple[str, ...]
    """The columns that identify a row."""
    event_time_field: str | None
    """The column with the event time of a row; null for none."""
    ordering_field: str | None
    """The column by which readers know which row of a key is the later one; null for none."""
    inputs: tuple[ViewInput, ...]
    """The datasets that it reads, by their names in the SQL."""
    mode: str
    """Whether a refresh takes in the changes of its inputs, or computes all rows."""
    state: str
    """`active` if it is refreshed whenever its inputs change, `paused` if on request only. A view pauses by itself if
    its refresh kills its process, or exceeds its time limit twice in a row.
    """
    freshness: str
    """Whether it shows its inputs as they are, or why not."""
    error: dict[str, Any] | None
    """Why its last refresh failed; null if it did not."""
    version: int
    """The version of its dataset."""
    revision: int
    """Counts the changes by PATCH; its ETag."""
    refreshed_at: datetime | None
    """When its last successful refresh ended; null before the first."""
    created_at: datetime
    """When it was registered."""
    links: ViewLinks
    """The paths of its resources."""


class ViewInput(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset that a view reads, and how far the view shows it."""

    relation: str
    """Its name in the SQL."""
    dataset: DatasetIdentity | None
    """The dataset; null for a key that may not read it."""
    offset: int | None
    """The position in its feed: the view shows the changes before it. Null, as the next two, for a key that does not
    see all of its rows.
    """
    version: int | None
    """The view shows the versions up to this one."""
    lag: int | None
    """How many changes the view does not show yet."""


class ViewLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """The paths of a view's resources."""

    self_: str
    """The view."""
    refreshes: str
    """Where a refresh is requested."""
    dataset: str
    """Its dataset."""
    changes: str
    """The feed of its dataset."""
    rows: str
    """Its rows."""
    timeline: str
    """The timeline of its dataset."""


class ViewPage(msgspec.Struct, frozen=True, kw_only=True):
    """Views by name."""

    items: tuple[View, ...]
    """The views of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""
