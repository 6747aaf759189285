"""Claims: groups, leases and epochs. A lease gives liveness, the epoch gives safety."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from threading import Barrier

import msgspec
import pytest
from sqlalchemy import select

from app.core.catalog.values import Dataset
from app.core.jobs.errors import JobNotCancellable
from app.core.jobs.kinds.kind import WriteProcess
from app.core.jobs.kinds.write import RestoreTarget, SourceRound, WriteRequest
from app.core.jobs.repository import claim as claims
from app.core.jobs.tables import jobs
from app.core.jobs.values import Claim, Job, JobState, Progress, RunnableDataset
from app.infra.identifiers import new_id
from app.kernel.format.errors import Fault
from app.kernel.format.instant import InstantState
from app.kernel.format.operation import Operation
from app.kernel.format.rows.staged import StagedFile
from tests.support.lakehouse import RULES, claim_of, commit_of, definition, message, new_job
from tests.support.store_fixtures import Stores
from tests.support.threads import together

Accept = Callable[[], Job]
ClaimJobs = Callable[..., list[Job]]
BRIEF = msgspec.structs.replace(RULES, lease_seconds=0.05)
PROGRESS = Progress(stage="merge")


def expire_leases() -> None:
    """Longer than BRIEF's lease."""
    time.sleep(0.08)


def test_waiting_jobs_are_claimed_as_one_group_in_order_of_acceptance(
    accept: Accept, claim: ClaimJobs
) -> None:
    accepted = [accept().id for _ in range(4)]
    claimed = claim()
    assert [job.id for job in claimed] == accepted
    assert {(job.state, job.epoch, job.attempts) for job in claimed} == {(JobState.RUNNING, 1, 1)}
    assert all(job.started_at is not None for job in claimed)


SMALL = StagedFile(path="staged/a.arrow", size_bytes=3, checksum="x", rows=1, batches=(), content=b"row")


@pytest.mark.parametrize("end", ["committed", "failed", "cancelled", "dataset deleted"])
def test_rows_of_a_small_write_are_kept_for_claims_until_it_ends(
    stores: Stores, tenant_id: str, dataset: Dataset, claim: ClaimJobs, end: str
) -> None:
    request = WriteRequest(operation=Operation.UPSERT, staged=(SMALL,))
    accepted = stores.jobs.accept(tenant_id, new_job(dataset.id, request=request)).job
    without = msgspec.structs.replace(SMALL, content=None)
    assert accepted.write.staged == (without,)
    assert [job.write.staged for job in claim()] == [(SMALL,)]
    # Given back and claimed again, as after a worker died.
    stores.jobs.release(tenant_id, [Claim(job_id=accepted.id, epoch=1)])
    [job] = claim()
    assert job.write.staged == (SMALL,)
    assert stores.jobs.get(tenant_id, job.id).write.staged == (without,)
    match end:
        case "committed":
            stores.timeline.publish(tenant_id, [commit_of([job], [message()])])
        case "failed":
            assert stores.jobs.fail(tenant_id, claim_of(job), Fault(code="x", title="X", detail="x"))
        case "cancelled":
            stores.jobs.cancel(tenant_id, job.id)
        case _:
            stores.catalog.delete(tenant_id, dataset.id, version=None)
    assert stores.jobs.get(tenant_id, job.id).state.final
    with stores.database.tenant(tenant_id) as connection:
        kept = select(jobs.c.staged_rows).where(jobs.c.id == job.id)
        assert connection.execute(kept).scalar_one() is None


def test_rows_that_are_kept_with_the_jobs_of_a_group_are_bounded(
    stores: Stores, tenant_id: str, dataset: Dataset, claim: ClaimJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "_KEPT_BYTES_MAX", 7)
    request = WriteRequest(operation=Operation.UPSERT, staged=(SMALL,))
    for _ in range(5):
        stores.jobs.accept(tenant_id, new_job(dataset.id, request=request))
    many = msgspec.structs.replace(RULES, dataset_writers_max=9)
    assert [len(claim(many)) for _ in range(4)] == [2, 2, 1, 0]
    # A single write may have more.
    monkeypatch.setattr(claims, "_KEPT_BYTES_MAX", 1)
    stores.jobs.accept(tenant_id, new_job(dataset.id, request=request))
    assert len(claim(many)) == 1


