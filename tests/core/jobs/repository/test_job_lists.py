"""Lists of jobs: newest first, filtered, page by page."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.core.catalog.values import Dataset
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.kinds.rewrite import CompactionTask
from app.core.jobs.repository.job_lists import job_tokens, list_jobs
from app.core.jobs.values import Job, JobFilter, JobState
from app.infra.identifiers import new_id
from app.kernel.format.errors import InvalidRequest
from tests.support.lakehouse import definition, new_job
from tests.support.store_fixtures import Stores


def accept(stores: Stores, dataset: Dataset, *, task: bool = False) -> Job:
    new = new_job(dataset.id)
    if task:
        new = msgspec.structs.replace(new, request=CompactionTask())
    return stores.jobs.accept(dataset.tenant_id, new).job


def ids(stores: Stores, tenant_id: str, *, scanned_max: int = 100, page_size: int = 2, **wanted: Any) -> Any:
    """The ids on each page."""
    pages, token = [], None
    while not pages or token is not None:
        with stores.database.tenant(tenant_id) as connection:
            page = list_jobs(
                connection,
                tenant_id,
                JobFilter(**wanted),
                page_size=page_size,
                page_token=token,
                scanned_max=scanned_max,
            )
        pages.append([job.id for job in page.items])
        token = page.next_token
    return pages


def test_jobs_come_newest_first_page_by_page(stores: Stores, tenant_id: str, dataset: Dataset) -> None:
    made = [accept(stores, dataset).id for _ in range(5)]
    assert ids(stores, tenant_id) == [made[:2:-1], made[2:0:-1], made[:1]]
    assert ids(stores, tenant_id, page_size=5) == [made[::-1]]


def test_jobs_are_filtered_by_dataset_kind_and_state(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    other = stores.catalog.create(tenant_id, new_id(), definition("other"))
    write, task, elsewhere = (
        accept(stores, dataset),
        accept(stores, dataset, task=True),
        accept(stores, other),
    )
    cancelled = accept(stores, dataset)
    stores.jobs.cancel(tenant_id, cancelled.id)
    assert ids(stores, tenant_id, page_size=9) == [[cancelled.id, elsewhere.id, task.id, write.id]]
    assert ids(stores, tenant_id, page_size=9, dataset_id=dataset.id) == [[cancelled.id, task.id, write.id]]
    assert ids(stores, tenant_id, page_size=9, kinds=(JobKind.COMPACTION,)) == [[task.id]]
    assert ids(stores, tenant_id, page_size=9, states=(JobState.QUEUED,)) == [
        [elsewhere.id, task.id, write.id]
    ]
    both = (JobState.QUEUED, JobState.CANCELLED)
    assert ids(
        stores, tenant_id, page_size=9, dataset_id=dataset.id, kinds=(JobKind.WRITE,), states=both
    ) == [[cancelled.id, write.id]]


def test_another_tenants_jobs_are_not_listed(stores: Stores, tenant_id: str, dataset: Dataset) -> None:
    job = accept(stores, dataset)
    other = stores.tenants.add_tenant(f"tenant-{new_id()}")
    assert ids(stores, other) == [[]]
    with pytest.raises(InvalidRequest):
        stores.jobs.page(
            other, JobFilter(), page_size=2, page_token=job_tokens(other, JobFilter()).encode(job.id)
        )


def test_a_page_passes_over_a_bounded_number_of_jobs(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    first = accept(stores, dataset, task=True)
    for _ in range(5):
        accept(stores, dataset)
    last = accept(stores, dataset, task=True)
    pages = ids(stores, tenant_id, scanned_max=3, kinds=(JobKind.COMPACTION,))
    assert pages == [[last.id], [], [first.id]]
    # What has not ended is looked up by itself.
    stores.jobs.cancel(tenant_id, last.id)
    for job in stores.jobs.page(
        tenant_id, JobFilter(kinds=(JobKind.WRITE,)), page_size=9, page_token=None
    ).items:
        stores.jobs.cancel(tenant_id, job.id)
    assert ids(stores, tenant_id, scanned_max=3, states=(JobState.QUEUED,)) == [[first.id]]


def test_a_job_that_is_accepted_meanwhile_shifts_no_page(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    made = [accept(stores, dataset).id for _ in range(4)]
    first = stores.jobs.page(tenant_id, JobFilter(), page_size=2, page_token=None)
    accept(stores, dataset)
    second = stores.jobs.page(tenant_id, JobFilter(), page_size=2, page_token=first.next_token)
    assert [job.id for job in (*first.items, *second.items)] == made[::-1]
    assert second.next_token is None


@pytest.mark.parametrize("position", [None, "7", "0" * 32])
def test_malformed_page_token_of_jobs_is_refused(
    stores: Stores, tenant_id: str, position: str | None
) -> None:
    token = "nonsense" if position is None else job_tokens(tenant_id, JobFilter()).encode(position)
    with pytest.raises(InvalidRequest):
        stores.jobs.page(tenant_id, JobFilter(), page_size=2, page_token=token)


def test_each_job_of_a_list_has_the_name_of_its_dataset(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    other = stores.catalog.create(tenant_id, new_id(), definition("other"))
    first, second = accept(stores, dataset), accept(stores, other)
    assert (first.dataset_name, second.dataset_name) == (dataset.definition.name, "other")
    # The name of a dataset that was deleted is still that of its jobs.
    stores.jobs.cancel(tenant_id, second.id)
    stores.catalog.delete(tenant_id, other.id, version=None)
    for job_filter in (JobFilter(), JobFilter(kinds=(JobKind.WRITE,))):
        page = stores.jobs.page(tenant_id, job_filter, page_size=9, page_token=None)
        assert [job.dataset_name for job in page.items] == ["other", dataset.definition.name]
