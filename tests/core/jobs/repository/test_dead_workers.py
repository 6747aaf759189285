"""Workers that have ended: another worker frees what they hold, so that no job waits for their leases."""

from __future__ import annotations

import msgspec
import pytest
from sqlalchemy import text

from app.core.catalog.values import Dataset
from app.core.consumers.followers import ConsumerKind
from app.core.consumers.repository.followers import FollowerStore, add_follower
from app.core.jobs.kinds.kind import WriteProcess
from app.core.jobs.kinds.write import WriteRequest
from app.core.jobs.repository.processes import ProcessStore
from app.core.jobs.values import Job, JobState, ProcessKind, ProcessReport, WorkerEnd
from app.features.maintenance.repository.maintenance import MaintenanceStore
from app.features.sources.repository.rounds import RoundStore
from app.features.webhooks.repository.alert_followers import AlertFollowerStore
from app.infra.identifiers import new_id
from app.kernel.format.operation import Operation
from tests.support.lakehouse import RULES, commit_of, definition, message, new_job
from tests.support.store_fixtures import Stores
from workers.jobs.dead_workers import DeadWorkers

LEASE_SECONDS = 3600.0
WORKER = ProcessReport(kind=ProcessKind.WORKER)


@pytest.fixture
def dead(stores: Stores) -> DeadWorkers:
    return DeadWorkers(
        jobs=stores.jobs,
        others=(
            FollowerStore(stores.database),
            AlertFollowerStore(stores.database),
            tables_of(stores),
            RoundStore(stores.database, stores.catalog.live.derivations),
        ),
        workers=ProcessStore(stores.database),
        announce=lambda: None,
    )


def tables_of(stores: Stores) -> MaintenanceStore:
    return MaintenanceStore(stores.database, stores.catalog.live)


def claimed_all(stores: Stores, tenant_id: str, owner: str) -> Dataset:
    """A dataset whose write, follower and maintenance `owner` holds for an hour."""
    dataset = stores.catalog.create(tenant_id, new_id(), definition(f"d-{new_id()}"))
    first = stores.jobs.accept(tenant_id, new_job(dataset.id)).job
    [running] = stores.jobs.claim(tenant_id, dataset.id, "another", RULES)
    assert running.id == first.id
    stores.timeline.publish(tenant_id, [commit_of([running], [message(3, changes=2)])])
    with stores.database.tenant(tenant_id) as connection:
        add_follower(connection, dataset.id, "webhook:w", ConsumerKind.WEBHOOK, 0)
    stores.jobs.accept(tenant_id, new_job(dataset.id))
    assert hold(stores, dataset, owner) == (1, True, True)
    return dataset


def hold(stores: Stores, dataset: Dataset, owner: str) -> tuple[int, bool, bool]:
    """Claims what is free of a dataset: the number of writes, whether a follower, whether its maintenance."""
    tenant_id = dataset.tenant_id
    return (
        len(stores.jobs.claim(tenant_id, dataset.id, owner, RULES)),
        FollowerStore(stores.database).claim(tenant_id, dataset.id, owner, LEASE_SECONDS) is not None,
        tables_of(stores).claim(tenant_id, dataset.id, owner, LEASE_SECONDS) is not None,
    )


def test_claims_of_a_dead_worker_end_at_once_in_every_tenant_and_those_of_others_hold(
    stores: Stores, dead: DeadWorkers
) -> None:
    tenants = [stores.tenants.add_tenant(f"dead-{new_id()}") for _ in range(2)]
    lost = [claimed_all(stores, tenant_id, "dead") for tenant_id in tenants]
    held = claimed_all(stores, tenants[0], "alive")
    ProcessStore(stores.database).report("dead", WORKER)
    dead.died("dead")
    dead.died("dead")
    for dataset in lost:
        [before] = jobs_of(stores, dataset, JobState.RUNNING)
        assert hold(stores, dataset, "successor") == (1, True, True)
        after = stores.jobs.get(dataset.tenant_id, before.id)
        assert (after.epoch, after.attempts) == (before.epoch + 1, 2)
    assert hold(stores, held, "successor") == (0, False, False)
    assert "dead" not in {each.id for each in ProcessStore(stores.database).known(60)}


def jobs_of(stores: Stores, dataset: Dataset, state: JobState) -> list[Job]:
    with stores.database.tenant(dataset.tenant_id) as connection:
        query = text("SELECT id FROM jobs WHERE dataset_id = :dataset AND state = :state")
        found = connection.execute(query, {"dataset": dataset.id, "state": state.value}).scalars().all()
    return [stores.jobs.get(dataset.tenant_id, str(job_id)) for job_id in found]


