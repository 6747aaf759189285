"""Which process does a task for all: the one that has its lease."""

from __future__ import annotations

from sqlalchemy import func, or_
from sqlalchemy.dialects.postgresql import insert

from app.features.monitoring.tables import leaders
from app.infra.db.session import Database
from app.infra.db.times import lease_end


class LeaderStore:
    """Leases of tasks in Postgres. They end by its clock, also where the process stands still."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def lead(self, task: str, owner: str, *, lease_seconds: float) -> bool:
        """Takes or extends the lease; False if another process has it."""
        row = insert(leaders).values(task=task, owner=owner, lease_until=lease_end(lease_seconds))
        free = or_(leaders.c.owner == row.excluded.owner, leaders.c.lease_until < func.clock_timestamp())
        taken = row.on_conflict_do_update(
            index_elements=["task"],
            set_={"owner": row.excluded.owner, "lease_until": row.excluded.lease_until},
            where=free,
        )
        with self._database.relay() as connection:
            return connection.execute(taken.returning(leaders.c.task)).one_or_none() is not None
