"""Quotas in transactions: exact under concurrency, at once when they change, and without effect on other tenants."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest

from app.access.tenants.errors import QuotaExceeded
from app.access.tenants.quotas import Quotas, quotas_of
from app.access.tenants.repository.quotas import QuotaStore
from app.access.tenants.service import KnownQuotas
from app.access.tenants.values import TenantChange
from app.core.catalog.values import Dataset
from app.core.consumers.repository.consumers import ConsumerStore
from app.core.consumers.values import ConsumerChange, ExpectedRevision
from app.core.jobs.kinds.write import WriteRequest
from app.core.jobs.service.group_accept import GroupAccept
from app.core.jobs.values import Accepted, NewJob
from app.infra.identifiers import new_id
from app.kernel.format.operation import Operation
from tests.support.lakehouse import RULES, commit_of, definition, message, new_job
from tests.support.store_fixtures import Stores
from tests.support.threads import together

LIMIT, CREATORS = 5, 12


def set_quotas(stores: Stores, tenant_id: str, **limits: Any) -> None:
    stores.tenants.change(tenant_id, TenantChange(quotas=Quotas(**limits)))


def requested(dataset_id: str, operation: Operation = Operation.UPSERT, **more: Any) -> NewJob:
    job = new_job(dataset_id, **more)
    return msgspec.structs.replace(job, actor=new_id(), request=WriteRequest(operation=operation))


def outcome(call: Callable[[], object]) -> object:
    try:
        return call()
    except QuotaExceeded as refused:
        return refused


def refusals(found: list[object]) -> list[QuotaExceeded]:
    return [each for each in found if isinstance(each, QuotaExceeded)]


def test_concurrent_creators_of_datasets_never_exceed_the_quota(stores: Stores, tenant_id: str) -> None:
    set_quotas(stores, tenant_id, datasets=LIMIT)
    calls = [
        partial(outcome, partial(stores.catalog.create, tenant_id, new_id(), definition(f"d{number}")))
        for number in range(CREATORS)
    ]
    refused = refusals(together(calls))
    assert len(refused) == CREATORS - LIMIT
    assert stores.catalog.count(tenant_id) == LIMIT
    assert {(each.facts["quota"], each.facts["limit"], each.facts["used"]) for each in refused} == {
        ("datasets", LIMIT, LIMIT)
    }
    another = stores.tenants.add_tenant(f"another-{new_id()}")
    stores.catalog.create(another, new_id(), definition())
    [first] = stores.catalog.list(tenant_id, page_size=1, page_token=None).items
    stores.catalog.delete(tenant_id, first.id, version=None)
    stores.catalog.create(tenant_id, new_id(), definition("again"))


def test_concurrent_creators_of_consumers_never_exceed_the_quota(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    set_quotas(stores, tenant_id, consumers=LIMIT)
    store = ConsumerStore(stores.database)
    change, expected = ConsumerChange(offset=0), ExpectedRevision()
    calls = [
        partial(outcome, partial(store.put, tenant_id, dataset.id, f"c{number}", change, expected))
        for number in range(CREATORS)
    ]
    assert len(refusals(together(calls))) == CREATORS - LIMIT
    assert store.count(tenant_id) == LIMIT


def test_queue_takes_the_jobs_of_the_quota_and_replays_beyond_it(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    set_quotas(stores, tenant_id, queued_jobs=LIMIT)
    group = GroupAccept(stores.jobs.accept_all)
    new = [requested(dataset.id, key=f"k{number}") for number in range(CREATORS)]
    found = together([partial(outcome, partial(group.accept, tenant_id, each)) for each in new])
    refused = refusals(found)
    assert len(refused) == CREATORS - LIMIT
    assert {each.facts["retry_after_seconds"] for each in refused} == {5}
    assert stores.jobs.count_queued(tenant_id) == LIMIT
    accepted = next(each for each, one in zip(new, found, strict=True) if isinstance(one, Accepted))
    again = msgspec.structs.replace(accepted, id=new_id())
    assert stores.jobs.accept(tenant_id, again).is_replay
    # Neither counted nor refused: the service itself started it.
    stores.jobs.accept(tenant_id, new_job(dataset.id))
    # A refused key is free.
    late = next(each for each, one in zip(new, found, strict=True) if isinstance(one, QuotaExceeded))
    stores.jobs.claim(tenant_id, dataset.id, "worker", RULES)
    assert not stores.jobs.accept(tenant_id, late).is_replay


def test_jobs_beyond_the_running_ones_wait(stores: Stores, tenant_id: str) -> None:
    set_quotas(stores, tenant_id, running_jobs=2)
    made = [stores.catalog.create(tenant_id, new_id(), definition(f"d{number}")) for number in range(5)]
    for each in made:
        stores.jobs.accept(tenant_id, requested(each.id))
        stores.jobs.accept(tenant_id, requested(each.id))
    claim = partial(stores.jobs.claim, tenant_id, owner="worker", rules=RULES)
    claimed = [group for group in together([partial(claim, each.id) for each in made]) if group]
    assert [len(group) for group in claimed] == [2, 2]
    assert stores.jobs.count_running(tenant_id) == 2
    while stores.outbox.relay(lambda _: None, 100):
        pass
    [first, _] = claimed
    stores.timeline.publish_one(tenant_id, commit_of(first, [message()]))
    sent: list[Any] = []
    stores.outbox.relay(sent.extend, 100)
    [woken] = [each.dataset_id for each in sent if each.topic == "work"]
    running = {group[0].dataset_id for group in claimed}
    assert woken == next(each.id for each in made if each.id not in running)
    assert len(claim(woken)) == 2
    set_quotas(stores, tenant_id, running_jobs=None)
    assert all(claim(each.id) for each in made if each.id not in running | {woken})


def test_metered_quotas_refuse_once_they_are_reached(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    write = partial(requested, dataset.id)

    def commit(new: int) -> None:
        stores.jobs.accept(tenant_id, write())
        jobs = stores.jobs.claim(tenant_id, dataset.id, "worker", RULES)
        stores.timeline.publish_one(tenant_id, commit_of(jobs, [message(new, rows=1)], read_version=new))

    set_quotas(stores, tenant_id, rows_per_day=2)
    for new in range(2):
        commit(new)
    with pytest.raises(QuotaExceeded) as refused:
        stores.jobs.accept(tenant_id, write())
    facts = dict(refused.value.facts)
    assert 0 < facts.pop("retry_after_seconds") <= 86_400
    assert facts == {"quota": "rows_per_day", "limit": 2, "used": 2}
    used = QuotaStore(stores.database).metered(tenant_id)
    assert used == {"rows_per_day": 2, "bytes_per_day": 2 * 150, "storage_bytes": 0}
    set_quotas(stores, tenant_id, rows_per_day=None, bytes_per_day=300)
    with pytest.raises(QuotaExceeded):
        stores.jobs.accept(tenant_id, write())
    set_quotas(stores, tenant_id, bytes_per_day=None, storage_bytes=0)
    with pytest.raises(QuotaExceeded):
        stores.jobs.accept(tenant_id, write())
    stores.jobs.accept(tenant_id, write(Operation.DELETE))


def test_weight_stored_before_there_was_a_least_one_is_the_least() -> None:
    assert quotas_of({"weight": 5e-324, "views": 1, "unknown": 2}) == Quotas(weight=0.01, views=1)


def test_changes_of_different_quotas_are_merged(stores: Stores, tenant_id: str) -> None:
    names = ["datasets", "webhooks", "exports", "views"]
    together([partial(set_quotas, stores, tenant_id, **{name: 1}) for name in names])
    set_quotas(stores, tenant_id, weight=2.5, views=None)
    assert stores.tenants.tenant(tenant_id).quotas == Quotas(datasets=1, webhooks=1, exports=1, weight=2.5)
    known = KnownQuotas(QuotaStore(stores.database).of_workers)
    assert (known.weight(tenant_id), known.job_seconds(tenant_id)) == (1, None)
    known.refresh()
    assert (known.weight(tenant_id), known.job_seconds(tenant_id)) == (2.5, None)
    set_quotas(stores, tenant_id, weight=None, job_seconds=30)
    known.refresh()
    assert (known.weight(tenant_id), known.job_seconds(tenant_id)) == (1, 30)
