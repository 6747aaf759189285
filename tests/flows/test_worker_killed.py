"""`kill -9` of a worker at every point of a write: nothing is lost, nothing doubles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import pytest

from tests.support.deployment import WORKERS, Deployment
from tests.support.gates import Gate
from tests.support.process import java_of
from tests.support.shares import share
from tests.support.table import Table
from tests.support.waiting import until

pytestmark = pytest.mark.stack

BUCKETS = 256
BEFORE = [{"id": number, "note": "before"} for number in range(1000)]
WRITTEN = [{"id": number, "note": "after"} for number in range(500, 1500)]
EXPECTED = {number: "before" if number < 500 else "after" for number in range(1500)}


@dataclass(frozen=True, kw_only=True)
class StoppedWrite:
    """A write whose worker stands still at some point."""

    job_id: str
    worker: str


@contextmanager
def before_the_claim_is_committed(table: Table) -> Iterator[StoppedWrite]:
    with table.deployment.gates.before_claim(table.id) as gate:
        job_id = table.submit("upsert", WRITTEN)
        worker = table.deployment.arrival(gate)[1]
        assert table.job(job_id)["state"] == "queued"
        yield StoppedWrite(job_id=job_id, worker=worker)


@contextmanager
def before_any_file(table: Table) -> Iterator[StoppedWrite]:
    known = table.stored()
    with table.deployment.gates.before_plan() as gate:
        job_id = table.submit("upsert", WRITTEN)
        worker = table.deployment.arrival(gate)[1]
        assert table.deployment.owner(job_id) == worker
        assert table.stored() == known
        yield StoppedWrite(job_id=job_id, worker=worker)


@contextmanager
def among_its_files(table: Table) -> Iterator[StoppedWrite]:
    known = table.stored()
    # Only in case that all files are written before the worker stands still.
    with table.deployment.gates.at_head(table.id):
        job_id = table.submit("upsert", WRITTEN)
        worker = until(lambda: table.deployment.owner(job_id), "a claim")
        until(lambda: table.stored() - known, "the first file")
        table.deployment.processes[worker].freeze()
        assert len(table.stored() - known) < 2 * BUCKETS, "all files were there before it could be stopped"
        yield StoppedWrite(job_id=job_id, worker=worker)


@contextmanager
def before_its_commit_begins(table: Table) -> Iterator[StoppedWrite]:
    with table.deployment.gates.at_head(table.id) as gate:
        job_id = table.submit("upsert", WRITTEN)
        yield StoppedWrite(job_id=job_id, worker=table.deployment.arrival(gate)[1])


@contextmanager
def beyond_the_head(
    table: Table, closing: Callable[[], AbstractContextManager[Gate]]
) -> Iterator[StoppedWrite]:
    """At a gate that accepting would run into as well, so it is closed while the worker waits at another."""
    with ExitStack() as stack:
        with table.deployment.gates.at_head(table.id) as head:
            job_id = table.submit("upsert", WRITTEN)
            session = head.arrival()
            gate = stack.enter_context(closing())
        until(lambda: session in gate.waiting(), "the commit to reach its gate")
        yield StoppedWrite(job_id=job_id, worker=table.deployment.worker_at(session.port))


def before_commit(table: Table) -> AbstractContextManager[StoppedWrite]:
    return beyond_the_head(table, table.deployment.gates.at_last_statement)


def within_commit(table: Table) -> AbstractContextManager[StoppedWrite]:
    return beyond_the_head(table, partial(table.deployment.gates.in_commit, table.id))


Point = Callable[[Table], AbstractContextManager[StoppedWrite]]
LOSING: list[tuple[Point, bool]] = [
    (before_the_claim_is_committed, False),
    (before_any_file, False),
    (among_its_files, True),
    (before_its_commit_begins, True),
    (before_commit, True),
]


@pytest.fixture
def table(new_table: Callable[..., Table]) -> Table:
    """A table of many files and some rows."""
    table = new_table(bucket={"count": BUCKETS})
    table.write("upsert", BEFORE)
    return table


def notes(table: Table) -> dict[int, str]:
    return {row["id"]: row["note"] for row in table.sound()}


def groups_of(table: Table) -> list[str]:
    """The file groups with live files."""
    query = (
        "SELECT DISTINCT file_group FROM files WHERE dataset_id = %s AND removed_version IS NULL ORDER BY 1"
    )
    return [group for (group,) in table.deployment.query(query, table.id)]


def kill(deployment: Deployment, worker: str) -> None:
    """Kills a worker; its successor starts in the background."""
    deployment.processes[worker].kill()
    deployment.processes[worker].start(wait=False)


@share(5)
@pytest.mark.parametrize(("point", "leaves_files"), LOSING, ids=[point.__name__ for point, _ in LOSING])
def test_write_with_a_killed_worker_happens_once(
    deployment: Deployment, table: Table, point: Point, leaves_files: bool
) -> None:
    with point(table) as stopped:
        kill(deployment, stopped.worker)
        assert table.version == 1
    job = table.succeeded(stopped.job_id)
    assert (job["committed_version"], job["rows"]["updated"], job["rows"]["inserted"]) == (2, 500, 500)
    assert job["attempts"] == (1 if point is before_the_claim_is_committed else 2)
    assert notes(table) == EXPECTED
    assert bool(table.orphans()) is leaves_files
    deployment.reap()
    assert not table.orphans()
    assert notes(table) == EXPECTED


@share(6)
def test_write_with_a_killed_worker_halves_its_bucket_once(
    deployment: Deployment, new_table: Callable[..., Table]
) -> None:
    table = new_table(bucket={"target_rows": len(BEFORE)})
    table.write("upsert", BEFORE)
    assert groups_of(table) == ["bucket-00000-of-1"]
    with before_its_commit_begins(table) as stopped:
        kill(deployment, stopped.worker)
        assert table.version == 1
    job = table.succeeded(stopped.job_id)
    assert (job["committed_version"], job["attempts"]) == (2, 2)
    assert groups_of(table) == ["bucket-00000-of-2", "bucket-00001-of-2"]
    assert notes(table) == EXPECTED
    deployment.reap()
    assert not table.orphans()
    assert notes(table) == EXPECTED


@share(4)
def test_write_with_a_worker_killed_during_its_commit_is_committed(
    deployment: Deployment, table: Table
) -> None:
    with within_commit(table) as stopped:
        kill(deployment, stopped.worker)
        assert table.version == 1
    job = table.succeeded(stopped.job_id)
    assert (job["committed_version"], job["attempts"]) == (2, 1)
    assert notes(table) == EXPECTED
    assert not table.orphans()
    deployment.reap()
    assert notes(table) == EXPECTED


@share(4)
def test_worker_that_resumes_after_its_lease_does_not_repeat_the_write(
    deployment: Deployment, table: Table
) -> None:
    with before_any_file(table) as stopped:
        deployment.processes[stopped.worker].freeze()
    assert table.succeeded(stopped.job_id)["attempts"] == 2
    done, changes = table.job(stopped.job_id), table.changes()
    deployment.processes[stopped.worker].thaw()
    next_job = table.write("upsert", [{"id": 0, "note": "next"}])
    until(lambda: "lost every job" in deployment.processes[stopped.worker].log(), "the late worker to notice")
    assert next_job["committed_version"] == 3
    assert table.job(stopped.job_id) == done
    assert table.changes()[: len(changes)] == changes
    assert notes(table) == EXPECTED | {0: "next"}


@share(6)
def test_late_commit_is_fenced(deployment: Deployment, table: Table) -> None:
    with deployment.gates.at_head(table.id) as gate:
        job_id = table.submit("upsert", WRITTEN)
        session = gate.arrival()
        late = deployment.worker_at(session.port)
        deployment.processes[late].freeze()
        # Its session would otherwise come to hold the head, and wait there for a process that stands still.
        deployment.gates.cut_off(session)
    done = table.succeeded(job_id)
    assert (done["committed_version"], done["attempts"]) == (2, 2)
    late_files = table.orphans()
    assert late_files
    deployment.processes[late].thaw()
    until(lambda: "the commit waits" in deployment.processes[late].log(), "the late worker to try again")
    assert table.write("upsert", [{"id": 0, "note": "next"}])["committed_version"] == 3
    assert table.job(job_id) == done
    assert notes(table) == EXPECTED | {0: "next"}
    assert late_files <= table.orphans()
    deployment.reap()
    assert not table.orphans()
    assert notes(table) == EXPECTED | {0: "next"}


@share(3)
def test_worker_with_a_killed_jvm_exits_and_another_writes(deployment: Deployment, table: Table) -> None:
    for name in WORKERS:
        deployment.processes[name].wait_ready()
    first = deployment.processes["first"]
    with deployment.frozen("second"):
        with deployment.gates.before_plan() as gate:
            job_id = table.submit("upsert", WRITTEN)
            gate.arrival()
            java_of(first.pid).kill()
        until(lambda: not first.alive, "the worker to end")
        assert "JVM has exited" in first.log()
    first.stop()
    first.start(wait=False)
    # On a busy machine the other worker's lease may run out once more, while two sessions of Spark start.
    assert table.succeeded(job_id)["attempts"] >= 2
    assert notes(table) == EXPECTED
