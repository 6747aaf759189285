"""Turns: table services publish between two groups of writes, and keep others waiting for moments only."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec
import pytest
from sqlalchemy import text

from app.core.catalog.values import Dataset
from app.core.jobs.kinds.rewrite import CompactionTask
from app.core.jobs.values import Job, JobState, NewJob
from app.core.timeline.values import Fenced, NewCommit, Published, WritesRunning
from app.features.maintenance.service.publish_in_slot import PublishInSlot, SlotRules
from app.features.transactions.values import NewTransaction
from app.infra.identifiers import new_id, new_instant_id
from app.kernel.commit.commit_message import CommitMessage, Reads
from app.kernel.commit.conflict import Conflicted
from app.kernel.format.instant import Action, RowCounts
from tests.support.lakehouse import RULES, claim_of, commit_of, data_file, definition, message, new_job
from tests.support.store_fixtures import Stores

MANY = msgspec.structs.replace(RULES, dataset_writers_max=4, group_jobs_max=1)
LONG = 30.0


@pytest.fixture
def service(stores: Stores, tenant_id: str, dataset: Dataset) -> Callable[[], Job]:
    """Accepts a compaction and claims it."""

    def run() -> Job:
        new = NewJob(
            id=new_id(), instant_id=new_instant_id(), dataset_id=dataset.id, request=CompactionTask()
        )
        stores.jobs.accept(tenant_id, new)
        job = stores.jobs.claim_task(tenant_id, dataset.id, "worker", RULES)
        assert job is not None
        return job

    return run


def rewritten(job: Job, *messages: CommitMessage, read_version: int = 0) -> NewCommit:
    """The commit of a service."""
    commit = commit_of([job], messages, read_version=read_version, counts=[RowCounts()])
    return msgspec.structs.replace(commit, action=Action.COMPACTION)


def compaction_message(*removed: str, bucket: int = 0) -> CommitMessage:
    return msgspec.structs.replace(message(bucket, changes=0), reads=Reads.FILES, removed=removed)


def test_service_publishes_while_no_write_runs_and_its_job_ends(
    stores: Stores, tenant_id: str, dataset: Dataset, service: Callable[[], Job]
) -> None:
    job = service()
    outcome = stores.timeline.publish_in_slot(tenant_id, rewritten(job, compaction_message()), LONG)
    assert isinstance(outcome, Published)
    ended = stores.jobs.get(tenant_id, job.id)
    assert (ended.state, ended.committed_version) == (JobState.SUCCEEDED, 1)


def test_commit_slot_waits_for_running_writes_and_blocks_new_claims(
    stores: Stores,
    tenant_id: str,
    dataset: Dataset,
    service: Callable[[], Job],
    running: Callable[[], Job],
    accept: Callable[[], Job],
    claim: Callable[..., list[Job]],
) -> None:
    job, write = service(), running()
    commit = rewritten(job, compaction_message())
    assert stores.timeline.publish_in_slot(tenant_id, commit, 0.0) == WritesRunning(groups=1)
    accept()
    [beside] = claim(MANY)
    assert stores.timeline.publish_in_slot(tenant_id, commit, LONG) == WritesRunning(groups=2)
    accept()
    assert claim(MANY) == []
    stores.timeline.publish_one(tenant_id, commit_of([write], [message(1)]))
    stores.timeline.publish_one(tenant_id, commit_of([beside], [message(2)], read_version=0))
    assert claim(MANY) == []
    assert isinstance(stores.timeline.publish_in_slot(tenant_id, commit, LONG), Published)
    with stores.database.tenant(tenant_id) as connection:
        slot_query = text("SELECT turn_until FROM heads WHERE dataset_id = :id")
        assert connection.execute(slot_query, {"id": dataset.id}).scalar_one() is None
    assert len(claim(MANY)) == 1


def test_commit_slot_expires_and_can_be_released(
    stores: Stores,
    tenant_id: str,
    dataset: Dataset,
    service: Callable[[], Job],
    running: Callable[[], Job],
    accept: Callable[[], Job],
    claim: Callable[..., list[Job]],
) -> None:
    job = service()
    running()
    commit = rewritten(job, compaction_message())
    accept()
    assert stores.timeline.publish_in_slot(tenant_id, commit, 0.2) == WritesRunning(groups=1)
    assert claim(MANY) == []
    time.sleep(0.25)
    assert len(claim(MANY)) == 1
    accept()
    assert stores.timeline.publish_in_slot(tenant_id, commit, LONG) == WritesRunning(groups=2)
    assert claim(MANY) == []
    stores.timeline.release_slot(tenant_id, dataset.id)
    assert len(claim(MANY)) == 1


def test_transaction_waits_for_the_commit_slot_of_any_of_its_datasets(
    stores: Stores, tenant_id: str, dataset: Dataset, service: Callable[[], Job], running: Callable[[], Job]
) -> None:
    other = stores.catalog.create(tenant_id, new_id(), definition("others"))
    job, write = service(), running()
    commit = rewritten(job, compaction_message())
    assert stores.timeline.publish_in_slot(tenant_id, commit, LONG) == WritesRunning(groups=1)
    stores.timeline.publish_one(tenant_id, commit_of([write], [message(1)]))
    stores.transactions.accept(
        tenant_id,
        NewTransaction(id=new_id(), jobs=(new_job(dataset.id), new_job(other.id)), request_hash="h"),
    )
    assert stores.jobs.claim(tenant_id, other.id, "worker", RULES) == []
    assert isinstance(stores.timeline.publish_in_slot(tenant_id, commit, LONG), Published)
    assert len(stores.jobs.claim(tenant_id, other.id, "worker", RULES)) == 2


def test_fenced_service_neither_publishes_nor_blocks_writes(
    stores: Stores,
    tenant_id: str,
    service: Callable[[], Job],
    running: Callable[[], Job],
    accept: Callable[[], Job],
    claim: Callable[..., list[Job]],
) -> None:
    job = service()
    running()
    stores.jobs.cancel(tenant_id, job.id)
    accept()
    outcome = stores.timeline.publish_in_slot(tenant_id, rewritten(job, compaction_message()), LONG)
    assert outcome == Fenced(valid_ids=frozenset())
    assert len(claim(MANY)) == 1


def test_service_without_changes_publishes_without_a_slot(
    stores: Stores, tenant_id: str, service: Callable[[], Job], running: Callable[[], Job]
) -> None:
    job = service()
    running()
    outcome = stores.timeline.publish_in_slot(tenant_id, rewritten(job), LONG)
    assert outcome == Published(version=0, first_offset=0, next_offset=0)
    assert stores.jobs.get(tenant_id, job.id).committed_version == 0


def test_only_replaced_files_conflict_in_a_slot(
    stores: Stores, tenant_id: str, dataset: Dataset, service: Callable[[], Job], running: Callable[[], Job]
) -> None:
    old, kept = data_file(0), data_file(0)
    first = msgspec.structs.replace(message(0), added=(old, kept))
    stores.timeline.publish_one(tenant_id, commit_of([running()], [first]))
    job = service()
    # Beside what it replaces, files come and go.
    stores.timeline.publish_one(
        tenant_id, commit_of([running()], [message(0, removed=[kept])], read_version=1)
    )
    commit = rewritten(job, compaction_message(old.path), read_version=1)
    with_lost = rewritten(job, compaction_message(old.path, kept.path), read_version=1)
    outcome = stores.timeline.publish_in_slot(tenant_id, with_lost, LONG)
    assert isinstance(outcome, Conflicted)
    assert (outcome.file_groups, outcome.head_version) == ((old.file_group,), 2)
    assert isinstance(stores.timeline.publish_in_slot(tenant_id, commit, LONG), Published)
    live = {file.path for file in stores.timeline.live_files(tenant_id, dataset.id, 3, None)}
    assert old.path not in live


def test_log_without_lookups_never_conflicts(
    stores: Stores, tenant_id: str, running: Callable[[], Job]
) -> None:
    first, second = running(), None
    stores.timeline.publish_one(tenant_id, commit_of([first], [message(0)]))
    second = running()
    blind = msgspec.structs.replace(message(0), reads=Reads.NOTHING)
    assert isinstance(stores.timeline.publish_one(tenant_id, commit_of([second], [blind])), Published)


def test_services_get_commit_slots_beside_racing_writers_without_deadlock(
    stores: Stores, tenant_id: str, dataset: Dataset, service: Callable[[], Job]
) -> None:
    """Writers claim and publish as fast as they can; one of them brings schemas, so that all three locks are used."""
    stop, errors, written = threading.Event(), [], []
    rules = msgspec.structs.replace(RULES, dataset_writers_max=2, group_jobs_max=1)

    def write(bucket: int) -> None:
        try:
            while not stop.is_set():
                stores.jobs.accept(tenant_id, new_job(dataset.id))
                jobs = stores.jobs.claim(tenant_id, dataset.id, "worker", rules)
                if not jobs:
                    continue
                at = stores.catalog.get(tenant_id, dataset.id)
                commit = commit_of(jobs, [message(bucket)], read_version=at.version)
                evolved = at.definition
                if bucket == 0:
                    schema = msgspec.structs.replace(evolved.schema, id=evolved.schema.id + 1)
                    evolved = msgspec.structs.replace(evolved, schema=schema)
                    commit = msgspec.structs.replace(commit, definition=evolved)
                commit = msgspec.structs.replace(commit, schema_id=at.definition.schema.id)
                outcome = stores.timeline.publish_one(tenant_id, commit)
                if isinstance(outcome, Published):
                    written.append(outcome.version)
                else:
                    stores.jobs.release(tenant_id, [claim_of(job) for job in jobs])
        except Exception as error:
            errors.append(error)
            stop.set()

    threads = [threading.Thread(target=write, args=(bucket,)) for bucket in range(3)]
    for thread in threads:
        thread.start()
    publisher = PublishInSlot(
        timeline=stores.timeline, writers_max=2, rules=SlotRules(slot_seconds=LONG, pause_seconds=0.1)
    )
    try:
        for _ in range(5):
            job = service()
            at = stores.catalog.get(tenant_id, dataset.id)
            commit = rewritten(job, compaction_message(bucket=9), read_version=at.version)
            commit = msgspec.structs.replace(commit, schema_id=at.definition.schema.id)
            outcome = publisher.run(tenant_id, commit)
            if isinstance(outcome, Conflicted):
                # A schema came in between: planned again, it is published in the same turn.
                now = stores.catalog.get(tenant_id, dataset.id)
                commit = msgspec.structs.replace(
                    commit, read_version=now.version, schema_id=now.definition.schema.id
                )
                outcome = publisher.run(tenant_id, commit)
            assert isinstance(outcome, Published), outcome
            publisher.end(tenant_id, dataset.id)
    finally:
        stop.set()
        for thread in threads:
            thread.join(20)
    assert not errors, errors
    assert len(written) > 5
