"""What happens to views in the transactions of other rooms: a refresh ends, a dataset is deleted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, delete, exists, func, select, update

from app.core.catalog.errors import DatasetInUse
from app.core.catalog.tables import datasets
from app.core.consumers.tables import consumers
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.tables import jobs
from app.core.timeline.values import NewCommit, Overtaken, Published
from app.features.views.tables import view_inputs, views
from app.features.views.values import follower_name, pauses
from app.infra.db.any_of import any_of
from app.kernel.format.errors import Fault

_PAUSED: Final = (
    "the view is paused: it is refreshed on request only, until a refresh succeeds or "
    "its state is set to active"
)


class ViewParticipant:
    """Views in commits, in failures of jobs and in deletions of datasets."""

    def is_derived(self) -> ColumnElement[bool]:
        """Whether the dataset is that of a view."""
        return exists().where(views.c.dataset_id == datasets.c.id).correlate(datasets)

    def publishing(self, connection: Connection, commit: NewCommit) -> Overtaken | None:
        """Marks a view as refreshed, whether or not the refresh changes any row.

        Overtaken if the schema of an input has changed since it was read: a name in the SQL may be that of another
        column.
        """
        if not commit.advances:
            return None
        connection.execute(
            update(views)
            .where(views.c.dataset_id == commit.dataset_id)
            .values(error=None, failures=0, attempted_at=None, refreshed_at=func.clock_timestamp())
        )
        return _overtaken(connection, commit)

    def published(self, connection: Connection, commit: NewCommit, publication: Published) -> None:
        """A new version changes no view: followers of the dataset start refreshes."""

    def job_failed(self, connection: Connection, job_id: str, kind: JobKind, fault: Fault) -> None:
        """Stores the fault of a refresh with its view, and makes the view due, so that it is tried again."""
        if kind is JobKind.REFRESH:
            _refresh_failed(connection, job_id, fault)

    def job_cancelled(self, connection: Connection, job_id: str, kind: JobKind) -> None:
        """A cancelled refresh changes no view: the next one starts with the next change."""

    def input_names(self, connection: Connection, dataset_id: str) -> Sequence[str]:
        """The names of the datasets that the view reads; none if there is no such view."""
        query = (
            select(datasets.c.name)
            .join(view_inputs, view_inputs.c.dataset_id == datasets.c.id)
            .where(view_inputs.c.view_id == dataset_id)
        )
        return connection.execute(query).scalars().all()

    def pairs(self, connection: Connection) -> Sequence[tuple[str, str]]:
        """Each dataset that a view reads, and the view."""
        query = select(view_inputs.c.dataset_id, view_inputs.c.view_id)
        return [(row.dataset_id, row.view_id) for row in connection.execute(query)]

    def check_unread(self, connection: Connection, dataset_id: str) -> None:
        """Raises DatasetInUse if views read the dataset."""
        readers = _readers_of(connection, dataset_id)
        if readers:
            names = ", ".join(map(repr, readers))
            raise DatasetInUse(
                f"The dataset is read by the views {names}: delete these first", views=list(readers)
            )

    def dataset_deleted(self, connection: Connection, dataset_id: str) -> None:
        """Deletes the view of the dataset and the positions in its inputs."""
        _end_view(connection, dataset_id)


def _overtaken(connection: Connection, commit: NewCommit) -> Overtaken | None:
    """Whether an input of the view has another schema now.

    The caller has locked the view, so a change of a schema that pauses it is seen here, or pauses it after the commit.
    """
    inputs = {each.dataset_id: each for each in commit.advances}
    query = select(datasets.c.id, datasets.c.definition).where(any_of(datasets.c.id, list(inputs)))
    for row in connection.execute(query):
        advance = inputs[row.id]
        if row.definition.schema.id != advance.schema_id:
            return Overtaken(dataset_id=commit.dataset_id, since=advance.since)
    return None


def _refresh_failed(connection: Connection, job_id: str, fault: Fault) -> None:
    of_job = views.c.dataset_id == select(jobs.c.dataset_id).where(jobs.c.id == job_id).scalar_subquery()
    view = connection.execute(
        select(views.c.dataset_id, views.c.error, views.c.failures).where(of_job).with_for_update()
    ).one_or_none()
    if view is None:
        return
    failures = view.failures + 1 if view.error is not None and view.error.code == fault.code else 1
    if pauses(fault, failures):
        fault = replace(fault, detail=f"{fault.detail}; {_PAUSED}")
    started_at = select(func.coalesce(jobs.c.started_at, func.clock_timestamp())).where(jobs.c.id == job_id)
    connection.execute(
        update(views)
        .where(views.c.dataset_id == view.dataset_id)
        .values(error=fault, failures=failures, attempted_at=started_at.scalar_subquery())
    )
    connection.execute(
        update(consumers)
        .where(consumers.c.name == follower_name(view.dataset_id))
        .values(wake_at=func.clock_timestamp())
    )


def _readers_of(connection: Connection, dataset_id: str) -> Sequence[str]:
    """The names of the views that read the dataset."""
    query = (
        select(datasets.c.name)
        .join(view_inputs, view_inputs.c.view_id == datasets.c.id)
        .where(view_inputs.c.dataset_id == dataset_id)
        .order_by(datasets.c.name)
    )
    return connection.execute(query).scalars().all()


def _end_view(connection: Connection, dataset_id: str) -> None:
    """Ends the view whose dataset this is, if it is one."""
    # Views before positions, as in every transaction that changes both.
    this_view = views.c.dataset_id == dataset_id
    connection.execute(select(views.c.dataset_id).where(this_view).with_for_update())
    read = select(view_inputs.c.dataset_id).where(view_inputs.c.view_id == dataset_id)
    connection.execute(
        delete(consumers).where(
            consumers.c.dataset_id.in_(read), consumers.c.name == follower_name(dataset_id)
        )
    )
    connection.execute(delete(views).where(this_view))