def test_worker_that_stops_in_order_hands_its_jobs_over_without_an_attempt(
    stores: Stores, dead: DeadWorkers, tenant_id: str
) -> None:
    dataset = claimed_all(stores, tenant_id, "stops")
    [before] = jobs_of(stores, dataset, JobState.RUNNING)
    for _ in range(RULES.attempts_max + 1):
        dead.stopped("stops")
        assert stores.jobs.get(tenant_id, before.id).state is JobState.QUEUED
        assert hold(stores, dataset, "stops") == (1, True, True)


def test_silent_worker_keeps_its_jobs_for_their_leases_and_loses_the_rest(
    stores: Stores, dead: DeadWorkers, tenant_id: str
) -> None:
    dataset = claimed_all(stores, tenant_id, "silent")
    ProcessStore(stores.database).report("silent", WORKER)
    dead.end_silent(60)
    assert hold(stores, dataset, "successor") == (0, False, False)
    with stores.database.relay() as connection:
        connection.execute(
            text("UPDATE workers SET polled_at = polled_at - interval '61 s' WHERE id = 'silent'")
        )
    dead.end_silent(60)
    assert hold(stores, dataset, "successor") == (0, True, True)


def refresh_of(stores: Stores, tenant_id: str, name: str) -> Job:
    dataset = stores.catalog.create(tenant_id, new_id(), definition(name))
    refresh = WriteRequest(operation=Operation.SNAPSHOT, derived=True)
    return stores.jobs.accept(tenant_id, new_job(dataset.id, request=refresh)).job


def runs_in(process: WriteProcess, stores: Stores, job: Job, owner: str, *, attempts_max: int = 1) -> bool:
    """Whether the job is claimed by `owner`, which is such a process."""
    # A single attempt by default: those that a killed process ends must not count.
    rules = msgspec.structs.replace(RULES, process=process, attempts_max=attempts_max)
    return [each.id for each in stores.jobs.claim(job.tenant_id, job.dataset_id, owner, rules)] == [job.id]


def test_job_whose_process_is_killed_runs_again_isolated_and_fails_at_the_second_death(
    stores: Stores, dead: DeadWorkers, tenant_id: str
) -> None:
    deadly, beside = (refresh_of(stores, tenant_id, name) for name in ("deadly", "beside"))
    for job in (deadly, beside):
        assert runs_in(WriteProcess.DERIVED, stores, job, "derived")
    # Two others notice the death.
    dead.died("derived", WorkerEnd.KILLED)
    dead.died("derived", WorkerEnd.KILLED)
    for job in (deadly, beside):
        assert stores.jobs.next_write(tenant_id, job.dataset_id) is WriteProcess.ISOLATED
        assert not runs_in(WriteProcess.DERIVED, stores, job, "derived again")
    assert runs_in(WriteProcess.ISOLATED, stores, deadly, "isolated")
    dead.died("isolated", WorkerEnd.KILLED)
    ended = stores.jobs.get(tenant_id, deadly.id)
    assert ended.state is JobState.FAILED
    assert ended.error is not None
    assert (ended.error.code, ended.error.facts) == ("process-killed", {"deaths": 2})
    assert runs_in(WriteProcess.ISOLATED, stores, beside, "isolated again")
    assert stores.jobs.get(tenant_id, beside.id).state is JobState.RUNNING


def test_job_of_a_killed_process_is_queued_alone_and_keeps_its_attempts(
    stores: Stores, dead: DeadWorkers, tenant_id: str
) -> None:
    dataset = stores.catalog.create(tenant_id, new_id(), definition("killed"))
    killed, later = (stores.jobs.accept(tenant_id, new_job(dataset.id)).job for _ in range(2))
    single = msgspec.structs.replace(RULES, group_jobs_max=1, attempts_max=1)
    assert [each.id for each in stores.jobs.claim(tenant_id, dataset.id, "first", single)] == [killed.id]
    dead.died("first", WorkerEnd.KILLED)
    assert stores.jobs.get(tenant_id, killed.id).state is JobState.QUEUED
    # A group that it was part of would be killed with it.
    rules = msgspec.structs.replace(RULES, attempts_max=1)
    assert [each.id for each in stores.jobs.claim(tenant_id, dataset.id, "second", rules)] == [killed.id]
    assert stores.jobs.get(tenant_id, later.id).state is JobState.QUEUED


def test_death_of_a_whole_worker_is_not_counted_against_its_jobs(
    stores: Stores, dead: DeadWorkers, tenant_id: str
) -> None:
    job = refresh_of(stores, tenant_id, "lost")
    for number in range(2):
        [claimed] = stores.jobs.claim(tenant_id, job.dataset_id, f"derived-{number}", RULES)
        assert claimed.id == job.id
        dead.died(f"derived-{number}")
    assert runs_in(WriteProcess.DERIVED, stores, job, "next", attempts_max=3)
