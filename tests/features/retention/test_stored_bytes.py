"""Samples of what tenants store."""

from __future__ import annotations

from functools import partial

from sqlalchemy import update

from app.access.tenants.repository.quotas import QuotaStore
from app.access.tenants.repository.usage import UsageStore
from app.access.tenants.tables import usage_days
from app.access.tenants.usage import UsageFilter, UsageOf
from app.core.catalog.values import Dataset, Upload
from app.features.retention.repository.stored_bytes import StoredBytesStore
from app.infra.identifiers import new_id
from tests.support.lakehouse import RULES, commit_of, message, new_job, written_once
from tests.support.store_fixtures import Stores
from tests.support.threads import together


def test_sample_is_the_sum_of_all_files_and_the_day_keeps_the_largest(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    store = StoredBytesStore(stores.database)
    stores.jobs.accept(tenant_id, new_job(dataset.id))
    jobs = stores.jobs.claim(tenant_id, dataset.id, "worker", RULES)
    stores.timeline.publish_one(
        tenant_id, commit_of(jobs, [message(rows=3), message(1), written_once(2, rows=5)])
    )
    upload = Upload(
        id=new_id(),
        dataset_id=dataset.id,
        path="uploads/1",
        size_bytes=7,
        checksum="c",
        created_at=dataset.created_at,
    )
    stores.catalog.add_upload(tenant_id, upload)
    # Two data files, the changelog of each, a data file that is its changelog, and the upload.
    stored = 300 + 100 + 50 + 50 + 500 + 7
    sampled = together([partial(store.sample, tenant_id, older_than_seconds=60)] * 4)
    assert sampled.count(True) == 1
    assert QuotaStore(stores.database).metered(tenant_id)["storage_bytes"] == stored
    [written] = (
        UsageStore(stores.database)
        .page(tenant_id, UsageFilter(of=UsageOf.DATASET), page_size=9, page_token=None)
        .items
    )
    assert written.bytes_written == stored - 7
    with stores.database.tenant(tenant_id) as connection:
        connection.execute(update(usage_days).values(stored_bytes=stored + 1))
    assert store.sample(tenant_id, older_than_seconds=0)
    [day] = (
        UsageStore(stores.database)
        .page(tenant_id, UsageFilter(of=UsageOf.DATASET), page_size=9, page_token=None)
        .items
    )
    assert (day.id, day.stored_bytes) == (dataset.id, stored + 1)
    assert tenant_id in store.tenants()
