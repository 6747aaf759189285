"""Workers that have ended: another worker frees what they hold, so that no job waits for their leases."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from app.catalog.values import Dataset
from app.consumers.followers import ConsumerKind
from app.consumers.repository.followers import FollowerStore, add_follower
from app.format.identifiers import new_id
from app.jobs.repository.workers import WorkerStore
from app.jobs.values import Job, JobState
from app.maintenance.repository.maintenance import MaintenanceStore
from tests.support.lakehouse import RULES, commit_of, definition, message, new_job
from tests.support.store_fixtures import Stores
from workers.jobs.dead_workers import DeadWorkers

LEASE_SECONDS = 3600.0


@pytest.fixture
def dead(stores: Stores) -> DeadWorkers:
    return DeadWorkers(
        jobs=stores.jobs,
        followers=FollowerStore(stores.database),
        tables=tables_of(stores),
        workers=WorkerStore(stores.database),
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
    WorkerStore(stores.database).polled("dead")
    dead.died("dead")
    dead.died("dead")
    for dataset in lost:
        [before] = jobs_of(stores, dataset, JobState.RUNNING)
        assert hold(stores, dataset, "successor") == (1, True, True)
        after = stores.jobs.get(dataset.tenant_id, before.id)
        assert (after.epoch, after.attempts) == (before.epoch + 1, 2)
    assert hold(stores, held, "successor") == (0, False, False)
    assert "dead" not in WorkerStore(stores.database).alive(60)


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
    WorkerStore(stores.database).polled("silent")
    dead.end_silent(60)
    assert hold(stores, dataset, "successor") == (0, False, False)
    with stores.database.relay() as connection:
        connection.execute(
            text("UPDATE workers SET polled_at = polled_at - interval '61 s' WHERE id = 'silent'")
        )
    dead.end_silent(60)
    assert hold(stores, dataset, "successor") == (0, True, True)
