"""Accepting, finding, cancelling and ending jobs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Barrier

import msgspec
import pytest

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.idempotency.errors import IdempotencyMismatch
from app.core.jobs.errors import JobNotCancellable
from app.core.jobs.tables import idempotency
from app.core.jobs.values import Claim, Job, JobState, Progress
from app.core.timeline.values import Fenced
from app.infra.identifiers import new_id
from app.kernel.format.errors import Fault
from app.kernel.format.instant import InstantState, RowCounts
from app.kernel.format.rows.formats import Format
from app.kernel.format.rows.staged import RawInput
from tests.support.lakehouse import claim_of, commit_of, definition, message, new_job
from tests.support.store_fixtures import Stores
from tests.support.threads import together

FAULT = Fault(code="internal", title="t", detail="d", facts={"keys": [{"id": "a\0b", "n": 1}], "count": 2})


def instant_state(stores: Stores, tenant_id: str, job: Job) -> InstantState:
    page = stores.timeline.instants(tenant_id, job.dataset_id, page_size=1000, page_token=None)
    [record] = [item for item in page.items if item.job_id == job.id]
    return record.state


def test_accepted_job_waits_with_its_instant_and_notifies_a_worker(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    stores.outbox.relay(lambda messages: None, 1000)
    raw = RawInput(path="input/1", size_bytes=9, checksum="c", format=next(iter(Format)), gzip=True)
    new = new_job(dataset.id)
    new = msgspec.structs.replace(new, request=msgspec.structs.replace(new.request, raw=raw))
    accepted = stores.jobs.accept(tenant_id, new)
    job = accepted.job
    assert not accepted.is_replay
    assert (job.id, job.instant_id, job.request, job.state) == (
        new.id,
        new.instant_id,
        new.request,
        JobState.QUEUED,
    )
    assert (job.attempts, job.epoch, job.committed_version, job.error, job.rows) == (
        0,
        0,
        None,
        None,
        RowCounts(),
    )
    assert stores.jobs.get(tenant_id, job.id) == job
    assert instant_state(stores, tenant_id, job) is InstantState.REQUESTED
    sent: list[str] = []
    stores.outbox.relay(
        lambda messages: sent.extend(f"{each.topic} {each.tenant_id} {each.dataset_id}" for each in messages),
        10,
    )
    assert sent == [f"work {tenant_id} {dataset.id}"]


@pytest.mark.parametrize(
    "dataset_id", [pytest.param(new_id(), id="new"), "00000000-0000-7000-8000-000000000009"]
)
def test_unknown_dataset_accepts_no_job(stores: Stores, tenant_id: str, dataset_id: str) -> None:
    with pytest.raises(NotFound):
        stores.jobs.accept(tenant_id, new_job(dataset_id))


@pytest.mark.parametrize("job_id", [pytest.param(new_id(), id="new"), "", "no uuid", "a\0b"])
def test_unknown_ids_find_no_job(stores: Stores, tenant_id: str, job_id: str) -> None:
    with pytest.raises(NotFound):
        stores.jobs.get(tenant_id, job_id)
    with pytest.raises(NotFound):
        stores.jobs.cancel(tenant_id, job_id)


def test_known_idempotency_key_replays_its_job(stores: Stores, tenant_id: str, dataset: Dataset) -> None:
    first = stores.jobs.accept(tenant_id, new_job(dataset.id, key="k"))
    again = stores.jobs.accept(tenant_id, new_job(dataset.id, key="k"))
    assert (again.is_replay, again.job) == (True, first.job)
    assert stores.jobs.find_by_key(tenant_id, dataset.id, "k", "hash") == first.job
    assert stores.jobs.find_by_key(tenant_id, dataset.id, "other", "hash") is None
    assert len(stores.timeline.instants(tenant_id, dataset.id, page_size=9, page_token=None).items) == 1


def test_idempotency_key_belongs_to_one_dataset(stores: Stores, tenant_id: str, dataset: Dataset) -> None:
    other = stores.catalog.create(tenant_id, new_id(), definition("other"))
    stores.jobs.accept(tenant_id, new_job(dataset.id, key="k"))
    assert not stores.jobs.accept(tenant_id, new_job(other.id, key="k", request_hash="another")).is_replay


def test_known_idempotency_key_with_another_request_is_refused(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    job = stores.jobs.accept(tenant_id, new_job(dataset.id, key="k")).job
    with pytest.raises(IdempotencyMismatch) as refusal:
        stores.jobs.accept(tenant_id, new_job(dataset.id, key="k", request_hash="another"))
    assert refusal.value.facts == {"job_id": job.id}
    with pytest.raises(IdempotencyMismatch):
        stores.jobs.find_by_key(tenant_id, dataset.id, "k", "another")


SERVICE_MADE = [
    "internal",
    "storage-full",
    "storage-unavailable",
    "unavailable",
    "attempts-exhausted",
    "corrupt-file",
]


@pytest.mark.parametrize(
    ("code", "taken_over"), [(code, True) for code in SERVICE_MADE] + [("duplicate-key", False)]
)
def test_failure_caused_by_the_service_frees_the_key(
    stores: Stores,
    tenant_id: str,
    dataset: Dataset,
    claim: Callable[..., list[Job]],
    code: str,
    taken_over: bool,
) -> None:
    first = stores.jobs.accept(tenant_id, new_job(dataset.id, key="k")).job
    [claimed_job] = claim()
    assert stores.jobs.fail(tenant_id, claim_of(claimed_job), msgspec.structs.replace(FAULT, code=code))
    assert (stores.jobs.find_by_key(tenant_id, dataset.id, "k", "hash") is None) == taken_over
    again = stores.jobs.accept(tenant_id, new_job(dataset.id, key="k"))
    assert again.is_replay != taken_over
    assert (again.job.id != first.id) == taken_over
    assert stores.jobs.accept(tenant_id, new_job(dataset.id, key="k")).job.id == again.job.id


@pytest.mark.parametrize("after_failure", [False, True])
def test_racing_requests_with_one_key_make_one_job(
    stores: Stores, tenant_id: str, dataset: Dataset, claim: Callable[..., list[Job]], after_failure: bool
) -> None:
    for number in range(5):
        key = f"raced-{number}"
        if after_failure:
            stores.jobs.accept(tenant_id, new_job(dataset.id, key=key))
            for claimed_job in claim():
                stores.jobs.fail(tenant_id, claim_of(claimed_job), FAULT)
        barrier = Barrier(6)

        def accept(key: str = key, barrier: Barrier = barrier) -> tuple[bool, str]:
            barrier.wait()
            accepted = stores.jobs.accept(tenant_id, new_job(dataset.id, key=key))
            return accepted.is_replay, accepted.job.id

        outcomes = together([accept] * 6)
        assert sorted(replayed for replayed, _ in outcomes) == [False] + [True] * 5
        assert len({job_id for _, job_id in outcomes}) == 1


def test_second_request_waits_until_the_first_commits_or_rolls_back(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    reserved = {"dataset_id": dataset.id, "key": "k", "request_hash": "hash", "job_id": new_id()}
    with ThreadPoolExecutor(1) as pool:
        with stores.database.tenant(tenant_id) as connection:
            connection.execute(idempotency.insert().values(reserved))
            second = pool.submit(stores.jobs.accept, tenant_id, new_job(dataset.id, key="k"))
            assert wait([second], timeout=0.3).not_done
            connection.rollback()
        assert not second.result(timeout=10).is_replay


def test_cancel_ends_a_waiting_or_running_job_once(
    stores: Stores, tenant_id: str, accept: Callable[[], Job], running: Callable[[], Job]
) -> None:
    claimed_job = running()
    for job in (claimed_job, accept()):
        cancelled = stores.jobs.cancel(tenant_id, job.id)
        assert cancelled.state is JobState.CANCELLED
        assert cancelled.finished_at is not None
        assert cancelled.epoch == job.epoch + 1
        assert instant_state(stores, tenant_id, job) is InstantState.ROLLED_BACK
        with pytest.raises(JobNotCancellable) as refusal:
            stores.jobs.cancel(tenant_id, job.id)
        assert refusal.value.facts == {"state": "cancelled"}
    assert stores.timeline.publish_one(tenant_id, commit_of([claimed_job], [message()])) == Fenced(
        valid_ids=frozenset()
    )


def test_succeeded_or_failed_job_cannot_be_cancelled(
    stores: Stores, tenant_id: str, running: Callable[[], Job]
) -> None:
    done = running()
    stores.timeline.publish_one(tenant_id, commit_of([done], [message()]))
    failed = running()
    assert stores.jobs.fail(tenant_id, claim_of(failed), FAULT)
    for job, state in ((done, "succeeded"), (failed, "failed")):
        with pytest.raises(JobNotCancellable) as refusal:
            stores.jobs.cancel(tenant_id, job.id)
        assert refusal.value.facts == {"state": state}


def test_fail_stores_the_error_and_requires_the_claim(
    stores: Stores, tenant_id: str, running: Callable[[], Job]
) -> None:
    job = running()
    stale = Claim(job_id=job.id, epoch=job.epoch - 1)
    assert not stores.jobs.fail(tenant_id, stale, FAULT)
    assert stores.jobs.get(tenant_id, job.id).state is JobState.RUNNING
    assert stores.jobs.fail(tenant_id, claim_of(job), FAULT)
    failed = stores.jobs.get(tenant_id, job.id)
    assert (failed.state, failed.error) == (JobState.FAILED, FAULT)
    assert instant_state(stores, tenant_id, job) is InstantState.ROLLED_BACK
    assert not stores.jobs.fail(tenant_id, claim_of(job), FAULT)


def test_heartbeat_extends_valid_claims_and_stores_progress(
    stores: Stores, tenant_id: str, accept: Callable[[], Job], claim: Callable[..., list[Job]]
) -> None:
    accept(), accept(), accept()
    first, second, third = claim()
    stores.jobs.cancel(tenant_id, second.id)
    claims = [claim_of(first), claim_of(second), Claim(job_id=third.id, epoch=third.epoch + 1)]
    progress = Progress(stage="merge", done=3, total=8)
    assert stores.jobs.heartbeat(tenant_id, claims, lease_seconds=30, progress=progress) == {first.id}
    assert stores.jobs.get(tenant_id, first.id).progress == progress
    assert stores.jobs.get(tenant_id, third.id).progress != progress
    assert stores.jobs.heartbeat(tenant_id, [], lease_seconds=30, progress=progress) == set()
