"""Usage by jobs: exactly what was committed, whatever happened on the way."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from functools import partial

import msgspec
import pytest
from sqlalchemy import func, select, text

from app.access.tenants.repository.usage import UsageStore
from app.access.tenants.tables import usage_days
from app.access.tenants.usage import KeyUsage, Usage, UsageFilter, UsageOf
from app.core.jobs.kinds.rewrite import CompactionTask
from app.core.jobs.repository.job_locks import UNFINISHED
from app.core.jobs.repository.metering import RUNNING_JOBS
from app.core.jobs.tables import jobs
from app.core.jobs.values import Job, NewJob, WorkerEnd
from app.core.timeline.values import Published
from app.infra.identifiers import new_id
from app.kernel.format.errors import Fault
from app.kernel.format.instant import Action, RowCounts
from tests.support.lakehouse import RULES, claim_of, commit_of, definition, message, new_job
from tests.support.store_fixtures import Stores
from tests.support.threads import together

_FAULT = Fault(code="corrupt-file", title="title", detail="detail", facts={})
_DATASETS, _JOBS, _WORKERS = 3, 12, 4


def usage(stores: Stores, tenant_id: str, of: UsageOf) -> list[Usage]:
    page = UsageStore(stores.database).page(tenant_id, UsageFilter(of=of), page_size=100, page_token=None)
    return list(page.items)


def test_metered_rows_equal_the_committed_counts(stores: Stores, tenant_id: str) -> None:
    """Replays, conflicts, faults, cancellations and workers that die, of several datasets at once."""
    made = [
        stores.catalog.create(tenant_id, new_id(), definition(f"d{number}")).id for number in range(_DATASETS)
    ]
    for dataset_id in made:
        for number in range(_JOBS):
            for _ in range(2):
                stores.jobs.accept(tenant_id, new_job(dataset_id, key=f"k{number}"))
    rules = msgspec.structs.replace(RULES, lease_seconds=0.05, group_jobs_max=3, attempts_max=50)
    deadline = threading.Event()
    timer = threading.Timer(120, deadline.set)
    timer.start()

    def work(seed: int) -> None:
        choice = random.Random(seed)
        while not deadline.is_set():
            waiting = stores.jobs.runnable(10)
            mine = [each.dataset_id for each in waiting if each.tenant_id == tenant_id]
            if not mine:
                if unfinished(stores, tenant_id) == 0:
                    return
                # Their worker is another, or died a moment ago.
                time.sleep(0.01)
                continue
            claimed = stores.jobs.claim(tenant_id, choice.choice(mine), f"worker-{seed}", rules)
            if claimed:
                end(stores, tenant_id, claimed, choice)

    together([partial(work, seed) for seed in range(_WORKERS)])
    timer.cancel()
    found = stores.jobs
    rows, changes = Counter[str](), Counter[str]()
    for dataset_id in made:
        for instant in stores.timeline.instants(tenant_id, dataset_id, page_size=200, page_token=None).items:
            job = found.get(tenant_id, instant.job_id)
            assert job.state.final
            rows[dataset_id] += job.rows.inserted + job.rows.updated + job.rows.deleted
        changes[dataset_id] = stores.catalog.get(tenant_id, dataset_id).next_offset
    metered = {each.id: each for each in usage(stores, tenant_id, UsageOf.DATASET)}
    assert {name: each.rows_written for name, each in metered.items()} == dict(rows)
    assert {name: each.changes for name, each in metered.items()} == dict(changes)
    assert all(each.job_milliseconds > 0 for each in metered.values())
    [total] = usage(stores, tenant_id, UsageOf.TENANT)
    assert (total.rows_written, total.changes) == (rows.total(), changes.total())
    assert stores.jobs.count_running(tenant_id) == 0


def unfinished(stores: Stores, tenant_id: str) -> int:
    with stores.database.tenant(tenant_id) as connection:
        return connection.execute(select(func.count()).select_from(jobs).where(UNFINISHED)).scalar_one()


def end(stores: Stores, tenant_id: str, jobs: list[Job], choice: random.Random) -> None:
    """Ends a group of jobs in one of many ways."""
    match choice.randrange(6):
        case 0:
            return  # the worker died
        case 1:
            stores.jobs.fail(tenant_id, claim_of(jobs[0]), _FAULT)
            return
        case 2:
            stores.jobs.cancel(tenant_id, jobs[-1].id) if choice.random() < 0.5 else None
    counts = [RowCounts(inserted=choice.randrange(3), deleted=choice.randrange(2), unchanged=1) for _ in jobs]
    # A version that is not the head: a conflict, unless the group is new.
    read = stores.catalog.get(tenant_id, jobs[0].dataset_id).version
    bucket = choice.randrange(2)
    commit = commit_of(jobs, [message(bucket, changes=choice.randrange(3))], read_version=read, counts=counts)
    late = msgspec.structs.replace(commit, read_version=max(0, read - 1))
    if isinstance(stores.timeline.publish_one(tenant_id, late), Published):
        # Published once, however often it is tried.
        assert not isinstance(stores.timeline.publish_one(tenant_id, commit), Published)


@pytest.mark.parametrize("way", ["lost", "released", "postponed", "handed over"])
@pytest.mark.parametrize("end", ["commit", "cancel", "cancel in queue"])
def test_only_the_attempt_that_ended_a_job_counts(stores: Stores, tenant_id: str, way: str, end: str) -> None:
    dataset_id = stores.catalog.create(tenant_id, new_id(), definition()).id
    stores.jobs.accept(tenant_id, new_job(dataset_id))

    def claim() -> Job:
        [job] = stores.jobs.claim(tenant_id, dataset_id, tenant_id, RULES)
        return job

    def change(values: str) -> None:
        with stores.database.tenant(tenant_id) as connection:
            connection.execute(text(f"UPDATE jobs SET {values}"))

    first = claim_of(claim())
    change("started_at = started_at - interval '1 hour'")
    match way:
        case "lost":
            change("lease_until = now() - interval '1 second'")
        case "released":
            stores.jobs.release(tenant_id, [first])
        case "postponed":
            stores.jobs.postpone(tenant_id, [first], "storage")
            change("not_before = now()")
        case _:
            stores.jobs.end_claims(tenant_id, WorkerEnd.STOPPED)
    if end == "cancel in queue" and way != "lost":
        stores.jobs.cancel(tenant_id, first.job_id)
        [metered] = usage(stores, tenant_id, UsageOf.DATASET)
        assert metered.job_milliseconds == 0
        return
    last = claim()
    change("claimed_at = claimed_at - interval '1 minute'")
    if end == "commit":
        stores.timeline.publish_one(tenant_id, commit_of([last], [message(changes=1)]))
    else:
        stores.jobs.cancel(tenant_id, last.id)
    [metered] = usage(stores, tenant_id, UsageOf.DATASET)
    assert 60_000 <= metered.job_milliseconds < 3_600_000
    assert stores.jobs.get(tenant_id, last.id).state.final


def test_table_service_counts_no_rows_and_no_bytes(stores: Stores, tenant_id: str) -> None:
    dataset_id = stores.catalog.create(tenant_id, new_id(), definition()).id
    task = NewJob(id=new_id(), instant_id=new_id(), dataset_id=dataset_id, request=CompactionTask())
    stores.jobs.accept(tenant_id, task)
    job = stores.jobs.claim_task(tenant_id, dataset_id, "worker", RULES)
    assert job is not None
    commit = commit_of([job], [message(changes=0)])
    stores.timeline.publish_one(tenant_id, msgspec.structs.replace(commit, action=Action.COMPACTION))
    [metered] = usage(stores, tenant_id, UsageOf.DATASET)
    assert (metered.rows_written, metered.bytes_written, metered.changes) == (0, 0, 0)
    assert metered.job_milliseconds > 0
    with stores.database.tenant(tenant_id) as connection:
        assert connection.execute(RUNNING_JOBS).scalar_one() == 0


def test_usage_is_listed_in_pages_and_expires(stores: Stores, tenant_id: str) -> None:
    store = UsageStore(stores.database)
    keys = sorted(new_id() for _ in range(3))
    used = [KeyUsage(tenant_id=tenant_id, key_id=key, requests=2, egress_bytes=10) for key in keys]
    together([partial(store.add, tenant_id, used)] * 3)
    with stores.database.tenant(tenant_id) as connection:
        connection.execute(usage_days.insert().values(day="2020-01-01", dataset_id=new_id(), rows_written=7))
    assert [each.rows_written for each in usage(stores, tenant_id, UsageOf.TENANT)] == [7, 0]
    store.expire(tenant_id)
    [today] = usage(stores, tenant_id, UsageOf.TENANT)
    assert (today.requests, today.egress_bytes) == (18, 90)
    token, found = None, []
    while True:
        page = store.page(tenant_id, UsageFilter(of=UsageOf.KEY), page_size=2, page_token=token)
        found += [(each.id, each.requests) for each in page.items]
        token = page.next_token
        if token is None:
            break
    assert found == [(key, 6) for key in keys]
    with stores.database.tenant(tenant_id) as connection:
        assert connection.execute(select(usage_days.c.rows_written)).all() == []
