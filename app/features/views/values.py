"""Views: datasets that are derived from others, and kept up to date with them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Final

import msgspec

from app.core.catalog.values import Dataset
from app.core.jobs.errors import ProcessKilled, TimeLimitExceeded
from app.core.jobs.kinds.write import WriteRequest
from app.core.jobs.values import NewJob
from app.infra.identifiers import new_id, new_instant_id
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.errors import Fault
from app.kernel.format.operation import Operation
from app.kernel.sql.queries.plan import ViewPlan

TIMEOUTS_MAX: Final = 2
"""The number of refreshes in a row that may exceed their time limit before a view pauses."""


class ViewMode(str, Enum):
    """How a view is refreshed: from the changes of its input, or from all rows of its inputs."""

    ROW_BY_ROW = "row_by_row"
    RECOMPUTE = "recompute"


class ViewState(str, Enum):
    """Whether a view is refreshed whenever its inputs change, or on request only."""

    ACTIVE = "active"
    PAUSED = "paused"


class ViewFreshness(str, Enum):
    """Whether a view shows its inputs as they are, or why not."""

    CURRENT = "current"
    BEHIND = "behind"
    FAILED = "failed"


class ViewDefinition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a view computes: `sql` as registered, and `plan`, the SQL as it was parsed then.

    `allow_cross_join`: as registered. Views registered before there was this member have any joins.
    """

    sql: str
    plan: ViewPlan
    mode: ViewMode
    allow_cross_join: bool = False


class ViewInputStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset that a view reads, and how far the view shows it.

    `relation`: its name in the SQL. The view shows the changes before `position`, which are those of the versions up to
    `position_version`.
    """

    relation: str
    dataset: Dataset
    position: int
    position_version: int
    named: bool = True
    """Whether the reader may know which dataset it is."""
    counted: bool = True
    """Whether the reader may know numbers of all of its rows."""

    @property
    def lag(self) -> int:
        """Changes that the view does not show yet."""
        return self.dataset.next_offset - self.position


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A view, its inputs by their names, and the result of its last refresh.

    `paused`: whether it was requested that it is refreshed on request only; `revision` counts the changes of that.
    `error`: why the last refresh failed. `failures`: the number of refreshes in a row that failed with its code, the
    last of which began at `attempted_at` (None if the view was resumed since), `attempted_ago_seconds` before the view
    was read. `refreshed_at`: when the last successful one was committed.
    """

    dataset: Dataset
    definition: ViewDefinition
    inputs: tuple[ViewInputStatus, ...]
    paused: bool
    revision: int
    error: Fault | None
    failures: int
    attempted_at: datetime | None
    attempted_ago_seconds: float
    refreshed_at: datetime | None
    created_at: datetime

    @property
    def state(self) -> ViewState:
        """Whether it is paused: on request, or because of its last refreshes, until it is resumed."""
        stopped = self.attempted_at is not None and pauses(self.error, self.failures)
        return ViewState.PAUSED if self.paused or stopped else ViewState.ACTIVE

    @property
    def freshness(self) -> ViewFreshness:
        """Whether the view shows its inputs as they are now."""
        if self.error is not None:
            return ViewFreshness.FAILED
        return ViewFreshness.BEHIND if self.behind else ViewFreshness.CURRENT

    @property
    def behind(self) -> bool:
        """Whether a refresh has something to do.

        It has after a failure, also without new changes: a schema may have changed, so that a name in the SQL is that
        of another column.
        """
        return self.refreshed_at is None or self.failures > 0 or any(each.lag for each in self.inputs)


class CheckedView(msgspec.Struct, frozen=True, kw_only=True):
    """A view to create with its dataset, whose id it has. `inputs`: ids by name in the SQL. `schemas`: the ids of
    their schemas, by dataset. `refresh`: its first.
    """

    dataset_id: str
    dataset: DatasetDefinition
    definition: ViewDefinition
    inputs: Mapping[str, str]
    schemas: Mapping[str, int]
    refresh: NewJob


def is_deadly(error: Fault | None) -> bool:
    """Whether the last refresh of a view failed because it killed its processes."""
    return error is not None and error.code == ProcessKilled.code


def pauses(error: Fault | None, failures: int) -> bool:
    """Whether a view pauses: its last refresh killed its processes, or as many as may exceeded their time limit.

    What changes in its inputs does not make such a refresh smaller. `failures`: as of `View`.
    """
    timed_out = error is not None and error.code == TimeLimitExceeded.code and failures >= TIMEOUTS_MAX
    return is_deadly(error) or timed_out


def follower_name(view_id: str) -> str:
    """The name of a view's consumers in the feeds of its inputs."""
    return f"view:{view_id}"


def view_of(follower: str) -> str:
    """The id of the view from the name of its consumer."""
    return follower.removeprefix("view:")


def new_refresh(dataset_id: str, actor: str | None = None) -> NewJob:
    """A refresh to queue. When it runs it decides whether to read changes or all rows; the first one reads all rows.

    `actor`: the id of the API key or subject that requests it; None for a refresh after a change of an input.
    """
    return NewJob(
        id=new_id(),
        instant_id=new_instant_id(),
        dataset_id=dataset_id,
        request=WriteRequest(operation=Operation.SNAPSHOT, derived=True),
        actor=actor,
    )
