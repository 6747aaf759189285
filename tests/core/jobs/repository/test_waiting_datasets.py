"""Polls for datasets with waiting jobs: fair between tenants, with a cost that does not grow with the jobs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from app.core.jobs.repository.waiting_datasets import _DATASETS, _TENANTS
from app.core.jobs.values import JobQueue
from app.infra.db.session import ADMINISTRATOR_ROLE, Database
from app.infra.db.tenant_rotation import Rotation
from app.infra.identifiers import new_id
from tests.support.lakehouse import RULES, definition, new_job
from tests.support.postgres import TestServer
from tests.support.query_plans import plan_of_text, rows_read, scans
from tests.support.store_fixtures import Stores


@pytest.fixture
def server(postgres: TestServer) -> Iterator[tuple[TestServer, str]]:
    """A database of this test only: its polls see no other tenants."""
    with postgres.fresh_database() as name:
        yield postgres, name


@pytest.fixture
def own(server: tuple[TestServer, str]) -> Iterator[Stores]:
    postgres, name = server
    database = Database(postgres.application_url(name))
    administration = Database(postgres.admin_url(name), role=ADMINISTRATOR_ROLE)
    yield Stores.on(database, administration)
    administration.close()
    database.close()


def add(stores: Stores, tenant: str, datasets: int, jobs: int = 1) -> str:
    tenant_id = stores.tenants.add_tenant(tenant)
    for number in range(datasets):
        made = stores.catalog.create(tenant_id, new_id(), definition(f"d{number}"))
        for _ in range(jobs):
            stores.jobs.accept(tenant_id, new_job(made.id))
    return tenant_id


def test_poll_returns_equal_parts_of_every_tenant_and_reaches_all_datasets_in_turn(own: Stores) -> None:
    noisy = add(own, "noisy", datasets=25, jobs=2)
    quiet = {add(own, f"quiet-{number}", datasets=1) for number in range(2)}
    rotation = Rotation()
    seen: list[str] = []
    for _ in range(9):
        found = own.jobs.runnable(9, JobQueue.WRITES, rotation)
        assert [each.tenant_id for each in found[:3]] == [noisy, *sorted(quiet)]
        assert [each.tenant_id for each in found].count(noisy) in (1, 3)
        seen += [each.dataset_id for each in found if each.tenant_id == noisy]
    assert len(seen) == len(set(seen)) == 25, "each once, before any comes again"


def test_poll_that_does_not_reach_all_tenants_continues_with_the_others(own: Stores) -> None:
    tenants = {add(own, f"tenant-{number}", datasets=3) for number in range(7)}
    rotation = Rotation()
    polls = [{each.tenant_id for each in own.jobs.runnable(3, JobQueue.WRITES, rotation)} for _ in range(7)]
    assert all(len(poll) == 3 for poll in polls)
    assert polls[0] | polls[1] | polls[2] == tenants


def test_poll_finds_tasks_and_lapsed_leases_by_queue(own: Stores) -> None:
    tenant_id = add(own, "tenant", datasets=2)
    first, second = own.jobs.runnable(10)
    own.jobs.claim(tenant_id, first.dataset_id, "dead", RULES)
    assert own.jobs.runnable(10) == [second]
    with own.database.tenant(tenant_id) as connection:
        connection.exec_driver_sql(
            "UPDATE jobs SET lease_until = clock_timestamp() - interval '1 second' WHERE state = 'running'"
        )
    assert own.jobs.runnable(10) == [first, second]
    assert own.jobs.runnable(10, JobQueue.TASKS) == []


def test_cost_of_a_poll_does_not_grow_with_the_jobs_that_wait(
    server: tuple[TestServer, str], own: Stores
) -> None:
    tenant_id = add(own, "noisy", datasets=3)
    quiet = add(own, "quiet", datasets=1)
    postgres, name = server
    with postgres.administration(name) as administration:
        administration.execute(
            """
            INSERT INTO jobs (tenant_id, id, dataset_id, instant_id, kind, state, request, lane, progress, rows)
            SELECT tenant_id, gen_random_uuid(), dataset_id, instant_id, kind, state, request, lane, progress, rows
            FROM jobs, generate_series(1, 5000) WHERE tenant_id = %s::text::uuid""",
            [tenant_id],
        )
        administration.execute("ANALYZE jobs")
    values: dict[str, Any] = {"queue": "writes", "limit": 100, "each": 100}
    for statement, parameters in (
        (_TENANTS, {"after": "00000000-0000-0000-0000-000000000000"}),
        (_DATASETS, {"tenants": [tenant_id, quiet], "after": ["00000000-0000-0000-0000-000000000000"] * 2}),
    ):
        with own.database.relay() as connection:
            plan = plan_of_text(connection, statement.text, {**values, **parameters})
        found = list(scans(plan, "jobs"))
        assert all(scan["Node Type"].startswith("Index") for scan in found), json.dumps(found)
        assert rows_read(plan, "jobs") < 50
