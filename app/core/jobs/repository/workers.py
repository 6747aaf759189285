"""Which worker processes live: each says so with every poll."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec
from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert

from app.core.jobs.tables import workers
from app.infra.db.session import Database
from app.infra.db.times import seconds_ago

_KEPT_SECONDS: Final = 3600.0


class LiveWorker(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker has reported. `still`: its loops that stand still, and since when.

    `executors`: the number that it has on a cluster; None where Spark runs in the worker.
    """

    still: dict[str, datetime]
    executors: int | None


class WorkerStore:
    """Signs of life of worker processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def polled(
        self, worker_id: str, still: Mapping[str, datetime] | None = None, executors: int | None = None
    ) -> None:
        """Notes that the worker has polled just now. `still`: its loops that stand still, and since when.

        `executors`: the number that it has on a cluster; None where Spark runs in the worker.
        """
        row = insert(workers).values(id=worker_id, stalled=dict(still or {}), executors=executors)
        changes = {
            "polled_at": func.clock_timestamp(),
            "stalled": row.excluded.stalled,
            "executors": row.excluded.executors,
        }
        with self._database.relay() as connection:
            connection.execute(row.on_conflict_do_update(index_elements=["id"], set_=changes))
            # Of workers that were killed.
            connection.execute(delete(workers).where(workers.c.polled_at < seconds_ago(_KEPT_SECONDS)))

    def ended(self, worker_id: str) -> None:
        """Removes a worker that stops in order."""
        with self._database.relay() as connection:
            connection.execute(delete(workers).where(workers.c.id == worker_id))

    def alive(self, within_seconds: float) -> dict[str, LiveWorker]:
        """The workers that polled within that time, by id."""
        query = select(workers.c.id, workers.c.stalled, workers.c.executors).where(
            workers.c.polled_at >= seconds_ago(within_seconds)
        )
        with self._database.relay() as connection:
            return {
                row.id: LiveWorker(still=row.stalled, executors=row.executors)
                for row in connection.execute(query)
            }

    def silent(self, seconds: float) -> list[str]:
        """The workers that have not polled for that time."""
        query = select(workers.c.id).where(workers.c.polled_at < seconds_ago(seconds))
        with self._database.relay() as connection:
            return list(connection.execute(query).scalars())
