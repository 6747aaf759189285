"""Which worker processes live: each says so with every poll."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
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

    def polled(self, worker_id: str, still: Mapping[str, datetime] | None = None) -> None:
        """Notes that the worker has polled just now. `still`: its loops that stand still, and since when."""
        row = insert(workers).values(id=worker_id, stalled=dict(still or {}))
        changed = {"polled_at": func.clock_timestamp(), "stalled": row.excluded.stalled}
        with self._database.relay() as connection:
            connection.execute(row.on_conflict_do_update(index_elements=["id"], set_=changed))
            # Of workers that were killed.
            connection.execute(delete(workers).where(workers.c.polled_at < seconds_ago(_KEPT_SECONDS)))

    def ended(self, worker_id: str) -> None:
        """Removes a worker that stops in order."""
        with self._database.relay() as connection:
            connection.execute(delete(workers).where(workers.c.id == worker_id))

    def alive(self, within_seconds: float) -> dict[str, dict[str, datetime]]:
        """The workers that polled within that time; of each the loops that stand still, and since when."""
        query = select(workers.c.id, workers.c.stalled).where(
            workers.c.polled_at >= seconds_ago(within_seconds)
        )
        with self._database.relay() as connection:
            return {row.id: row.stalled for row in connection.execute(query)}

    def silent(self, seconds: float) -> list[str]:
        """The workers that have not polled for that time."""
        query = select(workers.c.id).where(workers.c.polled_at < seconds_ago(seconds))
        with self._database.relay() as connection:
            return list(connection.execute(query).scalars())
