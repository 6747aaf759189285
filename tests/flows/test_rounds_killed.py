"""`kill -9` of a worker in a round, and one that resumes after its lease: groups of several datasets that share a Spark
job happen once each, in the table and in the feed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest

from tests.support.deployment import Deployment
from tests.support.gates import Waiting
from tests.support.shares import share
from tests.support.table import Table
from tests.support.waiting import until

pytestmark = pytest.mark.stack

# The first two lead rounds of their own; the others wait meanwhile, and share the next one.
DATASETS = 6
WORKER = "first"
BEFORE = [{"id": number, "note": "before"} for number in range(100)]
WRITTEN = [{"id": number, "note": "after"} for number in range(50, 150)]
EXPECTED = {number: "before" if number < 50 else "after" for number in range(150)}
ROUND = "groups runs as"


STATEMENTS = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'headwater worker' AND state = 'active'"


@dataclass(frozen=True, kw_only=True)
class StoppedRound:
    """Writes to several datasets whose worker stands still. `job_ids`: by dataset. `committed`: those that are done.

    `sessions`: those of the worker that wait in Postgres.
    """

    job_ids: dict[str, str]
    committed: set[str]
    sessions: list[Waiting]


@pytest.fixture
def tables(new_table: Callable[..., Table]) -> list[Table]:
    """Tables of a few rows in eight buckets, so that a round takes some time."""
    made = [new_table(bucket={"count": 8}) for _ in range(DATASETS)]
    for job_id, table in [(table.submit("upsert", BEFORE), table) for table in made]:
        table.succeeded(job_id)
    return made


def submitted(tables: list[Table]) -> dict[str, str]:
    """One small write to each table: all of them are planned, and go to the engine together."""
    deployment = tables[0].deployment
    with deployment.gates.before_plan() as gate:
        job_ids = {table.id: table.submit("upsert", WRITTEN) for table in tables}
        rows = "SELECT count(*) FROM jobs WHERE id = ANY(%s::uuid[]) AND staged_rows IS NOT NULL"
        assert deployment.query(rows, list(job_ids.values())) == [(DATASETS,)], (
            "small writes have no staged file"
        )
        until(lambda: len(gate.waiting()) >= DATASETS, "all groups to be claimed", seconds_max=90)
    return job_ids


def committed(tables: list[Table]) -> set[str]:
    query = "SELECT dataset_id::text FROM commits WHERE version = 2 AND dataset_id = ANY(%s::uuid[])"
    return {found for (found,) in tables[0].deployment.query(query, [table.id for table in tables])}


@contextmanager
def during_the_shared_job(tables: list[Table]) -> Iterator[StoppedRound]:
    deployment = tables[0].deployment
    known = deployment.processes[WORKER].log().count(ROUND)
    job_ids = submitted(tables)
    until(lambda: deployment.processes[WORKER].log().count(ROUND) > known, "a round of several groups")
    deployment.processes[WORKER].freeze()
    # A COMMIT that was sent before ends by itself, and Postgres may begin it some time later.
    until(lambda: not deployment.query(STATEMENTS), "the statements of the worker to end")
    time.sleep(1)
    until(lambda: not deployment.query(STATEMENTS), "the statements of the worker to end")
    done = committed(tables)
    assert len(tables) - len(done) > 1, "the round had ended before the worker could be stopped"
    yield StoppedRound(job_ids=job_ids, committed=done, sessions=[])


@contextmanager
def between_its_commits(tables: list[Table]) -> Iterator[StoppedRound]:
    """One half of the groups has committed, and the other half waits for the heads of its datasets."""
    deployment = tables[0].deployment
    known = deployment.processes[WORKER].log().count(ROUND)
    held = tables[DATASETS // 2 :]
    with ExitStack() as stack:
        gates = [stack.enter_context(deployment.gates.at_head(table.id)) for table in held]
        job_ids = submitted(tables)
        sessions = [gate.arrival() for gate in gates]
        done = {table.id for table in tables[: DATASETS // 2]}
        until(lambda: committed(tables) == done, "the others to be committed")
        assert deployment.processes[WORKER].log().count(ROUND) > known, "no groups shared a job"
        deployment.processes[WORKER].freeze()
        yield StoppedRound(job_ids=job_ids, committed=done, sessions=sessions)


POINTS = (during_the_shared_job, between_its_commits)


def check_each_happened_once(tables: list[Table], stopped: StoppedRound) -> None:
    for table in tables:
        job = table.succeeded(stopped.job_ids[table.id])
        assert (job["committed_version"], job["rows"]["updated"], job["rows"]["inserted"]) == (2, 50, 50)
        assert job["attempts"] == (1 if table.id in stopped.committed else 2)
        assert table.version == 2
        assert {row["id"]: row["note"] for row in table.sound()} == EXPECTED
        # Each update is two changes.
        assert len(table.changes()) == 100 + 2 * 50 + 50


def check_nothing_is_left(deployment: Deployment, tables: list[Table]) -> None:
    deployment.reap()
    for table in tables:
        assert not table.orphans()
        assert {row["id"]: row["note"] for row in table.sound()} == EXPECTED


@share(4)
@pytest.mark.parametrize("point", POINTS, ids=[point.__name__ for point in POINTS])
def test_writes_of_a_round_with_a_killed_worker_happen_once_each(
    deployment: Deployment, tables: list[Table], point: Callable[..., Iterator[StoppedRound]]
) -> None:
    worker = deployment.processes[WORKER]
    worker.wait_ready()
    with deployment.frozen("second"), point(tables) as stopped:
        worker.kill()
        worker.start(wait=False)
    check_each_happened_once(tables, stopped)
    check_nothing_is_left(deployment, tables)


@share(8)
@pytest.mark.parametrize("point", POINTS, ids=[point.__name__ for point in POINTS])
def test_writes_of_a_round_whose_worker_resumes_after_its_lease_happen_once_each(
    deployment: Deployment, tables: list[Table], point: Callable[..., Iterator[StoppedRound]]
) -> None:
    worker = deployment.processes[WORKER]
    worker.wait_ready()
    known = worker.log().count("lost every job")
    try:
        with deployment.frozen("second"), point(tables) as stopped:
            for session in stopped.sessions:
                # It would otherwise come to hold the head, and wait there for a process that stands still.
                deployment.gates.cut_off(session)
        check_each_happened_once(tables, stopped)
        feeds = [table.changes() for table in tables]
    finally:
        worker.thaw()
    late = len(tables) - len(stopped.committed)
    until(
        lambda: worker.log().count("lost every job") >= known + late,
        "the late worker to notice",
        seconds_max=60,
    )
    assert [table.changes() for table in tables] == feeds
    check_nothing_is_left(deployment, tables)
