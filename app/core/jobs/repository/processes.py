"""The register of the processes of the service: each reports that it lives, and how it is."""

from __future__ import annotations

from typing import Final

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert

from app.core.jobs.tables import workers
from app.core.jobs.values import KnownProcess, ProcessKind, ProcessReport
from app.infra.db.session import Database
from app.infra.db.times import seconds_ago

POLLS_MISSED_MAX: Final = 3
"""A process reports with each poll, and counts as gone once it has missed this number of them."""
_KEPT_SECONDS: Final = 600.0


class ProcessStore:
    """The register of processes. A process that stops in order removes itself.

    Workers remove those that do not report any more, or the next report does, after ten minutes. `has_schema`: whether
    the database has taken a report or shown the register, and so has the schema of this release.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.has_schema = False

    def report(self, process_id: str, report: ProcessReport) -> None:
        """Notes that the process lives."""
        values = {
            "stalled": dict(report.still),
            "faults": dict(report.faults),
            "executors": report.executors,
            "disk_free_bytes": report.disk_free_bytes,
            "disk_total_bytes": report.disk_total_bytes,
            "disk_folder": report.disk_folder,
            "resident_bytes": report.resident_bytes,
        }
        row = insert(workers).values(
            id=process_id,
            kind=report.kind.value,
            host=report.host,
            pid=report.pid,
            version=report.version,
            **values,
        )
        changes = {"polled_at": func.clock_timestamp()} | {name: row.excluded[name] for name in values}
        with self._database.relay() as connection:
            connection.execute(row.on_conflict_do_update(index_elements=["id"], set_=changes))
            # Of processes that were killed.
            connection.execute(delete(workers).where(workers.c.polled_at < seconds_ago(_KEPT_SECONDS)))
        self.has_schema = True

    def ended(self, process_id: str) -> None:
        """Removes a process that stops in order."""
        with self._database.relay() as connection:
            connection.execute(delete(workers).where(workers.c.id == process_id))

    def known(self, within_seconds: float = _KEPT_SECONDS) -> list[KnownProcess]:
        """The processes that reported within that time, the oldest first."""
        silent = func.extract("epoch", func.clock_timestamp() - workers.c.polled_at).label("silent_seconds")
        query = select(workers, silent).where(workers.c.polled_at >= seconds_ago(within_seconds))
        with self._database.relay() as connection:
            rows = connection.execute(query.order_by(workers.c.started_at, workers.c.id)).all()
        self.has_schema = True
        return [
            KnownProcess(
                id=row.id,
                started_at=row.started_at,
                seen_at=row.polled_at,
                silent_seconds=float(row.silent_seconds),
                report=ProcessReport(
                    kind=ProcessKind(row.kind),
                    host=row.host,
                    pid=row.pid,
                    version=row.version,
                    still=row.stalled,
                    faults=row.faults,
                    executors=row.executors,
                    disk_free_bytes=row.disk_free_bytes,
                    disk_total_bytes=row.disk_total_bytes,
                    disk_folder=row.disk_folder,
                    resident_bytes=row.resident_bytes,
                ),
            )
            for row in rows
        ]

    def silent(self, seconds: float) -> list[str]:
        """The processes that have not reported for that time."""
        query = select(workers.c.id).where(workers.c.polled_at < seconds_ago(seconds))
        with self._database.relay() as connection:
            return list(connection.execute(query).scalars())
