"""Which worker processes live: each says so with every poll."""

from __future__ import annotations

from typing import Final

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert

from app.db.session import Database
from app.db.times import seconds_ago
from app.jobs.tables import workers

_KEPT_SECONDS: Final = 3600.0


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
            # Of workers that were killed.
            connection.execute(delete(workers).where(workers.c.polled_at < seconds_ago(_KEPT_SECONDS)))

    def ended(self, worker_id: str) -> None:
        """Removes a worker that stops in order."""
        with self._database.relay() as connection:
            connection.execute(delete(workers).where(workers.c.id == worker_id))

    def alive(self, within_seconds: float) -> int:
        """How many workers polled within that time."""
        with self._database.relay() as connection:
            return connection.execute(
                select(func.count())
                .select_from(workers)
                .where(workers.c.polled_at >= seconds_ago(within_seconds))
            ).scalar_one()
