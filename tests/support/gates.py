"""Points at which a test holds the service, by locks that only Postgres knows of.

The service's code has no part in it: it waits as it would for any other transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

import psycopg
from psycopg import sql

from tests.support.waiting import until

_SCHEMA = """
CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(to_jsonb(NEW) ->> TG_ARGV[0], 0));
    RETURN NEW;
END $$;
CREATE CONSTRAINT TRIGGER commit_of_version AFTER INSERT ON commits
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION gate('dataset_id');
CREATE CONSTRAINT TRIGGER commit_of_job AFTER INSERT ON jobs
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION gate('dataset_id');
CREATE TRIGGER success_of_job BEFORE UPDATE OF state ON jobs
    FOR EACH ROW WHEN (NEW.state = 'succeeded') EXECUTE FUNCTION gate('id');
"""


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A session of the service that waits at a gate: the server's process, and the port it comes from."""

    pid: int
    port: int


@dataclass(frozen=True, kw_only=True)
class Gate:
    """A lock held by the test's own session, whose process on the server is `pid`."""

    owner_url: str
    pid: int

    def waiting(self, application: str = "headwater worker") -> list[Waiting]:
        """The sessions of an application that wait for this lock or behind one that does, first come first."""
        query = """WITH RECURSIVE behind(pid) AS (
                SELECT %s::int UNION
                SELECT a.pid FROM pg_stat_activity a JOIN behind b ON b.pid = ANY(pg_blocking_pids(a.pid)))
            SELECT pid, client_port FROM pg_stat_activity JOIN behind USING (pid)
            WHERE application_name = %s ORDER BY query_start"""
        with psycopg.connect(self.owner_url) as connection:
            found = connection.execute(query, [self.pid, application]).fetchall()
        return [Waiting(pid=pid, port=port) for pid, port in found]

    def arrival(self, application: str = "headwater worker") -> Waiting:
        """The first session of the application to wait here, once there is one."""
        return until(lambda: self.waiting(application), f"{application} to reach the gate", seconds_max=90)[0]


class Gates:
    """Locks that the service runs into. Each holds until its context is left."""

    def __init__(self, owner_url: str) -> None:
        self._owner_url = owner_url

    @classmethod
    @contextmanager
    def at(cls, owner_url: str) -> Iterator[Self]:
        """Adds the triggers that make a COMMIT wait."""
        with psycopg.connect(owner_url, autocommit=True) as connection:
            connection.execute(_SCHEMA)
        yield cls(owner_url)

    @contextmanager
    def before_claim(self, dataset_id: str) -> Iterator[Gate]:
        """Accepting goes on; claiming waits."""
        with self._locked("SELECT FROM datasets WHERE id = %s FOR NO KEY UPDATE", dataset_id) as gate:
            yield gate

    @contextmanager
    def before_plan(self) -> Iterator[Gate]:
        """A worker that has claimed waits when it reads which files are live; in every dataset."""
        with self._locked("LOCK TABLE files IN ACCESS EXCLUSIVE MODE") as gate:
            yield gate

    @contextmanager
    def at_head(self, dataset_id: str) -> Iterator[Gate]:
        """The commit transaction waits for the head row, its first lock."""
        with self._locked("SELECT FROM heads WHERE dataset_id = %s FOR UPDATE", dataset_id) as gate:
            yield gate

    @contextmanager
    def at_last_statement(self) -> Iterator[Gate]:
        """The commit transaction waits at its last statement; accepting waits too, in every dataset."""
        with self._locked("LOCK TABLE outbox IN SHARE MODE") as gate:
            yield gate

    @contextmanager
    def in_commit(self, dataset_id: str) -> Iterator[Gate]:
        """COMMIT was sent and is under way: that of a version, and that of accepting a job."""
        with self._locked("SELECT pg_advisory_lock(hashtextextended(%s, 0))", dataset_id) as gate:
            yield gate

    @contextmanager
    def at_success(self, job_id: str) -> Iterator[Gate]:
        """The commit transaction of a group with this job waits where the job is to succeed."""
        with self._locked("SELECT pg_advisory_lock(hashtextextended(%s, 0))", job_id) as gate:
            yield gate

    def cut_off(self, session: Waiting) -> None:
        """Ends a session on the server's side."""
        with psycopg.connect(self._owner_url) as connection:
            connection.execute("SELECT pg_terminate_backend(%s)", [session.pid])

    @contextmanager
    def _locked(self, statement: str, *values: str) -> Iterator[Gate]:
        with psycopg.connect(self._owner_url) as connection:
            connection.execute(sql.SQL(statement), values)  # type: ignore[arg-type]
            yield Gate(owner_url=self._owner_url, pid=connection.info.backend_pid)
            connection.rollback()