def test_group_size_is_bounded_and_the_rest_waits(accept: Accept, claim: ClaimJobs) -> None:
    accepted = [accept().id for _ in range(3)]
    rules = msgspec.structs.replace(RULES, group_jobs_max=2, dataset_writers_max=2)
    assert [job.id for job in claim(rules)] == accepted[:2]
    assert [job.id for job in claim(rules)] == accepted[2:]


def test_claim_makes_the_instants_inflight(
    stores: Stores, tenant_id: str, dataset: Dataset, accept: Accept, claim: ClaimJobs
) -> None:
    accept(), accept()
    claim()
    page = stores.timeline.instants(tenant_id, dataset.id, page_size=9, page_token=None)
    assert [item.state for item in page.items] == [InstantState.INFLIGHT] * 2


def test_groups_with_live_leases_are_bounded(accept: Accept, claim: ClaimJobs) -> None:
    accept()
    assert len(claim()) == 1
    accept()
    assert claim() == []
    two = msgspec.structs.replace(RULES, dataset_writers_max=2)
    assert len(claim(two)) == 1
    accept()
    assert claim(two) == []


@pytest.mark.parametrize("end", ["committed", "given back", "lapsed"])
def test_beside_a_contended_group_no_other_is_claimed(
    stores: Stores, tenant_id: str, accept: Accept, claim: ClaimJobs, end: str
) -> None:
    rules = msgspec.structs.replace(RULES, dataset_writers_max=9, group_jobs_max=1)
    accept(), accept()
    [before] = claim(rules)
    [job] = claim(msgspec.structs.replace(rules, lease_seconds=3 if end == "lapsed" else 30))
    stores.jobs.contend(tenant_id, [job.claim])
    waiting = accept().id
    assert claim(rules) == []
    # A group that ran before is not affected.
    stores.timeline.publish(tenant_id, [commit_of([before], [message()])])
    assert claim(rules) == []
    match end:
        case "committed":
            stores.timeline.publish(tenant_id, [commit_of([job], [message(1)], read_version=1)])
            assert [each.id for each in claim(rules)] == [waiting]
        case "given back":
            stores.jobs.release(tenant_id, [job.claim])
        case _:
            time.sleep(3.1)
    if end != "committed":
        # The mark is that of a claim, and ends with it.
        assert [each.id for each in claim(rules)] == [job.id]
        assert [each.id for each in claim(rules)] == [waiting]


def test_lost_claim_does_not_keep_others_from_a_dataset(
    stores: Stores, tenant_id: str, accept: Accept, claim: ClaimJobs
) -> None:
    two = msgspec.structs.replace(RULES, dataset_writers_max=2, group_jobs_max=1)
    accept(), accept()
    [job] = claim(two)
    stores.jobs.release(tenant_id, [job.claim])
    [again] = claim(two)
    assert again.id == job.id
    stores.jobs.contend(tenant_id, [job.claim])
    assert len(claim(two)) == 1


def test_claim_without_waiting_jobs_is_empty(
    stores: Stores, tenant_id: str, dataset: Dataset, accept: Accept
) -> None:
    assert stores.jobs.claim(tenant_id, dataset.id, "w", RULES) == []
    assert stores.jobs.claim(tenant_id, new_id(), "w", RULES) == []
    accept()
    stores.catalog.delete(tenant_id, dataset.id, version=None)
    assert stores.jobs.claim(tenant_id, dataset.id, "w", RULES) == []


