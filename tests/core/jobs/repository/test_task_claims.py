"""Tasks: jobs that run beside the writes of their dataset, each held by one worker."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
import pytest
from sqlalchemy import text

from app.core.catalog.values import Dataset
from app.core.jobs.errors import JobNotCancellable
from app.core.jobs.kinds.declared import AnyTask
from app.core.jobs.kinds.export import ExportTask
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.kinds.verification import VerifyTask
from app.core.jobs.values import ClaimRules, Job, JobQueue, JobState, NewJob, Progress, RunnableDataset
from app.infra.identifiers import new_id
from app.kernel.format.errors import Fault
from tests.support.lakehouse import RULES, commit_of, message
from tests.support.store_fixtures import Stores
from tests.support.threads import together

BRIEF = msgspec.structs.replace(RULES, lease_seconds=0.05)
FAULT = Fault(code="corrupt-file", title="t", detail="d")


@pytest.fixture
def accept_task(stores: Stores, tenant_id: str, dataset: Dataset) -> Callable[..., Job]:
    """Accepts one more task of the dataset."""

    def run(task: AnyTask | None = None) -> Job:
        task = task or VerifyTask(version=3)
        return stores.jobs.accept(tenant_id, NewJob(id=new_id(), dataset_id=dataset.id, request=task)).job

    return run


@pytest.fixture
def claim_task(stores: Stores, tenant_id: str, dataset: Dataset) -> Callable[..., Job | None]:
    def run(rules: ClaimRules = RULES, owner: str = "worker") -> Job | None:
        return stores.jobs.claim_task(tenant_id, dataset.id, owner, rules)

    return run


def taken(claim_task: Callable[..., Job | None], rules: ClaimRules = RULES) -> Job:
    job = claim_task(rules)
    assert job is not None
    return job


def test_task_is_accepted_without_an_instant(
    stores: Stores, tenant_id: str, dataset: Dataset, accept_task: Callable[..., Job]
) -> None:
    export = accept_task(ExportTask(export_id="e", number=7))
    assert (export.kind, export.state, export.instant_id) == (JobKind.EXPORT, JobState.QUEUED, None)
    assert export.request == ExportTask(export_id="e", number=7)
    assert accept_task().kind is JobKind.VERIFICATION
    assert stores.jobs.get(tenant_id, export.id) == export
    assert stores.timeline.instants(tenant_id, dataset.id, page_size=5, page_token=None).items == []


def test_queues_of_writes_and_tasks_do_not_wait_for_each_other(
    stores: Stores,
    tenant_id: str,
    dataset: Dataset,
    accept: Callable[[], Job],
    accept_task: Callable[..., Job],
    claim: Callable[..., list[Job]],
    claim_task: Callable[..., Job | None],
) -> None:
    first_task, first_write = accept_task(), accept()
    assert [job.id for job in claim()] == [first_write.id]
    assert taken(claim_task).id == first_task.id
    # One group of writes at a time; its running task does not count.
    second_task, second_write = accept_task(), accept()
    assert claim() == []
    assert taken(claim_task).id == second_task.id
    stores.jobs.fail(tenant_id, stores.jobs.get(tenant_id, first_write.id).claim, FAULT)
    assert [job.id for job in claim()] == [second_write.id]
    assert claim_task() is None


def test_runnable_datasets_are_listed_per_queue(
    stores: Stores,
    tenant_id: str,
    dataset: Dataset,
    accept: Callable[[], Job],
    accept_task: Callable[..., Job],
    claim: Callable[..., list[Job]],
    claim_task: Callable[..., Job | None],
) -> None:
    here = RunnableDataset(tenant_id=tenant_id, dataset_id=dataset.id)

    def queues() -> set[JobQueue]:
        return {queue for queue in JobQueue if here in stores.jobs.runnable(10_000, queue)}

    assert queues() == set()
    accept_task()
    assert queues() == {JobQueue.TASKS}
    accept()
    assert queues() == {JobQueue.TASKS, JobQueue.WRITES}
    claim_task()
    assert queues() == {JobQueue.WRITES}
    claim()
    assert queues() == set()
    with stores.database.tenant(tenant_id) as connection:
        connection.execute(text("UPDATE jobs SET lease_until = clock_timestamp() WHERE lane = 'tasks'"))
    assert queues() == {JobQueue.TASKS}, "its attempt has died"


def test_tasks_are_claimed_one_by_one_oldest_first(
    accept_task: Callable[..., Job], claim_task: Callable[..., Job | None]
) -> None:
    accepted = [accept_task().id for _ in range(3)]
    assert [taken(claim_task).id for _ in accepted] == accepted
    assert claim_task() is None


def test_racing_workers_never_share_a_task(
    accept_task: Callable[..., Job], claim_task: Callable[..., Job | None]
) -> None:
    accepted = {accept_task().id for _ in range(4)}
    found = [job for job in together([claim_task] * 8) if job is not None]
    assert len(found) == len({job.id for job in found})
    # A racer may have passed by a task that another was about to take.
    while job := claim_task():
        found.append(job)
    assert sorted(job.id for job in found) == sorted(accepted)
    assert {(job.epoch, job.attempts, job.state) for job in found} == {(1, 1, JobState.RUNNING)}


def test_task_of_a_dead_worker_is_claimed_again(
    stores: Stores, tenant_id: str, accept_task: Callable[..., Job], claim_task: Callable[..., Job | None]
) -> None:
    accept_task()
    dead = taken(claim_task, BRIEF)
    time.sleep(0.1)
    alive = taken(claim_task)
    assert (alive.id, alive.attempts) == (dead.id, 2)
    assert alive.epoch > dead.epoch
    beat = {"lease_seconds": 30.0, "progress": Progress(stage="verify")}
    assert stores.jobs.heartbeat(tenant_id, [dead.claim], **beat) == set()
    assert not stores.jobs.succeed(tenant_id, dead.claim, {"by": "dead"})
    assert not stores.jobs.fail(tenant_id, dead.claim, FAULT)
    stores.jobs.release(tenant_id, [dead.claim])
    assert stores.jobs.heartbeat(tenant_id, [alive.claim], **beat) == {alive.id}
    assert stores.jobs.succeed(tenant_id, alive.claim, {"by": "alive"})
    assert not stores.jobs.succeed(tenant_id, alive.claim, {"by": "alive again"})
    ended = stores.jobs.get(tenant_id, alive.id)
    assert (ended.state, ended.result, ended.committed_version) == (JobState.SUCCEEDED, {"by": "alive"}, None)
    assert ended.finished_at is not None


def test_task_fails_after_its_last_attempt(
    stores: Stores, tenant_id: str, accept_task: Callable[..., Job], claim_task: Callable[..., Job | None]
) -> None:
    given_up, next_one = accept_task(), accept_task()
    for _ in range(RULES.attempts_max):
        job = taken(claim_task)
        assert job.id == given_up.id
        stores.jobs.release(tenant_id, [job.claim])
    assert taken(claim_task).id == next_one.id
    failed = stores.jobs.get(tenant_id, given_up.id)
    assert failed.state is JobState.FAILED
    assert failed.error is not None
    assert failed.error.code == "attempts-exhausted"
    assert failed.error.facts == {"attempts": RULES.attempts_max}


def test_waiting_or_running_task_can_be_cancelled(
    stores: Stores, tenant_id: str, accept_task: Callable[..., Job], claim_task: Callable[..., Job | None]
) -> None:
    accept_task()
    running, waiting = taken(claim_task), accept_task()
    for job in (running, waiting):
        assert stores.jobs.cancel(tenant_id, job.id).state is JobState.CANCELLED
        with pytest.raises(JobNotCancellable):
            stores.jobs.cancel(tenant_id, job.id)
    assert not stores.jobs.succeed(tenant_id, running.claim, {})
    assert claim_task() is None


def test_tasks_are_cancelled_with_their_dataset(
    stores: Stores,
    tenant_id: str,
    dataset: Dataset,
    accept_task: Callable[..., Job],
    claim_task: Callable[..., Job | None],
) -> None:
    accept_task()
    jobs = [taken(claim_task), accept_task()]
    stores.catalog.delete(tenant_id, dataset.id, version=None)
    assert {stores.jobs.get(tenant_id, job.id).state for job in jobs} == {JobState.CANCELLED}
    assert claim_task() is None


def test_failed_task_keeps_its_error_and_fails_no_write(
    stores: Stores,
    tenant_id: str,
    accept: Callable[[], Job],
    accept_task: Callable[..., Job],
    claim: Callable[..., list[Job]],
    claim_task: Callable[..., Job | None],
) -> None:
    accept_task(), accept()
    task, [write] = taken(claim_task), claim()
    assert stores.jobs.fail(tenant_id, task.claim, FAULT)
    assert stores.jobs.get(tenant_id, task.id).error == FAULT
    published = stores.timeline.publish_one(tenant_id, commit_of([write], [message()]))
    assert stores.jobs.get(tenant_id, write.id).state is JobState.SUCCEEDED, published


def test_claim_of_a_task_does_not_wait_for_a_commit(
    stores: Stores,
    dataset: Dataset,
    accept_task: Callable[..., Job],
    claim_task: Callable[..., Job | None],
) -> None:
    """Neither for one that holds the head, nor for a claim of writes, which holds the dataset."""
    accept_task()
    with stores.database.tenant(dataset.tenant_id) as connection:
        connection.exec_driver_sql("SELECT FROM heads FOR UPDATE")
        connection.exec_driver_sql("SELECT FROM datasets FOR NO KEY UPDATE")
        assert claim_task() is not None
