"""The JSON of views: what requests send and what responses hold."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

import msgspec

from app.core.catalog.schemas import dataset_path
from app.core.changes.position_parameters import PositionText
from app.core.changes.schemas import ChangeOp
from app.features.views.service.origins import OriginPage
from app.features.views.values import View, ViewFreshness, ViewInputStatus, ViewMode, ViewState
from app.http.encoding import PROBLEM
from app.http.parameters.page_options import PageOptions
from app.http.parameters.resource_names import DatasetIdentity
from app.http.problems import fault_document

_PATH: Final = "/views/01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2"
_DATASET: Final = "/datasets/01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2"
_SQL: Final = "SELECT customer, COUNT(*) AS orders FROM orders GROUP BY customer"


class UpdateView(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The change of a view."""

    state: ViewState
    """`paused` to refresh the view on request only, `active` to refresh it whenever its inputs change."""


class ViewInputResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset that a view reads, and how far the view shows it."""

    relation: Annotated[str, msgspec.Meta(examples=["orders"])]
    """Its name in the SQL."""
    dataset: DatasetIdentity | None
    """The dataset; null for a key that may not read it."""
    offset: int | None
    """The position in its feed: the view shows the changes before it. Null, as the next two, for a key that does not
    see all of its rows.
    """
    version: int | None
    """The view shows the versions up to this one."""
    lag: Annotated[int | None, msgspec.Meta(examples=[0])]
    """How many changes the view does not show yet."""


class ViewLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """The paths of a view's resources."""

    self_: Annotated[str, msgspec.Meta(examples=[_PATH])]
    """The view."""
    refreshes: Annotated[str, msgspec.Meta(examples=[f"{_PATH}/refreshes"])]
    """Where a refresh is requested."""
    dataset: Annotated[str, msgspec.Meta(examples=[_DATASET])]
    """Its dataset."""
    changes: Annotated[str, msgspec.Meta(examples=[f"{_DATASET}/changes"])]
    """The feed of its dataset."""
    rows: Annotated[str, msgspec.Meta(examples=[f"{_DATASET}/rows"])]
    """Its rows."""
    timeline: Annotated[str, msgspec.Meta(examples=[f"{_DATASET}/timeline"])]
    """The timeline of its dataset."""


class ViewResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A view: a dataset that is derived from others by SQL."""

    id: str
    """Its id, which is that of its dataset."""
    name: Annotated[str, msgspec.Meta(examples=["totals"])]
    """Its name, which is that of its dataset."""
    sql: Annotated[str, msgspec.Meta(examples=[_SQL])]
    """The SQL with which it was registered."""
    allow_cross_join: Annotated[bool, msgspec.Meta(examples=[False])]
    """Whether its joins may compare every row of one side with every row of the other."""
    record_key: Annotated[list[str], msgspec.Meta(examples=[["customer"]])]
    """The columns that identify a row."""
    event_time_field: Annotated[str, msgspec.Meta(examples=["taken"])] | None
    """The column with the event time of a row; null for none."""
    ordering_field: Annotated[str, msgspec.Meta(examples=["taken"])] | None
    """The column by which readers know which row of a key is the later one; null for none."""
    inputs: list[ViewInputResponse]
    """The datasets that it reads, by their names in the SQL."""
    mode: ViewMode
    """Whether a refresh takes in the changes of its inputs, or computes all rows."""
    state: ViewState
    """`active` if it is refreshed whenever its inputs change, `paused` if on request only.

    A view pauses by itself if its refresh kills its process, or exceeds its time limit twice in a row.
    """
    freshness: ViewFreshness
    """Whether it shows its inputs as they are, or why not."""
    error: Annotated[dict[str, Any], PROBLEM] | None
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


class ViewPage(msgspec.Struct, frozen=True, kw_only=True):
    """Views by name."""

    items: list[ViewResponse]
    """The views of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class ChangeOriginResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a view, and the change of its input that it was made of."""

    offset: int
    """The offset of the change in the feed of the view."""
    op: ChangeOp
    """What happened to the row."""
    version: int
    """The version of the view that it is part of."""
    origin: int | None
    """The offset of the change in the feed of the input; null if it is not known, or not any more."""


class ChangeOriginsPage(msgspec.Struct, frozen=True, kw_only=True):
    """The origins of changes of a view, in the order of its feed."""

    dataset: DatasetIdentity
    """The input of the view, in whose feed the origins are."""
    origins: list[ChangeOriginResponse]
    """The changes of this page."""
    next_since: int
    """The next call's `since`."""
    pending: int
    """How many changes of the view follow the page."""


class FindOriginsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `find_origins`."""

    since: PositionText = "0"
    """The offset of the first change of the view; `earliest` for the first one that is kept, `now` for the head."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 100
    """Changes on a page, at most."""


class ListViewsOptions(PageOptions, frozen=True, kw_only=True):
    """The options of `list_views`."""


def origins_page(page: OriginPage) -> ChangeOriginsPage:
    """The JSON of a page of origins."""
    return ChangeOriginsPage(
        dataset=DatasetIdentity(id=page.source.id, name=page.source.definition.name),
        origins=[
            ChangeOriginResponse(
                offset=each.offset, op=ChangeOp[each.op.name], version=each.version, origin=each.origin
            )
            for each in page.origins
        ],
        next_since=page.next_since,
        pending=page.pending,
    )


def view_path(view: View) -> str:
    """The path of a view's resource."""
    return f"/views/{view.dataset.id}"


def view_response(view: View) -> ViewResponse:
    """The JSON of a view."""
    dataset, path = dataset_path(view.dataset), view_path(view)
    return ViewResponse(
        id=view.dataset.id,
        name=view.dataset.definition.name,
        sql=view.definition.sql,
        allow_cross_join=view.definition.allow_cross_join,
        record_key=list(view.dataset.definition.record_key),
        event_time_field=view.dataset.definition.event_time_field,
        ordering_field=view.dataset.definition.ordering_field,
        inputs=[_input_response(each) for each in view.inputs],
        mode=view.definition.mode,
        state=view.state,
        freshness=view.freshness,
        error=None if view.error is None else fault_document(view.error),
        version=view.dataset.version,
        revision=view.revision,
        refreshed_at=view.refreshed_at,
        created_at=view.created_at,
        links=ViewLinks(
            self_=path,
            refreshes=f"{path}/refreshes",
            dataset=dataset,
            changes=f"{dataset}/changes",
            rows=f"{dataset}/rows",
            timeline=f"{dataset}/timeline",
        ),
    )


def _input_response(source: ViewInputStatus) -> ViewInputResponse:
    return ViewInputResponse(
        relation=source.relation,
        dataset=(
            DatasetIdentity(id=source.dataset.id, name=source.dataset.definition.name)
            if source.named
            else None
        ),
        offset=source.position if source.counted else None,
        version=source.position_version if source.counted else None,
        lag=source.lag if source.counted else None,
    )
