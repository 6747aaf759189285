"""Which worker processes live: each says so with every poll."""

from __future__ import annotations

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert

from app.db.session import Database
from app.jobs.tables import workers


class WorkerStore:
    """Signs of life of worker processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def polled(self, worker_id: str) -> None:
        """Notes that the worker has polled just now."""
        row = insert(workers).values(id=worker_id)
        with self._database.relay() as connection:
            connection.execute(
                row.on_conflict_do_update(index_elements=["id"], set_={"polled_at": func.clock_timestamp()})
            )

    def ended(self, worker_id: str) -> None:
        """Removes a worker that stops in order."""
        with self._database.relay() as connection:
            connection.execute(delete(workers).where(workers.c.id == worker_id))

    def alive(self, within_seconds: float) -> int:
        """How many workers polled within that time."""
        since = func.clock_timestamp() - func.make_interval(0, 0, 0, 0, 0, 0, within_seconds)
        with self._database.relay() as connection:
            return connection.execute(
                select(func.count()).select_from(workers).where(workers.c.polled_at >= since)
            ).scalar_one()
