"""Transactions: writes to several datasets that are claimed, published and ended together."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec
import pytest
from sqlalchemy import Connection

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.idempotency.errors import IdempotencyMismatch
from app.core.jobs.repository import claim
from app.core.jobs.values import Job, JobState, Progress
from app.core.timeline.values import Fenced, Published
from app.features.transactions.values import AcceptedTransaction, NewTransaction, Transaction
from app.infra.identifiers import new_id
from app.kernel.commit.conflict import Conflicted
from app.kernel.format.errors import CommitConflict, Fault
from tests.support.lakehouse import RULES, claim_of, commit_of, definition, message, new_job
from tests.support.store_fixtures import Stores
from tests.support.threads import together

Begin = Callable[..., Transaction]
Claim = Callable[..., list[Job]]
FAULT = Fault(code="duplicate-key", title="t", detail="the key 4711 occurs twice", facts={"key": 4711})


@pytest.fixture
def datasets(stores: Stores, tenant_id: str) -> list[Dataset]:
    """In the order of their ids."""
    made = [stores.catalog.create(tenant_id, new_id(), definition(f"d{number}")) for number in range(3)]
    return sorted(made, key=lambda dataset: dataset.id)


@pytest.fixture
def begin(stores: Stores, tenant_id: str) -> Begin:
    """Accepts a transaction of one write to each of the datasets."""

    def run(datasets: Sequence[Dataset], **settings: str) -> Transaction:
        jobs = tuple(new_job(dataset.id) for dataset in datasets)
        return stores.transactions.accept(
            tenant_id, NewTransaction(id=new_id(), jobs=jobs, **settings)
        ).transaction

    return run


@pytest.fixture
def claim_in(stores: Stores, tenant_id: str) -> Claim:
    def run(dataset: Dataset, rules: object = RULES) -> list[Job]:
        return stores.jobs.claim(tenant_id, dataset.id, "worker", rules)  # type: ignore[arg-type]

    return run


def states(stores: Stores, tenant_id: str, transaction: Transaction) -> list[JobState]:
    return [job.state for job in stores.transactions.get(tenant_id, transaction.id).jobs]


def publish(stores: Stores, tenant_id: str, claimed: Sequence[Job], **settings: object) -> object:
    commits = [msgspec.structs.replace(commit_of([job], [message()]), **settings) for job in claimed]
    return stores.timeline.publish(tenant_id, commits)


def test_writes_of_a_transaction_are_claimed_together_from_any_dataset(
    stores: Stores, tenant_id: str, datasets: list[Dataset], begin: Begin, claim_in: Claim
) -> None:
    for dataset in datasets:
        transaction = begin(datasets[::-1])
        claimed = claim_in(dataset)
        assert [job.id for job in claimed] == [job.id for job in transaction.jobs]
        assert {job.transaction_id for job in claimed} == {transaction.id}
        assert states(stores, tenant_id, transaction) == [JobState.RUNNING] * 3
        assert [claim_in(each) for each in datasets] == [[]] * 3
        stores.jobs.cancel(tenant_id, claimed[0].id)


def test_transaction_waits_for_earlier_jobs_in_any_of_its_datasets(
    stores: Stores, tenant_id: str, datasets: list[Dataset], begin: Begin, claim_in: Claim
) -> None:
    first, second, _ = datasets
    earlier = stores.jobs.accept(tenant_id, new_job(second.id)).job
    begin([first, second])
    later = stores.jobs.accept(tenant_id, new_job(first.id)).job
    assert claim_in(first) == []
    assert [job.id for job in claim_in(second)] == [earlier.id]
    assert claim_in(first) == claim_in(second) == []
    stores.jobs.cancel(tenant_id, earlier.id)
    assert len(claim_in(second)) == 2
    assert claim_in(first) == []
    assert later.state is JobState.QUEUED


def test_transaction_shares_no_commit_and_waits_for_every_running_group(
    stores: Stores, tenant_id: str, datasets: list[Dataset], begin: Begin, claim_in: Claim
) -> None:
    first, second, _ = datasets
    many = msgspec.structs.replace(RULES, dataset_writers_max=4)
    before = stores.jobs.accept(tenant_id, new_job(first.id)).job
    begin([first, second])
    stores.jobs.accept(tenant_id, new_job(first.id))
    assert [job.id for job in claim_in(first, many)] == [before.id]
    assert claim_in(first, many) == claim_in(second, many) == []
    stores.jobs.cancel(tenant_id, before.id)
    assert len(claim_in(first, many)) == 2


def test_transaction_accepted_during_a_claim_is_claimed_whole(
    stores: Stores,
    tenant_id: str,
    datasets: list[Dataset],
    begin: Begin,
    claim_in: Claim,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    next_group = claim._next_group
    waiting = stores.jobs.accept(tenant_id, new_job(datasets[0].id)).job
    accepted: list[Transaction] = []

    def accept_first(connection: Connection, dataset_id: str, jobs_max: int) -> list[str] | None:
        # The claim holds its locks and has found that the next write is of no transaction.
        stores.jobs.cancel(tenant_id, waiting.id)
        accepted.append(begin(datasets))
        return next_group(connection, dataset_id, jobs_max)

    monkeypatch.setattr(claim, "_next_group", accept_first)
    claimed = claim_in(datasets[0])
    assert [job.id for job in claimed] == [job.id for job in accepted[0].jobs]
    assert len(accepted) == 1


def test_transaction_is_published_as_one_version_of_each_dataset(
    stores: Stores, tenant_id: str, datasets: list[Dataset], begin: Begin, claim_in: Claim
) -> None:
    transaction = begin(datasets)
    outcome = publish(stores, tenant_id, claim_in(datasets[0]))
    assert outcome == (Published(version=1, first_offset=0, next_offset=1),) * 3
    assert states(stores, tenant_id, transaction) == [JobState.SUCCEEDED] * 3
    jobs_of = {job.dataset_id: [job.id] for job in transaction.jobs}
    assert stores.timeline.outcome_of(tenant_id, jobs_of) == outcome
    assert [stores.catalog.get(tenant_id, dataset.id).version for dataset in datasets] == [1, 1, 1]


def test_conflict_in_one_dataset_publishes_none(
    stores: Stores, tenant_id: str, datasets: list[Dataset], begin: Begin, claim_in: Claim
) -> None:
    first, second, _ = datasets
    begin([first, second])
    claimed = claim_in(first)
    many = msgspec.structs.replace(RULES, dataset_writers_max=4)
    stores.jobs.accept(tenant_id, new_job(second.id))
    publish(stores, tenant_id, claim_in(second, many))
    outcome = publish(stores, tenant_id, claimed)
    assert isinstance(outcome, Conflicted)
    assert (outcome.dataset_id, outcome.head_version) == (second.id, 1)
    assert stores.catalog.get(tenant_id, first.id).version == 0
    claims = [claim_of(job) for job in claimed]
    extended = stores.jobs.heartbeat(tenant_id, claims, lease_seconds=9, progress=Progress(stage="merge"))
    assert len(extended) == 2


def test_unmatched_expected_version_publishes_none(
    stores: Stores, tenant_id: str, datasets: list[Dataset], begin: Begin, claim_in: Claim
) -> None:
    begin(datasets[:2])
    claimed = claim_in(datasets[0])
    with pytest.raises(CommitConflict) as refused:
        publish(stores, tenant_id, claimed, expected_version=7)
    assert refused.value.facts["head_version"] == 0
    assert [stores.catalog.get(tenant_id, dataset.id).version for dataset in datasets] == [0, 0, 0]


def test_failed_job_fails_its_transaction_and_is_named(
    stores: Stores, tenant_id: str, datasets: list[Dataset], begin: Begin, claim_in: Claim
) -> None:
    transaction = begin(datasets)
    claimed = claim_in(datasets[1])
    assert stores.jobs.fail(tenant_id, claimed[1].claim, FAULT)
    found = stores.transactions.get(tenant_id, transaction.id)
    assert (found.state, found.error, found.failed_job) == (JobState.FAILED, FAULT, found.jobs[1])
    for other in (found.jobs[0], found.jobs[2]):
        assert other.error is not None
        assert other.error.code == "transaction-failed"
        assert other.error.facts == {"cause": "duplicate-key"}
        assert FAULT.detail not in other.error.detail
    assert not stores.jobs.fail(tenant_id, claimed[0].claim, FAULT)
    assert publish(stores, tenant_id, claimed) == Fenced(valid_ids=frozenset())


def test_cancelled_job_cancels_its_transaction_and_notifies_its_datasets(
    stores: Stores, tenant_id: str, datasets: list[Dataset], begin: Begin
) -> None:
    transaction = begin(datasets)
    stores.outbox.relay(lambda _: None, 100)
    stores.jobs.cancel(tenant_id, transaction.jobs[2].id)
    assert states(stores, tenant_id, transaction) == [JobState.CANCELLED] * 3
    woken: list[tuple[str, str]] = []
    stores.outbox.relay(lambda sent: woken.extend((each.topic, each.dataset_id) for each in sent), 100)
    # What waits behind the jobs, and the requests that wait for them.
    assert sorted(woken) == [(topic, each.id) for topic in ("changes", "work") for each in datasets]


def test_expired_leases_void_all_claims_of_a_transaction(
    stores: Stores, tenant_id: str, datasets: list[Dataset], begin: Begin, claim_in: Claim
) -> None:
    transaction = begin(datasets)
    brief = msgspec.structs.replace(RULES, lease_seconds=0.05)
    slow = claim_in(datasets[0], brief)
    time.sleep(0.08)
    again = claim_in(datasets[2])
    assert [job.id for job in again] == [job.id for job in transaction.jobs]
    assert {job.attempts for job in again} == {2}
    assert publish(stores, tenant_id, slow) == Fenced(valid_ids=frozenset())
    assert isinstance(publish(stores, tenant_id, again), tuple)


def test_one_expired_lease_voids_all_claims_of_a_transaction(
    stores: Stores, tenant_id: str, datasets: list[Dataset], begin: Begin, claim_in: Claim
) -> None:
    transaction = begin(datasets)
    slow = claim_in(datasets[0])
    with stores.database.tenant(tenant_id) as connection:
        connection.exec_driver_sql(
            "UPDATE jobs SET lease_until = clock_timestamp() - interval '1 s' WHERE id::text = %s",
            (slow[1].id,),
        )
    assert claim_in(datasets[0]) == []
    again = claim_in(datasets[1])
    assert [job.id for job in again] == [job.id for job in transaction.jobs]
    assert publish(stores, tenant_id, slow) == Fenced(valid_ids=frozenset())


def test_transaction_out_of_attempts_fails_as_a_whole(
    stores: Stores, tenant_id: str, datasets: list[Dataset], begin: Begin, claim_in: Claim
) -> None:
    transaction = begin(datasets)
    once = msgspec.structs.replace(RULES, attempts_max=1)
    claimed = claim_in(datasets[0], once)
    stores.jobs.release(tenant_id, [job.claim for job in claimed])
    assert claim_in(datasets[1], once) == []
    found = stores.transactions.get(tenant_id, transaction.id)
    assert {job.error.code for job in found.jobs if job.error} == {"attempts-exhausted"}
    assert found.state is JobState.FAILED


def test_idempotency_key_replays_its_transaction_unless_the_service_failed_it(
    stores: Stores, tenant_id: str, datasets: list[Dataset], begin: Begin, claim_in: Claim
) -> None:
    key = {"idempotency_key": "k", "request_hash": "h"}
    first = begin(datasets, **key)
    assert begin(datasets, **key).id == first.id
    with pytest.raises(IdempotencyMismatch):
        begin(datasets, idempotency_key="k", request_hash="other")
    [claimed, *_] = claim_in(datasets[0])
    stores.jobs.fail(tenant_id, claimed.claim, msgspec.structs.replace(FAULT, code="storage-full"))
    second = begin(datasets, **key)
    assert second.id != first.id
    assert begin(datasets, **key).id == second.id


def test_deleted_dataset_refuses_the_transaction(
    stores: Stores, tenant_id: str, datasets: list[Dataset], begin: Begin, claim_in: Claim
) -> None:
    stores.catalog.delete(tenant_id, datasets[2].id, version=None)
    with pytest.raises(NotFound):
        begin(datasets)
    assert claim_in(datasets[0]) == []


def test_deleted_dataset_cancels_the_transaction_everywhere(
    stores: Stores, tenant_id: str, datasets: list[Dataset], begin: Begin, claim_in: Claim
) -> None:
    transaction = begin(datasets)
    claimed = claim_in(datasets[0])
    stores.catalog.delete(tenant_id, datasets[2].id, version=None)
    assert states(stores, tenant_id, transaction) == [JobState.CANCELLED] * 3
    assert publish(stores, tenant_id, claimed) == Fenced(valid_ids=frozenset())


def test_racing_transactions_wait_in_one_order_in_all_datasets(
    stores: Stores, tenant_id: str, datasets: list[Dataset], begin: Begin, claim_in: Claim
) -> None:
    """Who is next in one dataset is so in all, so some transaction can always go on."""
    pairs = [datasets, datasets[::-1], datasets[1:], datasets[:2]] * 3
    waiting = {each.id for each in together([lambda pair=pair: begin(pair) for pair in pairs])}  # type: ignore[misc]
    while waiting:
        groups = together([lambda each=each: claim_in(each) for each in datasets * 2])  # type: ignore[misc]
        ran = [group for group in groups if group]
        assert ran, "no transaction can go on"
        for group in ran:
            assert isinstance(publish(stores, tenant_id, group, read_version=0), tuple | Conflicted)
            [transaction_id] = {job.transaction_id for job in group}
            if stores.transactions.get(tenant_id, str(transaction_id)).state is not JobState.SUCCEEDED:
                stores.jobs.cancel(tenant_id, group[0].id)
            waiting.discard(str(transaction_id))


def test_acceptance_reports_a_replay(stores: Stores, tenant_id: str, datasets: list[Dataset]) -> None:
    def accept() -> AcceptedTransaction:
        jobs = tuple(new_job(dataset.id) for dataset in datasets)
        new = NewTransaction(id=new_id(), jobs=jobs, idempotency_key="k", request_hash="h")
        return stores.transactions.accept(tenant_id, new)

    outcomes = together([accept] * 6)
    assert len({outcome.transaction.id for outcome in outcomes}) == 1
    assert sorted(outcome.is_replay for outcome in outcomes) == [False, *[True] * 5]