def test_one_of_racing_workers_gets_the_group(
    stores: Stores, tenant_id: str, dataset: Dataset, accept: Accept
) -> None:
    for _ in range(10):
        accept()
        barrier = Barrier(3)

        def claim(barrier: Barrier = barrier) -> list[Job]:
            barrier.wait()
            return stores.jobs.claim(tenant_id, dataset.id, "racer", RULES)

        [claimed_job] = [job for group in together([claim] * 3) for job in group]
        stores.jobs.cancel(tenant_id, claimed_job.id)


def test_racing_workers_never_share_a_job_nor_exceed_the_bound(
    stores: Stores, tenant_id: str, dataset: Dataset, accept: Accept
) -> None:
    accepted = [accept().id for _ in range(12)]
    rules = msgspec.structs.replace(RULES, group_jobs_max=2, dataset_writers_max=4)
    groups = together([lambda: stores.jobs.claim(tenant_id, dataset.id, "w", rules)] * 8)
    taken = sorted([job.id for job in group] for group in groups if group)
    assert taken == [accepted[start : start + 2] for start in range(0, 8, 2)]


def test_job_with_an_expired_lease_is_claimed_alone_with_a_later_epoch(
    stores: Stores, tenant_id: str, accept: Accept, claim: ClaimJobs
) -> None:
    first, second, third = accept(), accept(), accept()
    assert len(claim(BRIEF)) == 3
    expire_leases()
    [retried] = claim(BRIEF)
    assert (retried.id, retried.attempts) == (first.id, 2)
    assert retried.epoch > 1
    expire_leases()
    [again] = claim()
    assert (again.id, again.attempts) == (first.id, 3)
    assert claim() == []
    assert {stores.jobs.get(tenant_id, job.id).state for job in (second, third)} == {JobState.QUEUED}


def test_all_claims_of_an_expired_group_become_void_at_once(
    stores: Stores, tenant_id: str, accept: Accept, claim: ClaimJobs
) -> None:
    """A slow worker must not go on with the jobs of its group that no worker has taken over yet."""
    accept(), accept()
    slow = [claim_of(job) for job in claim(BRIEF)]
    expire_leases()
    assert len(claim()) == 1
    assert stores.jobs.heartbeat(tenant_id, slow, lease_seconds=30, progress=PROGRESS) == set()


def test_expired_lease_without_a_successor_can_be_extended(
    stores: Stores, tenant_id: str, accept: Accept, claim: ClaimJobs
) -> None:
    accept()
    [job] = claim(BRIEF)
    expire_leases()
    assert stores.jobs.heartbeat(tenant_id, [claim_of(job)], lease_seconds=30, progress=PROGRESS) == {job.id}
    assert claim() == []


def test_abandoned_job_is_claimed_before_later_jobs(accept: Accept, claim: ClaimJobs) -> None:
    old = accept()
    claim(BRIEF)
    expire_leases()
    young = accept()
    many = msgspec.structs.replace(RULES, dataset_writers_max=9)
    assert [job.id for job in claim(many)] == [old.id]
    assert [job.id for job in claim(many)] == [young.id]


def test_job_before_an_abandoned_one_is_claimed_alone(
    stores: Stores, tenant_id: str, accept: Accept, claim: ClaimJobs
) -> None:
    first, second = accept(), accept()
    claimed_job = claim(BRIEF)
    stores.jobs.release(tenant_id, [claim_of(claimed_job[0])])
    expire_leases()
    many = msgspec.structs.replace(RULES, dataset_writers_max=9)
    assert [[job.id for job in claim(many)] for _ in range(2)] == [[first.id], [second.id]]


