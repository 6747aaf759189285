"""Views: registered with their positions, refreshed one at a time, and as firmly there as what they read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from threading import Barrier, Event

import msgspec
import pytest
from sqlalchemy import text

from app.access.errors import NotFound
from app.core.catalog.errors import DatasetExists, DatasetInUse
from app.core.catalog.values import Dataset
from app.core.consumers.repository.followers import FollowerStore
from app.core.jobs.kinds.kind import JobKind, WriteProcess
from app.core.jobs.kinds.write import WriteRequest
from app.core.jobs.values import Job, JobState, NewJob, WorkerEnd
from app.core.timeline.repository.watermarks import watermark_at
from app.core.timeline.values import Advance, Overtaken, Published
from app.features.views.repository.views import ViewStore
from app.features.views.values import (
    CheckedView,
    View,
    ViewDefinition,
    ViewFreshness,
    ViewMode,
    ViewState,
    follower_name,
)
from app.infra.identifiers import new_id, new_instant_id
from app.kernel.commit.watermarks import Lateness
from app.kernel.format.errors import Fault
from app.kernel.format.operation import Operation
from app.kernel.sql.queries import bind_view, parse_view
from tests.support.lakehouse import RULES, commit_of, definition, message, new_job
from tests.support.store_fixtures import Stores
from tests.support.threads import together

_names = count(1)
SQL = "SELECT id, note FROM orders"
PLAN = bind_view(parse_view(SQL), {"orders": definition()})
FAULT = Fault(code="derivation-failed", title="The SQL could not be computed", detail="a division by zero")

SLICE = 60.0


@pytest.fixture
def views(stores: Stores) -> ViewStore:
    return ViewStore(stores.database)


@pytest.fixture
def followers(stores: Stores) -> FollowerStore:
    return FollowerStore(stores.database)


def a_refresh(view_id: str) -> NewJob:
    request = WriteRequest(operation=Operation.SNAPSHOT, derived=True)
    return NewJob(id=new_id(), instant_id=new_instant_id(), dataset_id=view_id, request=request)


def a_view(*inputs: Dataset, name: str | None = None) -> CheckedView:
    view_id = new_id()
    return CheckedView(
        dataset_id=view_id,
        dataset=definition(name or f"view{next(_names)}"),
        definition=ViewDefinition(sql=SQL, plan=PLAN, mode=ViewMode.RECOMPUTE),
        inputs={each.definition.name: each.id for each in inputs},
        schemas={each.id: each.definition.schema.id for each in inputs},
        refresh=a_refresh(view_id),
    )


@pytest.fixture
def view(views: ViewStore, tenant_id: str, dataset: Dataset) -> View:
    return views.create(tenant_id, a_view(dataset))


@pytest.fixture
def write(stores: Stores, tenant_id: str) -> Callable[..., int]:
    """Commits a change to each of the datasets in one transaction; returns the version of the last."""

    def commit(*written: Dataset) -> int:
        commits = []
        for each in written:
            stores.jobs.accept(tenant_id, new_job(each.id))
            claimed = stores.jobs.claim(tenant_id, each.id, "w", RULES)
            version = stores.catalog.get(tenant_id, each.id).version
            commits.append(commit_of(claimed, [message()], read_version=version))
        outcome = stores.timeline.publish(tenant_id, commits)
        assert isinstance(outcome, tuple)
        return outcome[-1].version

    return commit


@pytest.fixture
def running(stores: Stores, tenant_id: str) -> Callable[[View], Job]:
    """Claims the refresh that is queued."""

    def claim(view: View) -> Job:
        [job] = stores.jobs.claim(tenant_id, view.dataset.id, "w", RULES)
        return job

    return claim


def advances_of(view: View) -> tuple[Advance, ...]:
    return tuple(
        Advance(
            dataset_id=each.dataset.id,
            name=follower_name(view.dataset.id),
            since=each.position,
            next_since=each.dataset.next_offset,
            schema_id=each.dataset.definition.schema.id,
        )
        for each in view.inputs
    )


def test_view_is_a_dataset_with_a_queued_refresh(
    stores: Stores, views: ViewStore, tenant_id: str, dataset: Dataset, write: Callable[..., int]
) -> None:
    write(dataset)
    new = a_view(dataset, name="shown")
    made = views.create(tenant_id, new)
    assert (
        views.get(tenant_id, "shown").dataset == views.get(tenant_id, made.dataset.id).dataset == made.dataset
    )
    assert made.definition == new.definition
    assert made.dataset == stores.catalog.get(tenant_id, "shown")
    assert made.dataset.is_view
    assert not stores.catalog.get(tenant_id, dataset.id).is_view
    [read] = made.inputs
    assert (read.relation, read.dataset.id, read.position, read.position_version, read.lag) == (
        "orders",
        dataset.id,
        0,
        0,
        1,
    )
    assert made.freshness is ViewFreshness.BEHIND
    job = stores.jobs.get(tenant_id, new.refresh.id)
    assert (job.kind, job.state, job.dataset_id) == (JobKind.REFRESH, JobState.QUEUED, made.dataset.id)


def test_view_requires_a_free_name_and_existing_inputs(
    stores: Stores, views: ViewStore, tenant_id: str, dataset: Dataset
) -> None:
    with pytest.raises(DatasetExists):
        views.create(tenant_id, a_view(dataset, name="orders"))
    stranger = stores.catalog.create(
        stores.tenants.add_tenant(f"t-{new_id()}"), new_id(), definition("theirs")
    )
    with pytest.raises(NotFound, match="theirs"):
        views.create(tenant_id, a_view(dataset, stranger, name="over"))
    with pytest.raises(NotFound):
        stores.catalog.get(tenant_id, "over")


def test_unknown_references_find_no_view(views: ViewStore, tenant_id: str, dataset: Dataset) -> None:
    for reference in ("orders", dataset.id, "o\0", new_id()):
        with pytest.raises(NotFound):
            views.get(tenant_id, reference)


def test_views_are_listed_by_name(views: ViewStore, tenant_id: str, dataset: Dataset) -> None:
    for name in ("b", "c", "a"):
        views.create(tenant_id, a_view(dataset, name=name))
    first = views.list(tenant_id, page_size=2, page_token=None)
    second = views.list(tenant_id, page_size=2, page_token=first.next_token)
    assert [each.dataset.definition.name for each in first.items + second.items] == ["a", "b", "c"]
    assert [len(each.inputs) for each in first.items + second.items] == [1, 1, 1]
    assert second.next_token is None


def test_refresh_commit_advances_the_positions(
    stores: Stores,
    views: ViewStore,
    followers: FollowerStore,
    tenant_id: str,
    dataset: Dataset,
    view: View,
    write: Callable[..., int],
    running: Callable[[View], Job],
) -> None:
    write(dataset)
    before = views.get(tenant_id, view.dataset.id)
    job = running(view)
    commit = msgspec.structs.replace(commit_of([job], [message()]), advances=advances_of(before))
    # Whatever comes meanwhile is for the next one, and the follower is due for it at once.
    write(dataset)
    stores.timeline.publish_one(tenant_id, commit)
    after = views.get(tenant_id, view.dataset.id)
    [read] = after.inputs
    assert (read.position, read.position_version, read.lag) == (1, 1, 1)
    assert (after.freshness, after.refreshed_at is not None) == (ViewFreshness.BEHIND, True)
    consumer = followers.claim(tenant_id, dataset.id, "w", 30)
    assert consumer is not None
    assert consumer.name == follower_name(view.dataset.id)


def test_watermark_of_a_view_is_the_least_of_its_inputs_and_never_goes_back(
    stores: Stores, views: ViewStore, tenant_id: str, dataset: Dataset, running: Callable[[View], Job]
) -> None:
    other = stores.catalog.create(tenant_id, new_id(), definition("payments"))
    view = views.create(tenant_id, a_view(dataset, other))

    def write(to: Dataset, watermark: datetime | None) -> None:
        stores.jobs.accept(tenant_id, new_job(to.id))
        claimed = stores.jobs.claim(tenant_id, to.id, "w", RULES)
        head = stores.catalog.get(tenant_id, to.id)
        judged = msgspec.structs.replace(
            message(), lateness=Lateness(before=head.watermark, watermark=watermark)
        )
        commit = commit_of(claimed, [judged], read_version=head.version)
        assert isinstance(stores.timeline.publish_one(tenant_id, commit), Published)

    def refresh(*, changes: bool = True) -> datetime | None:
        found = views.get(tenant_id, view.dataset.id)
        if found.refreshed_at is not None:
            stores.jobs.accept(tenant_id, a_refresh(view.dataset.id))
        messages = [message()] if changes else []
        commit = commit_of([running(view)], messages, read_version=found.dataset.version)
        commit = msgspec.structs.replace(commit, advances=advances_of(found))
        assert isinstance(stores.timeline.publish_one(tenant_id, commit), Published)
        return stores.catalog.get(tenant_id, view.dataset.id).watermark

    noon = datetime(2026, 11, 23, 12, tzinfo=UTC)
    write(dataset, noon)
    write(other, None)
    assert refresh() is None
    write(other, noon + timedelta(hours=2))
    assert refresh() == noon
    write(dataset, noon + timedelta(hours=1))
    # Not yet taken in: the view is as far as what it has read.
    assert stores.catalog.get(tenant_id, view.dataset.id).watermark == noon
    assert refresh() == noon + timedelta(hours=1)
    # A refresh that changes no row makes no version; the watermark of the current one moves.
    before = stores.catalog.get(tenant_id, view.dataset.id)
    write(dataset, noon + timedelta(hours=2))
    assert refresh(changes=False) == noon + timedelta(hours=2)
    after = stores.catalog.get(tenant_id, view.dataset.id)
    assert after.version == before.version
    with stores.database.tenant(tenant_id) as connection:
        assert watermark_at(connection, view.dataset.id, after.next_offset) == noon + timedelta(hours=2)


def test_refresh_without_changes_advances_the_positions(
    stores: Stores,
    views: ViewStore,
    tenant_id: str,
    dataset: Dataset,
    view: View,
    write: Callable[..., int],
    running: Callable[[View], Job],
) -> None:
    write(dataset)
    before = views.get(tenant_id, view.dataset.id)
    commit = msgspec.structs.replace(commit_of([running(view)], []), advances=advances_of(before))
    stores.timeline.publish_one(tenant_id, commit)
    after = views.get(tenant_id, view.dataset.id)
    assert (after.freshness, after.inputs[0].position, after.dataset.version) == (ViewFreshness.CURRENT, 1, 0)


def test_change_is_never_applied_twice(
    stores: Stores,
    views: ViewStore,
    tenant_id: str,
    dataset: Dataset,
    view: View,
    write: Callable[..., int],
) -> None:
    two = msgspec.structs.replace(RULES, dataset_writers_max=2)
    write(dataset)
    before = views.get(tenant_id, view.dataset.id)
    [first] = stores.jobs.claim(tenant_id, view.dataset.id, "w", two)
    views.refresh(tenant_id, a_refresh(view.dataset.id), after_running=True, slice_seconds=SLICE)
    [second] = stores.jobs.claim(tenant_id, view.dataset.id, "w", two)
    stores.timeline.publish_one(
        tenant_id, msgspec.structs.replace(commit_of([first], [message()]), advances=advances_of(before))
    )
    late = msgspec.structs.replace(commit_of([second], [message(1)]), advances=advances_of(before))
    [advance] = late.advances
    assert stores.timeline.publish_one(tenant_id, late) == Overtaken(
        dataset_id=view.dataset.id, since=advance.since
    )
    assert stores.catalog.get(tenant_id, view.dataset.id).version == 1


def test_failure_is_reported_until_a_refresh_succeeds(
    stores: Stores,
    views: ViewStore,
    followers: FollowerStore,
    tenant_id: str,
    dataset: Dataset,
    view: View,
    write: Callable[..., int],
    running: Callable[[View], Job],
) -> None:
    write(dataset)
    for failures in (1, 2):
        job = running(view)
        consumer = followers.claim(tenant_id, dataset.id, "w", 30)
        assert consumer is not None
        followers.settle(tenant_id, consumer, 3_600)
        assert followers.claim(tenant_id, dataset.id, "w", 30) is None
        assert stores.jobs.fail(tenant_id, job.claim, FAULT)
        failed = views.get(tenant_id, view.dataset.id)
        assert (failed.freshness, failed.error, failed.failures) == (ViewFreshness.FAILED, FAULT, failures)
        assert failed.attempted_at == job.started_at
        assert failed.attempted_ago_seconds > 0
        # Whether it is tried again is checked now, not in an hour.
        again = followers.claim(tenant_id, dataset.id, "w", 30)
        assert again is not None
        followers.settle(tenant_id, again, None)
        views.refresh(tenant_id, a_refresh(view.dataset.id), after_running=True, slice_seconds=SLICE)
    commit = msgspec.structs.replace(commit_of([running(view)], [message()]), advances=advances_of(failed))
    stores.timeline.publish_one(tenant_id, commit)
    healed = views.get(tenant_id, view.dataset.id)
    assert (healed.freshness, healed.error, healed.failures) == (ViewFreshness.CURRENT, None, 0)


def test_view_that_has_killed_its_processes_has_one_try_per_request(
    stores: Stores, views: ViewStore, tenant_id: str, view: View, running: Callable[[View], Job]
) -> None:
    deadly = msgspec.structs.replace(FAULT, code="process-killed")
    assert stores.jobs.fail(tenant_id, running(view).claim, deadly)
    views.refresh(tenant_id, a_refresh(view.dataset.id), after_running=True, slice_seconds=SLICE)
    isolated = msgspec.structs.replace(RULES, process=WriteProcess.ISOLATED)
    [job] = stores.jobs.claim(tenant_id, view.dataset.id, "isolated", isolated)
    stores.jobs.end_claims("isolated", WorkerEnd.KILLED)
    assert stores.jobs.get(tenant_id, job.id).state is JobState.FAILED
    before = views.get(tenant_id, view.dataset.id)
    assert before.error is not None
    assert before.error.code == "process-killed"
    assert before.error.detail.endswith("until a refresh succeeds or its state is set to active")
    assert before.state is ViewState.PAUSED
    resumed = views.pause(tenant_id, view.dataset.id, paused=False, revision=before.revision)
    assert (resumed.state, resumed.attempted_at, resumed.error) == (ViewState.ACTIVE, None, before.error)


def test_view_pauses_at_the_second_refresh_in_a_row_that_exceeds_its_time_limit(
    stores: Stores, views: ViewStore, tenant_id: str, view: View, running: Callable[[View], Job]
) -> None:
    too_slow = msgspec.structs.replace(FAULT, code="time-limit-exceeded", detail="it took an hour")
    details = []
    for fault, state in (
        (too_slow, ViewState.ACTIVE),
        (FAULT, ViewState.ACTIVE),
        (too_slow, ViewState.ACTIVE),
        (too_slow, ViewState.PAUSED),
        (too_slow, ViewState.PAUSED),
    ):
        job = running(view)
        assert stores.jobs.fail(tenant_id, job.claim, fault)
        failed = views.get(tenant_id, view.dataset.id)
        assert (failed.state, failed.freshness) == (state, ViewFreshness.FAILED)
        assert failed.error is not None
        details.append(failed.error.detail)
        views.refresh(tenant_id, a_refresh(view.dataset.id), after_running=True, slice_seconds=SLICE)
    assert details[:3] == ["it took an hour", FAULT.detail, "it took an hour"]
    for detail in details[3:]:
        assert detail.startswith("it took an hour; the view is paused: it is refreshed on request only")
    resumed = views.pause(tenant_id, view.dataset.id, paused=False, revision=failed.revision)
    assert (resumed.state, resumed.error) == (ViewState.ACTIVE, failed.error)
    commit = msgspec.structs.replace(commit_of([running(view)], []), advances=advances_of(resumed))
    stores.timeline.publish_one(tenant_id, commit)
    healed = views.get(tenant_id, view.dataset.id)
    assert (healed.state, healed.error, healed.failures) == (ViewState.ACTIVE, None, 0)


@pytest.mark.parametrize(("seconds", "process"), [(61, WriteProcess.SLOW), (59, WriteProcess.DERIVED)])
def test_refresh_is_slow_from_the_start_if_the_one_before_took_longer_than_a_time_slice(
    stores: Stores,
    views: ViewStore,
    tenant_id: str,
    view: View,
    running: Callable[[View], Job],
    seconds: int,
    process: WriteProcess,
) -> None:
    first = running(view)
    with stores.database.tenant(tenant_id) as connection:
        earlier = text(
            f"UPDATE jobs SET claimed_at = claimed_at - interval '{seconds} s' WHERE id = '{first.id}'"
        )
        connection.execute(earlier)
    assert stores.jobs.fail(tenant_id, first.claim, FAULT)
    views.refresh(tenant_id, a_refresh(view.dataset.id), after_running=True, slice_seconds=SLICE)
    assert stores.jobs.next_write(tenant_id, view.dataset.id) is process
    assert stores.jobs.fail(tenant_id, running(view).claim, FAULT)
    # This one was quick.
    views.refresh(tenant_id, a_refresh(view.dataset.id), after_running=True, slice_seconds=SLICE)
    assert stores.jobs.next_write(tenant_id, view.dataset.id) is WriteProcess.DERIVED


def test_cancelled_refresh_is_no_failure(
    stores: Stores, views: ViewStore, tenant_id: str, view: View
) -> None:
    queued = views.refresh(tenant_id, a_refresh(view.dataset.id), after_running=True, slice_seconds=SLICE).job
    stores.jobs.cancel(tenant_id, queued.id)
    assert views.get(tenant_id, view.dataset.id).freshness is ViewFreshness.BEHIND


def test_concurrent_requests_queue_one_refresh(
    stores: Stores, views: ViewStore, tenant_id: str, view: View, running: Callable[[View], Job]
) -> None:
    runs = running(view)
    assert (
        views.refresh(tenant_id, a_refresh(view.dataset.id), after_running=False, slice_seconds=SLICE).job.id
        == runs.id
    )
    barrier = Barrier(4)

    def request_refresh() -> tuple[str, bool]:
        barrier.wait()
        accepted = views.refresh(
            tenant_id, a_refresh(view.dataset.id), after_running=True, slice_seconds=SLICE
        )
        return accepted.job.id, accepted.is_replay

    # None has a key, so none is a replay.
    ((_, replayed),) = set(together([request_refresh] * 4))
    assert not replayed


def test_job_and_timeline_name_the_operation_of_a_refresh(
    stores: Stores, views: ViewStore, tenant_id: str, view: View, running: Callable[[View], Job]
) -> None:
    job = running(view)
    decided = msgspec.structs.replace(job.write, operation=Operation.CHANGELOG)
    views.decide(tenant_id, job.claim, decided)
    void = msgspec.structs.replace(job.claim, epoch=job.epoch + 1)
    views.decide(tenant_id, void, msgspec.structs.replace(job.write, operation=Operation.UPSERT))
    assert stores.jobs.get(tenant_id, job.id).write == decided
    [entry] = stores.timeline.instants(tenant_id, view.dataset.id, page_size=9, page_token=None).items
    assert entry.operation == "changelog"


def test_input_of_a_view_cannot_be_deleted_before_the_view(
    stores: Stores, views: ViewStore, followers: FollowerStore, tenant_id: str, dataset: Dataset, view: View
) -> None:
    with pytest.raises(DatasetInUse) as refusal:
        stores.catalog.delete(tenant_id, dataset.id, version=None)
    assert refusal.value.facts == {"views": [view.dataset.definition.name]}
    stores.catalog.delete(tenant_id, view.dataset.id, version=None)
    with pytest.raises(NotFound):
        views.get(tenant_id, view.dataset.id)
    with pytest.raises(NotFound):
        views.refresh(tenant_id, a_refresh(view.dataset.id), after_running=True, slice_seconds=SLICE)
    assert followers.claim(tenant_id, dataset.id, "w", 30) is None
    stores.catalog.delete(tenant_id, dataset.id, version=None)


def test_view_over_a_view_prevents_its_deletion(
    stores: Stores, views: ViewStore, tenant_id: str, view: View
) -> None:
    upper = views.create(tenant_id, a_view(view.dataset))
    with pytest.raises(DatasetInUse):
        stores.catalog.delete(tenant_id, view.dataset.id, version=None)
    stores.catalog.delete(tenant_id, upper.dataset.id, version=None)
    stores.catalog.delete(tenant_id, view.dataset.id, version=None)


def test_one_of_view_creation_and_input_deletion_wins(
    stores: Stores, views: ViewStore, tenant_id: str
) -> None:
    for number in range(6):
        read = stores.catalog.create(tenant_id, new_id(), definition(f"read{number}"))
        barrier = Barrier(2)

        def create(read: Dataset = read, barrier: Barrier = barrier) -> str:
            barrier.wait()
            try:
                views.create(tenant_id, a_view(read))
            except NotFound:
                return "refused"
            return "made"

        def delete(read: Dataset = read, barrier: Barrier = barrier) -> str:
            barrier.wait()
            try:
                stores.catalog.delete(tenant_id, read.id, version=None)
            except DatasetInUse:
                return "refused"
            return "made"

        assert sorted(together([create, delete])) == ["made", "refused"]


def test_view_positions_see_a_transaction_as_a_whole(
    stores: Stores, views: ViewStore, tenant_id: str, dataset: Dataset, write: Callable[..., int]
) -> None:
    other = stores.catalog.create(tenant_id, new_id(), definition("other"))
    both = views.create(tenant_id, a_view(dataset, other))
    done = Event()
    seen: set[tuple[int, ...]] = set()

    def read_positions() -> None:
        while not done.is_set():
            found = views.get(tenant_id, both.dataset.id)
            seen.add(tuple(each.dataset.version for each in found.inputs))

    def commit() -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(done.set)
            for _ in range(20):
                write(dataset, other)

    together([read_positions, commit])
    assert seen
    assert all(len(set(versions)) == 1 for versions in seen)
