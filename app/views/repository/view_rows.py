"""What happens to views when something else does: their refreshes end, their datasets or their inputs are deleted."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, func, select, update

from app.catalog.tables import datasets
from app.consumers.tables import consumers
from app.format.errors import Fault
from app.jobs.tables import jobs
from app.views.tables import view_inputs, views
from app.views.values import follower_name


def refreshed(connection: Connection, view_id: str) -> None:
    """A refresh of the view was committed, whether or not it changed anything."""
    connection.execute(
        update(views)
        .where(views.c.dataset_id == view_id)
        .values(error=None, failures=0, attempted_at=None, refreshed_at=func.clock_timestamp())
    )


def refresh_failed(connection: Connection, job_id: str, fault: Fault | None) -> None:
    """A refresh has failed: its view says so, and is looked at again, since it may be tried again."""
    started_at = select(func.coalesce(jobs.c.started_at, func.clock_timestamp())).where(jobs.c.id == job_id)
    view_id = connection.execute(
        update(views)
        .where(views.c.dataset_id == select(jobs.c.dataset_id).where(jobs.c.id == job_id).scalar_subquery())
        .values(error=fault, failures=views.c.failures + 1, attempted_at=started_at.scalar_subquery())
        .returning(views.c.dataset_id)
    ).scalar_one_or_none()
    if view_id is not None:
        connection.execute(
            update(consumers).where(consumers.c.name == follower_name(view_id)).values(wake_at=None)
        )


def readers_of(connection: Connection, dataset_id: str) -> Sequence[str]:
    """The names of the views that read the dataset."""
    query = (
        select(datasets.c.name)
        .join(view_inputs, view_inputs.c.view_id == datasets.c.id)
        .where(view_inputs.c.dataset_id == dataset_id)
        .order_by(datasets.c.name)
    )
    return connection.execute(query).scalars().all()


def end_view(connection: Connection, dataset_id: str) -> None:
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