def test_released_jobs_are_claimed_alone_and_their_attempts_count(
    stores: Stores, tenant_id: str, accept: Accept, claim: ClaimJobs
) -> None:
    accepted = [accept().id, accept().id]
    claimed_job = claim()
    stores.jobs.release(tenant_id, [claim_of(job) for job in claimed_job])
    many = msgspec.structs.replace(RULES, dataset_writers_max=9)
    for job_id in accepted:
        assert [(job.id, job.attempts, job.epoch) for job in claim(many)] == [(job_id, 2, 2)]
    stale = [claim_of(job) for job in claimed_job]
    assert stores.jobs.heartbeat(tenant_id, stale, lease_seconds=30, progress=PROGRESS) == set()
    stores.jobs.release(tenant_id, stale)
    assert {stores.jobs.get(tenant_id, job_id).state for job_id in accepted} == {JobState.RUNNING}


@pytest.mark.parametrize("abandoned", [True, False])
def test_job_out_of_attempts_fails_and_the_next_is_claimed(
    stores: Stores, tenant_id: str, dataset: Dataset, accept: Accept, claim: ClaimJobs, abandoned: bool
) -> None:
    poison = accept()
    for _ in range(RULES.attempts_max):
        [claimed_job] = claim(BRIEF)
        assert claimed_job.id == poison.id
        expire_leases() if abandoned else stores.jobs.release(tenant_id, [claim_of(claimed_job)])
    healthy = accept()
    assert [job.id for job in claim()] == [healthy.id]
    failed = stores.jobs.get(tenant_id, poison.id)
    assert failed.error is not None
    assert (failed.state, failed.error.code) == (JobState.FAILED, "attempts-exhausted")
    assert failed.error.facts == {"attempts": RULES.attempts_max}
    page = stores.timeline.instants(tenant_id, dataset.id, page_size=9, page_token=None)
    assert [item.state for item in page.items if item.job_id == poison.id] == [InstantState.ROLLED_BACK]


FAULT = Fault(code="internal", title="t", detail="d")
STALE_ACTS: dict[str, Callable[[Stores, str, Job], object]] = {
    "heartbeat": lambda stores, tenant_id, job: stores.jobs.heartbeat(
        tenant_id, [claim_of(job)], lease_seconds=99, progress=Progress(stage="stale")
    ),
    "fail": lambda stores, tenant_id, job: stores.jobs.fail(tenant_id, claim_of(job), FAULT),
    "release": lambda stores, tenant_id, job: stores.jobs.release(tenant_id, [claim_of(job)]),
    "publish": lambda stores, tenant_id, job: stores.timeline.publish_one(
        tenant_id, commit_of([job], [message()])
    ),
}


@pytest.mark.parametrize("act", STALE_ACTS)
def test_stale_epoch_changes_nothing(
    stores: Stores, tenant_id: str, dataset: Dataset, accept: Accept, claim: ClaimJobs, act: str
) -> None:
    accept()
    [zombie] = claim(BRIEF)
    expire_leases()
    [holder] = claim()
    before = stores.jobs.get(tenant_id, holder.id)
    STALE_ACTS[act](stores, tenant_id, zombie)
    assert stores.jobs.get(tenant_id, holder.id) == before
    assert stores.catalog.get(tenant_id, dataset.id).version == 0
    assert stores.jobs.heartbeat(tenant_id, [claim_of(holder)], lease_seconds=9, progress=PROGRESS) == {
        holder.id
    }


def test_runnable_lists_datasets_of_all_tenants(stores: Stores) -> None:
    expected = []
    for number in range(3):
        tenant_id = stores.tenants.add_tenant(f"runnable-{number}-{new_id()}")
        dataset = stores.catalog.create(tenant_id, new_id(), definition())
        stores.jobs.accept(tenant_id, new_job(dataset.id))
        stores.jobs.accept(tenant_id, new_job(dataset.id))
        expected.append(RunnableDataset(tenant_id=tenant_id, dataset_id=dataset.id))
    found = [dataset for dataset in stores.jobs.runnable(10_000) if dataset in expected]
    assert sorted(found, key=expected.index) == expected
    assert len(stores.jobs.runnable(2)) == 2


