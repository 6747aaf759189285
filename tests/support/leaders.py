"""The ends of leases, so that another process leads at once."""

from __future__ import annotations

from sqlalchemy import delete

from app.features.monitoring.tables import leaders
from app.infra.db.session import Database


def end_lease(database: Database, task: str) -> None:
    """Ends the lease of a task, as its time does."""
    with database.relay() as connection:
        connection.execute(delete(leaders).where(leaders.c.task == task))
