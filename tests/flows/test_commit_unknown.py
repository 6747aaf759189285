"""The answer to COMMIT is lost: the outcome is found, and happens once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.support.deployment import Deployment
from tests.support.gates import Waiting
from tests.support.table import Table
from tests.support.waiting import until

pytestmark = pytest.mark.stack


@contextmanager
def committing(table: Table) -> Iterator[tuple[str, Waiting]]:
    """A write whose COMMIT is under way: its job, and the session that commits."""
    gates = table.deployment.gates
    with ExitStack() as stack:
        with gates.at_head(table.id) as head:
            job_id = table.submit("insert", [{"id": 1, "note": "once"}])
            session = head.arrival()
            gate = stack.enter_context(gates.in_commit(table.id))
        until(lambda: session in gate.waiting(), "COMMIT to be under way")
        yield job_id, session


def queries_outcome(deployment: Deployment, session: Waiting) -> bool:
    """Whether another session waits for what the committing one holds: the head row."""
    query = "SELECT FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"
    return bool(deployment.query(query, session.pid))


def test_commit_with_a_lost_response_is_found(deployment: Deployment, table: Table) -> None:
    with committing(table) as (job_id, session):
        deployment.proxies[deployment.worker_at(session.port)].cut(session.port)
        until(lambda: queries_outcome(deployment, session), "the worker to ask for the outcome")
        assert table.job(job_id)["state"] == "running"
    job = table.succeeded(job_id)
    assert (job["committed_version"], job["attempts"]) == (1, 1)
    assert table.sound() == [{"id": 1, "note": "once"}]
    assert not table.orphans()


def test_commit_that_did_not_happen_is_retried(deployment: Deployment, table: Table) -> None:
    with committing(table) as (job_id, session):
        deployment.gates.cut_off(session)
        ended = "SELECT FROM pg_stat_activity WHERE pid = %s"
        until(lambda: not deployment.query(ended, session.pid), "the session to end")
    job = table.succeeded(job_id)
    assert (job["committed_version"], job["attempts"]) == (1, 1)
    assert table.sound() == [{"id": 1, "note": "once"}]
    assert not table.orphans()


def test_write_survives_a_kill_of_postgres_during_its_commit(deployment: Deployment, table: Table) -> None:
    with ExitStack() as lost:
        job_id, _ = lost.enter_context(committing(table))
        deployment.processes["postgres"].kill()
        deployment.processes["postgres"].start()
        lost.pop_all()
    job = table.succeeded(job_id)
    assert job["committed_version"] == 1
    assert table.sound() == [{"id": 1, "note": "once"}]
    deployment.reap()
    assert not table.orphans()


def test_write_survives_a_kill_of_postgres_before_its_commit(deployment: Deployment, table: Table) -> None:
    with ExitStack() as lost:
        gate = lost.enter_context(deployment.gates.at_head(table.id))
        job_id = table.submit("insert", [{"id": 1, "note": "once"}])
        gate.arrival()
        deployment.processes["postgres"].kill()
        deployment.processes["postgres"].start()
        lost.pop_all()
    assert table.succeeded(job_id)["committed_version"] == 1
    assert table.sound() == [{"id": 1, "note": "once"}]
    deployment.reap()
    assert not table.orphans()