def test_runnable_omits_leased_datasets_and_lists_busy_ones_last(
    stores: Stores, tenant_id: str, dataset: Dataset, accept: Accept, claim: ClaimJobs
) -> None:
    this = RunnableDataset(tenant_id=tenant_id, dataset_id=dataset.id)
    accept()
    [brief] = claim()
    assert this not in stores.jobs.runnable(10_000)
    stores.jobs.heartbeat(tenant_id, [claim_of(brief)], lease_seconds=0.01, progress=PROGRESS)
    expire_leases()
    assert this in stores.jobs.runnable(10_000)
    assert len(claim()) == 1
    accept()
    idle = stores.catalog.create(tenant_id, new_id(), definition("idle"))
    stores.jobs.accept(tenant_id, new_job(idle.id))
    order = stores.jobs.runnable(10_000)
    assert order.index(this) > order.index(RunnableDataset(tenant_id=tenant_id, dataset_id=idle.id))


def test_write_of_another_kind_is_not_claimed_and_not_overtaken(
    stores: Stores, tenant_id: str, dataset: Dataset, accept: Accept, claim: ClaimJobs
) -> None:
    plain = msgspec.structs.replace(RULES, process=WriteProcess.WORKER)
    derived = msgspec.structs.replace(RULES, process=WriteProcess.DERIVED)
    before = accept()
    derives = WriteRequest(operation=Operation.SNAPSHOT, derived=True)
    refresh = stores.jobs.accept(tenant_id, new_job(dataset.id, request=derives)).job
    restores = WriteRequest(operation=Operation.SNAPSHOT, restores=RestoreTarget(version=0))
    restore = stores.jobs.accept(tenant_id, new_job(dataset.id, request=restores)).job
    request = WriteRequest(
        operation=Operation.UPSERT, round=SourceRound(source_id=new_id(), source="in", transforms=True)
    )
    transformed = stores.jobs.accept(tenant_id, new_job(dataset.id, request=request)).job
    for own, other, job in [
        (plain, derived, before),
        (derived, plain, refresh),
        (plain, derived, restore),
        (derived, plain, transformed),
    ]:
        assert stores.jobs.next_write(tenant_id, dataset.id) is own.process
        assert claim(other) == []
        [held] = claim(own)
        assert held.id == job.id
        stores.jobs.fail(tenant_id, held.claim, Fault(code="x", title="x", detail="x"))
    assert stores.jobs.next_write(tenant_id, dataset.id) is None


def test_claims_heartbeats_commits_and_cancels_do_not_deadlock(
    stores: Stores, tenant_id: str, dataset: Dataset, accept: Accept
) -> None:
    """Everything that touches several jobs at once, on leases so short that they lapse all the time."""
    deadline = time.monotonic() + 2
    rules = msgspec.structs.replace(RULES, lease_seconds=0.005, dataset_writers_max=3, attempts_max=10_000)

    def produce() -> int:
        done = 0
        while time.monotonic() < deadline:
            job = accept()
            done += 1
            if done % 3 == 0:
                with suppress(JobNotCancellable):
                    stores.jobs.cancel(tenant_id, job.id)
        return done

    def work() -> int:
        published = 0
        while time.monotonic() < deadline:
            claimed_job = stores.jobs.claim(tenant_id, dataset.id, "w", rules)
            if not claimed_job:
                continue
            stores.jobs.heartbeat(
                tenant_id, [claim_of(job) for job in claimed_job], lease_seconds=0.005, progress=PROGRESS
            )
            version = stores.catalog.get(tenant_id, dataset.id).version
            commit = commit_of(claimed_job, [message(int(new_id()[-6:], 16))], read_version=version)
            result = stores.timeline.publish_one(tenant_id, commit)
            published += hasattr(result, "next_offset")
        return published

    *_, first, second, third = together([produce, produce, work, work, work])
    head = stores.catalog.get(tenant_id, dataset.id)
    assert head.version == head.next_offset == first + second + third > 0
