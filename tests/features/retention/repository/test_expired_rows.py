"""Rows of ended jobs and of deleted datasets: what expires, and what stays because something refers to it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest
from msgspec import structs
from sqlalchemy import Table, func, select, text

from app.access.errors import NotFound
from app.access.tenants.tables import usage_days
from app.core.catalog.tables import datasets
from app.core.catalog.values import Dataset
from app.core.jobs.errors import BatchOutOfOrder
from app.core.jobs.kinds.comparison import ComparisonTask
from app.core.jobs.kinds.write import WriteRequest
from app.core.jobs.tables import idempotency, instants, jobs, outbox, transactions, writer_batches
from app.core.jobs.values import JobFilter, NewJob
from app.features.retention.repository.expired_rows import ExpiredJobStore
from app.features.retention.service.expired_rows import ExpireRows
from app.features.transactions.values import NewTransaction
from app.infra.db.columns import metadata
from app.infra.files.storage import LocalStorage
from app.infra.identifiers import new_id
from app.kernel.commit.write_options import WriteOptions
from app.kernel.format.paths import dataset_prefix
from tests.support.expired_rows import expire_rows
from tests.support.lakehouse import RULES, commit_of, definition, message, new_job
from tests.support.shares import share
from tests.support.store_fixtures import Stores

# `RETENTION_ROWS=1000000` deletes a million jobs.
JOBS: Final = int(os.environ.get("RETENTION_ROWS", "5000"))
WEEK: Final = 7 * 86400.0


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


@pytest.fixture
def expire(stores: Stores, storage: LocalStorage) -> ExpireRows:
    """Rounds that keep no ended job."""
    return expire_rows(stores.database, storage, job_keep_seconds=0.000001)


def count(stores: Stores, tenant_id: str, table: Table) -> int:
    with stores.database.tenant(tenant_id) as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


def task(dataset: Dataset, *, key: str | None = None) -> NewJob:
    """A job without an instant."""
    request = ComparisonTask(from_version=0, to_version=0)
    return structs.replace(new_job(dataset.id, key=key), instant_id=None, request=request)


def finish_task(stores: Stores, tenant_id: str, dataset: Dataset) -> None:
    claimed = stores.jobs.claim_task(tenant_id, dataset.id, "worker", RULES)
    assert claimed is not None
    assert stores.jobs.succeed(tenant_id, claimed.claim, {})


def commit_next(stores: Stores, tenant_id: str, dataset: Dataset) -> None:
    claimed = stores.jobs.claim(tenant_id, dataset.id, "worker", RULES)
    read_version = stores.catalog.get(tenant_id, dataset.id).version
    commit = commit_of(claimed, [message(len(claimed))], read_version=read_version)
    assert isinstance(stores.timeline.publish(tenant_id, [commit]), tuple)


def archive_instants(stores: Stores, tenant_id: str) -> None:
    with stores.database.tenant(tenant_id) as connection:
        connection.execute(text("DELETE FROM instants WHERE state NOT IN ('requested', 'inflight')"))


def test_ended_job_expires_with_its_key_and_others_stay(
    stores: Stores, storage: LocalStorage, expire: ExpireRows, tenant_id: str, dataset: Dataset
) -> None:
    ended = stores.jobs.accept(tenant_id, task(dataset, key="first")).job
    finish_task(stores, tenant_id, dataset)
    waiting = stores.jobs.accept(tenant_id, task(dataset, key="second")).job
    assert expire_rows(stores.database, storage, job_keep_seconds=WEEK).run(tenant_id) == 0
    assert stores.jobs.accept(tenant_id, task(dataset, key="first")).job.id == ended.id
    assert expire.run(tenant_id) == 1
    with pytest.raises(NotFound):
        stores.jobs.get(tenant_id, ended.id)
    assert stores.jobs.get(tenant_id, waiting.id).id == waiting.id
    assert count(stores, tenant_id, idempotency) == 1
    assert not stores.jobs.accept(tenant_id, task(dataset, key="first")).is_replay


def test_job_with_an_instant_stays_until_the_instant_is_archived(
    stores: Stores, expire: ExpireRows, tenant_id: str, dataset: Dataset
) -> None:
    job = stores.jobs.accept(tenant_id, new_job(dataset.id)).job
    commit_next(stores, tenant_id, dataset)
    for _ in range(2):
        assert expire.run(tenant_id) == 0
    assert stores.jobs.get(tenant_id, job.id).committed_version == 1
    archive_instants(stores, tenant_id)
    assert expire.run(tenant_id) == 1
    assert count(stores, tenant_id, jobs) == 0


def test_latest_batch_of_a_stream_is_recognised_after_its_retention(
    stores: Stores, expire: ExpireRows, tenant_id: str, dataset: Dataset
) -> None:
    def batch(number: int) -> NewJob:
        options = WriteOptions(writer_id="w", batch_id=number)
        new = new_job(dataset.id)
        assert isinstance(new.request, WriteRequest)
        return structs.replace(new, request=structs.replace(new.request, options=options))

    accepted = [stores.jobs.accept(tenant_id, batch(number)).job for number in (1, 2, 3)]
    commit_next(stores, tenant_id, dataset)
    archive_instants(stores, tenant_id)
    assert expire.run(tenant_id) == 2
    assert count(stores, tenant_id, writer_batches) == 1
    again = stores.jobs.accept(tenant_id, batch(3))
    assert (again.job.id, again.is_replay) == (accepted[2].id, True)
    with pytest.raises(BatchOutOfOrder):
        stores.jobs.accept(tenant_id, batch(2))


def test_transaction_expires_with_the_last_of_its_jobs(
    stores: Stores, expire: ExpireRows, tenant_id: str, dataset: Dataset
) -> None:
    other = stores.catalog.create(tenant_id, new_id(), definition("other"))
    members = (new_job(dataset.id), new_job(other.id))
    stores.transactions.accept(tenant_id, NewTransaction(id=new_id(), jobs=members, idempotency_key="k"))
    stores.jobs.cancel(tenant_id, members[0].id)
    with stores.database.tenant(tenant_id) as connection:
        connection.execute(instants.delete().where(instants.c.dataset_id == dataset.id))
    assert expire.run(tenant_id) == 1
    assert count(stores, tenant_id, transactions) == 1
    archive_instants(stores, tenant_id)
    assert expire.run(tenant_id) == 1
    assert count(stores, tenant_id, transactions) == 0


MANY = """
    INSERT INTO jobs (id, dataset_id, kind, state, task, progress, rows, lane, finished_at)
    SELECT gen_random_uuid(), dataset_id, kind, 'succeeded', task, progress, rows, lane,
           clock_timestamp() - interval '1 day' - number * interval '1 s'
    FROM jobs, generate_series(1, :number) number
