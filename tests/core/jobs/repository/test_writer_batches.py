"""Batches of streams: each commits once, in the order of their numbers."""

from __future__ import annotations

import msgspec
import pytest

from app.core.catalog.values import Dataset
from app.core.jobs.errors import BatchMismatch, BatchOutOfOrder
from app.core.jobs.values import Accepted, NewJob
from app.infra.identifiers import new_id
from app.kernel.commit.write_options import WriteOptions
from app.kernel.format.errors import Fault, HeadwaterError
from tests.support.lakehouse import RULES, definition, new_job
from tests.support.store_fixtures import Stores
from tests.support.threads import together


def batch(dataset: Dataset, number: int, writer: str = "w", rows: str | None = None) -> NewJob:
    new = new_job(dataset.id)
    options = WriteOptions(writer_id=writer, batch_id=number)
    request = msgspec.structs.replace(new.request, options=options)
    return msgspec.structs.replace(new, request=request, rows_digest=rows)


def test_known_batch_returns_its_first_job(stores: Stores, tenant_id: str, dataset: Dataset) -> None:
    first = stores.jobs.accept(tenant_id, batch(dataset, 3))
    later = stores.jobs.accept(tenant_id, batch(dataset, 4))
    assert (first.is_replay, later.is_replay) == (False, False)
    for known, number in ((first, 3), (later, 4)):
        again = stores.jobs.accept(tenant_id, batch(dataset, number))
        assert (again.job.id, again.is_replay) == (known.job.id, True)
        found = stores.jobs.find_by_batch(tenant_id, dataset.id, "w", number, None)
        assert found is not None
        assert found.id == known.job.id


def test_known_batch_with_other_rows_is_refused(stores: Stores, tenant_id: str, dataset: Dataset) -> None:
    first = stores.jobs.accept(tenant_id, batch(dataset, 3, rows="a"))
    assert stores.jobs.accept(tenant_id, batch(dataset, 3, rows="a")).job.id == first.job.id
    with pytest.raises(BatchMismatch) as refused:
        stores.jobs.accept(tenant_id, batch(dataset, 3, rows="b"))
    assert refused.value.facts == {"job_id": first.job.id}
    with pytest.raises(BatchMismatch):
        stores.jobs.find_by_batch(tenant_id, dataset.id, "w", 3, "b")
    assert stores.jobs.accept(tenant_id, batch(dataset, 3)).is_replay, "rows of uploads are not compared"
    both = stores.jobs.accept_all(
        tenant_id, [batch(dataset, 4, rows="a"), batch(dataset, 4, rows="b"), batch(dataset, 4, rows="a")]
    )
    assert [type(each).__name__ for each in both] == ["Accepted", "BatchMismatch", "Accepted"]


def test_batch_that_an_earlier_release_accepted_is_not_compared(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    first = stores.jobs.accept(tenant_id, batch(dataset, 3))
    again = stores.jobs.accept(tenant_id, batch(dataset, 3, rows="b"))
    assert (again.job.id, again.is_replay) == (first.job.id, True)


def test_batch_that_the_service_failed_takes_other_rows(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    stores.jobs.accept(tenant_id, batch(dataset, 1, rows="a"))
    [claimed] = stores.jobs.claim(tenant_id, dataset.id, "worker", RULES)
    stores.jobs.fail(tenant_id, claimed.claim, Fault(code="storage-full", title="t", detail="d"))
    assert not stores.jobs.accept(tenant_id, batch(dataset, 1, rows="b")).is_replay
    with pytest.raises(BatchMismatch):
        stores.jobs.accept(tenant_id, batch(dataset, 1, rows="a"))


def test_lower_unknown_batch_number_is_out_of_order(stores: Stores, tenant_id: str, dataset: Dataset) -> None:
    stores.jobs.accept(tenant_id, batch(dataset, 7))
    with pytest.raises(BatchOutOfOrder) as refused:
        stores.jobs.accept(tenant_id, batch(dataset, 5))
    assert refused.value.facts == {"last_batch_id": 7}
    with pytest.raises(BatchOutOfOrder):
        stores.jobs.find_by_batch(tenant_id, dataset.id, "w", 5, None)
    assert stores.jobs.find_by_batch(tenant_id, dataset.id, "w", 8, None) is None
    assert len(stores.jobs.claim(tenant_id, dataset.id, "worker", RULES)) == 1


def test_writers_and_datasets_number_their_own_batches(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    other = stores.catalog.create(tenant_id, new_id(), definition("other"))
    stores.jobs.accept(tenant_id, batch(dataset, 7))
    assert not stores.jobs.accept(tenant_id, batch(dataset, 1, "x")).is_replay
    assert not stores.jobs.accept(tenant_id, batch(other, 1)).is_replay


def test_batches_of_one_transaction_are_accepted_in_order(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    new = [batch(dataset, number) for number in (1, 3, 2, 3, 4)]
    outcomes = stores.jobs.accept_all(tenant_id, [*new, new_job(dataset.id)])
    kinds = [
        type(outcome).__name__ if isinstance(outcome, HeadwaterError) else outcome.is_replay
        for outcome in outcomes
    ]
    assert kinds == [False, False, "BatchOutOfOrder", True, False, False]
    replay = outcomes[3]
    assert isinstance(replay, Accepted)
    assert replay.job.id == new[1].id


def test_job_failed_by_the_service_frees_its_batch(stores: Stores, tenant_id: str, dataset: Dataset) -> None:
    for code, freed in (("duplicate-key", False), ("storage-full", True)):
        number = {"duplicate-key": 1, "storage-full": 2}[code]
        first = stores.jobs.accept(tenant_id, batch(dataset, number)).job
        [claimed] = stores.jobs.claim(tenant_id, dataset.id, "worker", RULES)
        stores.jobs.fail(tenant_id, claimed.claim, Fault(code=code, title="t", detail="d"))
        again = stores.jobs.accept(tenant_id, batch(dataset, number))
        assert (again.job.id != first.id, not again.is_replay) == (freed, freed)
    third = stores.jobs.accept(tenant_id, batch(dataset, 2))
    assert (third.job.id, third.is_replay) == (again.job.id, True)


def test_racing_requests_with_one_batch_make_one_job(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    outcomes = together([lambda: stores.jobs.accept(tenant_id, batch(dataset, 1))] * 8)
    assert len({outcome.job.id for outcome in outcomes}) == 1
    assert [outcome.is_replay for outcome in outcomes].count(False) == 1
    assert len(stores.jobs.claim(tenant_id, dataset.id, "worker", RULES)) == 1
