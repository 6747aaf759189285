"""The catalogue: names are unique among a tenant's live datasets, and a dataset ends with all its jobs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import chain
from threading import Barrier

import msgspec
import pytest

from app.access.errors import NotFound, PreconditionFailed
from app.core.catalog.errors import DatasetExists
from app.core.catalog.values import AwaitedHead, Dataset, Upload
from app.core.jobs.values import Job, JobState
from app.core.timeline.values import Fenced
from app.infra.identifiers import new_id
from app.kernel.format.errors import InvalidRequest
from tests.support.lakehouse import commit_of, definition, message, new_job
from tests.support.store_fixtures import Stores
from tests.support.threads import together


def test_new_dataset_is_empty_and_found_by_id_and_by_name(stores: Stores, tenant_id: str) -> None:
    made = stores.catalog.create(tenant_id, new_id(), definition("flights"))
    assert (made.version, made.next_offset, made.committed_at, made.tenant_id) == (0, 0, None, tenant_id)
    assert made.definition == definition("flights")
    assert abs(made.created_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert stores.catalog.get(tenant_id, made.id) == stores.catalog.get(tenant_id, "flights") == made


@pytest.mark.parametrize(
    "reference", ["nothing", "", "o\0rders", "ORDERS", pytest.param(new_id(), id="new"), "x" * 5_000]
)
def test_unknown_references_find_no_dataset(
    stores: Stores, tenant_id: str, dataset: Dataset, reference: str
) -> None:
    with pytest.raises(NotFound):
        stores.catalog.get(tenant_id, reference)
    with pytest.raises(NotFound):
        stores.catalog.delete(tenant_id, reference, version=None)


def test_dataset_name_is_unique_per_tenant(stores: Stores, tenant_id: str, dataset: Dataset) -> None:
    with pytest.raises(DatasetExists):
        stores.catalog.create(tenant_id, new_id(), definition())
    neighbour = stores.tenants.add_tenant(f"neighbour-{tenant_id}")
    assert stores.catalog.create(neighbour, new_id(), definition()).id != dataset.id


def test_one_of_racing_creators_wins(stores: Stores, tenant_id: str) -> None:
    barrier = Barrier(4)

    def create() -> str:
        barrier.wait()
        try:
            return stores.catalog.create(tenant_id, new_id(), definition("raced")).id
        except DatasetExists:
            return "exists"

    outcomes = together([create] * 4)
    assert outcomes.count("exists") == 3


def test_listing_pages_by_name_while_datasets_change(stores: Stores, tenant_id: str) -> None:
    for name in ("b", "a", "C", "d", "e"):
        stores.catalog.create(tenant_id, new_id(), definition(name))
    first = stores.catalog.list(tenant_id, page_size=2, page_token=None)
    stores.catalog.delete(tenant_id, "a", version=None)
    stores.catalog.create(tenant_id, new_id(), definition("A"))
    second = stores.catalog.list(tenant_id, page_size=2, page_token=first.next_token)
    third = stores.catalog.list(tenant_id, page_size=2, page_token=second.next_token)
    names = [[item.definition.name for item in page.items] for page in (first, second, third)]
    assert names == [["C", "a"], ["b", "d"], ["e"]]
    assert third.next_token is None


def test_empty_listing_and_exact_page_have_no_next_token(stores: Stores, tenant_id: str) -> None:
    assert stores.catalog.list(tenant_id, page_size=1, page_token=None).items == []
    stores.catalog.create(tenant_id, new_id(), definition())
    assert stores.catalog.list(tenant_id, page_size=1, page_token=None).next_token is None


@pytest.mark.parametrize("token", ["", "!", "é", "AAAA", "pA", "oQA"])
def test_invalid_page_token_is_refused(stores: Stores, tenant_id: str, token: str) -> None:
    with pytest.raises(InvalidRequest):
        stores.catalog.list(tenant_id, page_size=1, page_token=token)


def test_heads_after_their_positions_are_found_among_live_datasets_only(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    quiet, gone = (stores.catalog.create(tenant_id, new_id(), definition(name)) for name in ("quiet", "gone"))
    stores.timeline.publish_one(tenant_id, commit_of([running()], [message()]))
    stores.catalog.delete(tenant_id, gone.id, version=None)
    moved = stores.catalog.get(tenant_id, dataset.id)
    at_head, before = AwaitedHead(dataset.id, moved.next_offset), AwaitedHead(dataset.id, 0)
    still = [AwaitedHead(quiet.id, 0), AwaitedHead(gone.id, 0), AwaitedHead(new_id(), 0)]
    assert moved.next_offset > 0
    assert stores.catalog.moved_heads(tenant_id, [at_head, before, *still]) == {
        dataset.id: moved,
        quiet.id: None,
    }
    assert stores.catalog.moved_heads(tenant_id, [at_head]) == {dataset.id: None}
    assert stores.catalog.moved_heads(tenant_id, []) == {}
    neighbour = stores.tenants.add_tenant(f"neighbour-{tenant_id}")
    assert stores.catalog.moved_heads(neighbour, [before]) == {}


def test_delete_frees_the_name_and_cancels_the_jobs(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job], accept: Callable[[], Job]
) -> None:
    claimed, waiting = running(), accept()
    stores.catalog.delete(tenant_id, dataset.definition.name, version=None)
    with pytest.raises(NotFound):
        stores.catalog.get(tenant_id, dataset.id)
    with pytest.raises(NotFound):
        stores.catalog.delete(tenant_id, dataset.id, version=None)
    assert stores.catalog.create(tenant_id, new_id(), definition()).id != dataset.id
    assert {stores.jobs.get(tenant_id, job.id).state for job in (claimed, waiting)} == {JobState.CANCELLED}
    # The commit that was under way finds its jobs gone.
    assert stores.timeline.publish_one(tenant_id, commit_of([claimed], [message()])) == Fenced(
        valid_ids=frozenset()
    )
    with pytest.raises(NotFound):
        accept()


def test_delete_may_be_conditional_on_the_version(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    stores.timeline.publish_one(tenant_id, commit_of([running()], [message()]))
    with pytest.raises(PreconditionFailed) as refusal:
        stores.catalog.delete(tenant_id, dataset.id, version=0)
    assert refusal.value.facts == {"version": 1}
    stores.catalog.delete(tenant_id, dataset.id, version=1)


def test_delete_cancels_jobs_that_are_accepted_concurrently(stores: Stores, tenant_id: str) -> None:
    for number in range(5):
        dataset = stores.catalog.create(tenant_id, new_id(), definition(f"raced-{number}"))
        barrier = Barrier(4)

        def accept(dataset: Dataset = dataset, barrier: Barrier = barrier) -> list[str]:
            accepted: list[str] = []
            barrier.wait()
            try:
                while len(accepted) < 20:
                    job = stores.jobs.accept(tenant_id, new_job(dataset.id)).job
                    accepted.append(job.id)
            except NotFound:
                pass
            return accepted

        def delete(dataset: Dataset = dataset, barrier: Barrier = barrier) -> list[str]:
            barrier.wait()
            stores.catalog.delete(tenant_id, dataset.id, version=None)
            return []

        accepted = chain(*together([accept, accept, accept, delete]))
        assert {stores.jobs.get(tenant_id, job).state for job in accepted} <= {JobState.CANCELLED}


def test_upload_belongs_to_its_dataset(stores: Stores, tenant_id: str, dataset: Dataset) -> None:
    other = stores.catalog.create(tenant_id, new_id(), definition("other"))
    upload = Upload(
        id=new_id(),
        dataset_id=dataset.id,
        path="uploads/1",
        size_bytes=5_000_000_000,
        checksum="xxh3:89ab",
        created_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    )
    stores.catalog.add_upload(tenant_id, upload)
    second = msgspec.structs.replace(upload, id=new_id(), path="uploads/2")
    stores.catalog.add_upload(tenant_id, second)
    for wanted in ([upload, second], [second, upload], [upload, upload]):
        ids = [each.id for each in wanted]
        assert stores.catalog.get_uploads(tenant_id, dataset.id, ids) == tuple(wanted)
    for dataset_id, upload_id in ((other.id, upload.id), (dataset.id, new_id()), (dataset.id, "x")):
        with pytest.raises(NotFound, match=upload_id):
            stores.catalog.get_uploads(tenant_id, dataset_id, [upload_id])
    with pytest.raises(NotFound):
        stores.catalog.get_uploads(tenant_id, dataset.id, [upload.id, new_id()])
    stores.catalog.delete(tenant_id, dataset.id, version=None)
    with pytest.raises(NotFound):
        stores.catalog.add_upload(tenant_id, upload)