"""


@share(2)
def test_many_jobs_expire_in_bounded_batches_that_read_no_more_than_they_delete(
    stores: Stores, expire: ExpireRows, tenant_id: str, dataset: Dataset
) -> None:
    stores.jobs.accept(tenant_id, task(dataset))
    with stores.database.tenant(tenant_id) as connection:
        connection.execute(text(MANY), {"number": JOBS})
    store, cursor, deleted, limit = ExpiredJobStore(stores.database), None, 0, 500
    while True:
        batch = store.expire(tenant_id, cursor, keep_seconds=3600, limit=limit)
        deleted += batch.job_count
        assert batch.job_count <= limit
        cursor = batch.last
        if cursor is None:
            break
    assert deleted == JOBS
    assert count(stores, tenant_id, jobs) == 1


def test_rows_of_a_deleted_dataset_go_after_its_files_and_its_own_row_after_its_jobs(
    stores: Stores, storage: LocalStorage, tenant_id: str, dataset: Dataset
) -> None:
    other = stores.catalog.create(tenant_id, new_id(), definition("other"))
    for each in (dataset, other):
        stores.jobs.accept(tenant_id, new_job(each.id, key="k"))
        commit_next(stores, tenant_id, each)
    path = f"{dataset_prefix(tenant_id, dataset.id)}/data/file"
    with storage.create(path) as file:
        file.write(b"rows")
    keep = expire_rows(stores.database, storage, job_keep_seconds=WEEK)
    assert keep.run(tenant_id) == 0
    stores.catalog.delete(tenant_id, dataset.id, version=None)
    assert keep.run(tenant_id) == 0
    storage.delete([path])
    assert keep.run(tenant_id) > 0
    [job] = stores.jobs.page(tenant_id, JobFilter(dataset_id=dataset.id), page_size=9, page_token=None).items
    assert job.committed_version == 1
    with stores.database.tenant(tenant_id) as connection:
        for table in metadata.sorted_tables:
            if "dataset_id" in table.c and table is not outbox:
                rows = connection.execute(
                    select(func.count()).select_from(table).where(table.c.dataset_id == dataset.id)
                ).scalar_one()
                assert rows == (1 if table in (jobs, usage_days) else 0), table.name
    assert expire_rows(stores.database, storage, job_keep_seconds=0.000001).run(tenant_id) == 2
    assert count(stores, tenant_id, datasets) == 1
    assert len(stores.timeline.live_files(tenant_id, other.id, 1, None)) == 1


def test_every_row_that_refers_to_a_dataset_or_job_is_found_by_its_dataset() -> None:
    """So that those of a deleted dataset are deleted: by the dataset that they name, or with a row that does."""
    for table in metadata.sorted_tables:
        referred = {constraint.referred_table.name for constraint in table.foreign_key_constraints}
        if "dataset_id" not in table.c and referred & {"datasets", "jobs", "commits"}:
            owners = [each for each in table.foreign_key_constraints if each.ondelete == "CASCADE"]
            assert any("dataset_id" in each.referred_table.c for each in owners), table.name
