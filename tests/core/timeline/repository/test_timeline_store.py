"""The commit transaction, and what readers see of its results."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from threading import Barrier

import msgspec
import pytest

from app.access.errors import NotFound
from app.core.catalog.tables import heads
from app.core.catalog.values import Dataset
from app.core.changes.repository import ChangelogStore
from app.core.jobs.values import Claim, Job, JobState
from app.core.timeline.repository.publish import InconsistentCommit
from app.core.timeline.values import Fenced, JobOutcome, NewCommit, Published
from app.infra.identifiers import new_id
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.conflict import Conflicted
from app.kernel.format.errors import InvalidRequest
from app.kernel.format.file_group import DataFile, DeletionVector
from app.kernel.format.instant import Action, InstantState, RowCounts
from tests.support.lakehouse import (
    RULES,
    claim_of,
    commit_of,
    data_file,
    definition,
    message,
    new_job,
    written_once,
)
from tests.support.store_fixtures import Stores
from tests.support.threads import together

Accept = Callable[[], Job]
ClaimJobs = Callable[..., list[Job]]


@pytest.fixture
def publish(stores: Stores, tenant_id: str, running: Callable[[], Job]) -> Callable[..., Published]:
    """Publishes messages for one more job, read at the version given, and expects it to work."""

    def run(*messages: CommitMessage, read_version: int) -> Published:
        result = stores.timeline.publish_one(
            tenant_id, commit_of([running()], messages, read_version=read_version)
        )
        assert isinstance(result, Published), result
        return result

    return run


def live(stores: Stores, dataset: Dataset, version: int, groups: list[str] | None = None) -> list[DataFile]:
    """The files as their tasks wrote them: without what their commits gave them."""
    found = stores.timeline.live_files(dataset.tenant_id, dataset.id, version, groups)
    return [
        msgspec.structs.replace(
            file, added_version=None, written_version=None, written_at=None, first_offset=None
        )
        for file in found
    ]


def test_commit_takes_the_next_version_and_the_next_offsets(
    stores: Stores, tenant_id: str, dataset: Dataset, publish: Callable[..., Published]
) -> None:
    assert publish(message(0, changes=3), read_version=0) == Published(
        version=1, first_offset=0, next_offset=3
    )
    second = publish(message(1, changes=2), message(2, changes=5), read_version=1)
    assert second == Published(version=2, first_offset=3, next_offset=10)
    head = stores.catalog.get(tenant_id, dataset.id)
    assert (head.version, head.next_offset) == (2, 10)


def test_data_files_that_are_changelog_files_have_offsets_one_after_another(
    stores: Stores, tenant_id: str, dataset: Dataset, publish: Callable[..., Published]
) -> None:
    publish(message(3, changes=4), read_version=0)
    group, other = written_once(0, rows=3, files=2), written_once(1, rows=2)
    assert publish(group, other, read_version=1) == Published(version=2, first_offset=4, next_offset=12)
    found = {
        file.path: file.first_offset for file in stores.timeline.live_files(tenant_id, dataset.id, 2, None)
    }
    # Positions of rows are relative to the first change of their group.
    assert [found[file.path] for file in (*group.added, *other.added)] == [4, 4, 10]
    segments = ChangelogStore(stores.database).segments(tenant_id, dataset.id, since=4, until=12)
    assert [(each.file.path, each.first_offset, each.row_count) for each in segments] == [
        (group.added[0].path, 4, 3),
        (group.added[1].path, 7, 3),
        (other.added[0].path, 10, 2),
    ]


def test_file_is_visible_from_its_addition_until_its_removal(
    stores: Stores, tenant_id: str, dataset: Dataset, publish: Callable[..., Published]
) -> None:
    first, other, second = message(0), message(1, clustered_by="linear:1"), message(0)
    publish(first, other, read_version=0)
    publish(msgspec.structs.replace(second, removed=(first.added[0].path,)), read_version=1)
    publish(CommitMessage(file_group=other.file_group, removed=(other.added[0].path,)), read_version=2)
    assert live(stores, dataset, 0) == []
    assert live(stores, dataset, 1) == [first.added[0], other.added[0]]
    assert live(stores, dataset, 2) == [other.added[0], second.added[0]]
    assert live(stores, dataset, 3) == [second.added[0]]
    assert live(stores, dataset, 2, [other.file_group]) == [other.added[0]]
    assert live(stores, dataset, 3, [other.file_group]) == []
    assert live(stores, dataset, 3, []) == []


def test_file_keeps_the_time_of_the_commit_that_wrote_it(
    stores: Stores, tenant_id: str, dataset: Dataset, publish: Callable[..., Published]
) -> None:
    publish(message(0), read_version=0)
    [file] = stores.timeline.live_files(tenant_id, dataset.id, 1, None)
    vector = DeletionVector(size_bytes=1, checksum="x", cardinality=1, content=b"0")
    marked = msgspec.structs.replace(file, added_version=None, deletion_vector=vector)
    publish(CommitMessage(file_group=file.file_group, removed=(file.path,), added=(marked,)), read_version=1)
    [again] = stores.timeline.live_files(tenant_id, dataset.id, 2, None)
    times = stores.timeline.commit_times(tenant_id, dataset.id, [1, 2])
    assert file.written_at == again.written_at == times[1] < times[2]


def test_each_job_of_a_group_has_its_own_outcome(
    stores: Stores, tenant_id: str, dataset: Dataset, accept: Accept, claim: ClaimJobs
) -> None:
    accept(), accept(), accept()
    group = claim()
    counts = [RowCounts(inserted=2), RowCounts(unchanged=4), RowCounts(updated=1, deleted=1, unchanged=1)]
    commit = commit_of(group, [message(changes=5)], counts=counts)
    assert stores.timeline.publish_one(tenant_id, commit) == Published(
        version=1, first_offset=0, next_offset=5
    )
    ended = [stores.jobs.get(tenant_id, job.id) for job in group]
    assert [job.rows for job in ended] == counts
    assert {(job.state, job.committed_version, job.error) for job in ended} == {(JobState.SUCCEEDED, 1, None)}
    assert [(job.first_offset, job.last_offset) for job in ended] == [(0, 4), (None, None), (0, 4)]
    assert all(job.finished_at is not None for job in ended)


def test_timeline_lists_every_instant_latest_first_in_pages(
    stores: Stores, tenant_id: str, dataset: Dataset, accept: Accept, claim: ClaimJobs
) -> None:
    accept(), accept()
    group = claim()
    base = message(0, rows=7, changes=2)
    stores.timeline.publish_one(
        tenant_id, commit_of(group, [base], counts=[RowCounts(inserted=2), RowCounts()])
    )
    accept()
    pages = [stores.timeline.instants(tenant_id, dataset.id, page_size=2, page_token=None)]
    pages.append(stores.timeline.instants(tenant_id, dataset.id, page_size=2, page_token=pages[0].next_token))
    assert [len(page.items) for page in pages] == [2, 1]
    assert pages[1].next_token is None
    waiting, second, first = (item for page in pages for item in page.items)
    assert (waiting.state, waiting.version, waiting.completed_at) == (InstantState.REQUESTED, None, None)
    assert (waiting.files_added, waiting.bytes_added, waiting.first_offset) == (0, 0, None)
    assert (first.id, first.job_id, first.operation) == (group[0].instant_id, group[0].id, "upsert")
    assert (first.action, first.state, first.version) == (Action.COMMIT, InstantState.COMPLETED, 1)
    assert (first.files_added, first.files_removed, first.bytes_added) == (1, 0, 700)
    assert (first.rows, first.first_offset, first.last_offset) == (RowCounts(inserted=2), 0, 1)
    assert (second.version, second.first_offset, second.last_offset) == (1, None, None)
    with pytest.raises(InvalidRequest):
        stores.timeline.instants(tenant_id, dataset.id, page_size=2, page_token="made up")


def test_commit_without_changes_makes_no_version(
    stores: Stores,
    tenant_id: str,
    dataset: Dataset,
    publish: Callable[..., Published],
    running: Callable[[], Job],
) -> None:
    publish(message(0, changes=4), read_version=0)
    job = running()
    untouched = CommitMessage(file_group=message(0).file_group)
    commit = commit_of([job], [untouched], read_version=1, counts=[RowCounts(unchanged=3)])
    assert stores.timeline.publish_one(tenant_id, commit) == Published(
        version=1, first_offset=4, next_offset=4
    )
    ended = stores.jobs.get(tenant_id, job.id)
    assert (ended.state, ended.committed_version, ended.first_offset) == (JobState.SUCCEEDED, 1, None)
    assert ended.rows == RowCounts(unchanged=3)
    [latest, _] = stores.timeline.instants(tenant_id, dataset.id, page_size=9, page_token=None).items
    assert (latest.state, latest.version, latest.files_added) == (InstantState.COMPLETED, None, 0)
    assert latest.completed_at is not None
    assert stores.timeline.outcome_of_one(tenant_id, dataset.id, [job.id]) == Published(
        version=1, first_offset=4, next_offset=4
    )


def test_commit_without_changes_may_conflict(
    stores: Stores, tenant_id: str, publish: Callable[..., Published], running: Callable[[], Job]
) -> None:
    """`unchanged` was found by comparing with rows that are others now."""
    publish(message(0), read_version=0)
    untouched = CommitMessage(file_group=message(0).file_group)
    result = stores.timeline.publish_one(tenant_id, commit_of([running()], [untouched], read_version=0))
    assert isinstance(result, Conflicted)


@pytest.mark.parametrize("changes", [0, 1])
def test_commit_after_the_end_of_a_tombstone_that_rows_were_compared_with_conflicts(
    stores: Stores,
    tenant_id: str,
    dataset: Dataset,
    publish: Callable[..., Published],
    running: Callable[[], Job],
    changes: int,
) -> None:
    """Also one that makes no version, because the tombstone kept all of its rows away."""
    publish(message(0), message(1), read_version=0)
    next_time = stores.timeline.next_commit_time(tenant_id, dataset.id)
    assert stores.timeline.commit_times(tenant_id, dataset.id, [1])[1] < next_time
    job = running()

    def commit(valid_until: datetime) -> NewCommit:
        empty = [CommitMessage(file_group=message(bucket).file_group) for bucket in (0, 1)]
        first, second = [message(0), message(1)] if changes else empty
        messages = [msgspec.structs.replace(first, valid_until=valid_until), second]
        return commit_of([job], messages, read_version=1)

    ended = stores.timeline.publish_one(tenant_id, commit(next_time - timedelta(milliseconds=1)))
    assert isinstance(ended, Conflicted)
    assert (ended.file_groups, ended.head_version) == ((message(0).file_group,), 1)
    assert stores.jobs.get(tenant_id, job.id).state is JobState.RUNNING
    assert stores.catalog.get(tenant_id, dataset.id).version == 1
    assert len(stores.timeline.live_files(tenant_id, dataset.id, 1, None)) == 2
    lasting = stores.timeline.publish_one(tenant_id, commit(next_time + timedelta(hours=1)))
    assert isinstance(lasting, Published)
    assert lasting.version == 1 + changes


def test_next_commit_of_a_dataset_that_is_gone_is_unknown(stores: Stores, tenant_id: str) -> None:
    with pytest.raises(NotFound):
        stores.timeline.next_commit_time(tenant_id, new_id())


def test_group_changed_since_it_was_read_conflicts(
    stores: Stores,
    tenant_id: str,
    dataset: Dataset,
    publish: Callable[..., Published],
    running: Callable[[], Job],
) -> None:
    base = message(0)
    publish(base, read_version=0)
    publish(message(0, removed=base.added), read_version=1)
    publish(message(2), read_version=2)
    job = running()
    stale = commit_of([job], [message(0, removed=base.added), message(1)], read_version=1)
    before = live(stores, dataset, 3)
    conflict = stores.timeline.publish_one(tenant_id, stale)
    page = stores.timeline.instants(tenant_id, dataset.id, page_size=9, page_token=None)
    [winner] = [item.id for item in page.items if item.version == 2]
    assert conflict == Conflicted(
        file_groups=(base.file_group,), winner=winner, winner_version=2, head_version=3, dataset_id=dataset.id
    )
    # Nothing of it happened, and the job is still held: it can plan again.
    assert live(stores, dataset, 3) == before
    assert stores.jobs.get(tenant_id, job.id).state is JobState.RUNNING
    [current] = live(stores, dataset, 3, [base.file_group])
    again = commit_of([job], [message(0, removed=[current]), message(1)], read_version=3)
    assert isinstance(stores.timeline.publish_one(tenant_id, again), Published)


def test_first_file_of_a_group_and_its_last_removal_conflict(
    stores: Stores, tenant_id: str, publish: Callable[..., Published], running: Callable[[], Job]
) -> None:
    """Insert against insert of an empty bucket, and insert against a delete that emptied it."""
    base = message(0)
    publish(base, read_version=0)
    job = running()
    assert isinstance(
        stores.timeline.publish_one(tenant_id, commit_of([job], [message(0)], read_version=0)), Conflicted
    )
    stores.jobs.release(tenant_id, [claim_of(job)])
    [again] = stores.jobs.claim(tenant_id, job.dataset_id, "w", RULES)
    emptied = CommitMessage(file_group=base.file_group, removed=(base.added[0].path,))
    assert isinstance(
        stores.timeline.publish_one(tenant_id, commit_of([again], [emptied], read_version=1)), Published
    )
    late = commit_of([running()], [message(0)], read_version=1)
    assert isinstance(stores.timeline.publish_one(tenant_id, late), Conflicted)


def test_commits_of_other_groups_do_not_conflict(stores: Stores, publish: Callable[..., Published]) -> None:
    publish(message(0), read_version=0)
    assert publish(message(1), read_version=0).version == 2


@pytest.mark.parametrize("void", ["epoch", "other dataset", "unknown"])
def test_one_void_claim_fences_the_whole_group(
    stores: Stores, tenant_id: str, dataset: Dataset, accept: Accept, claim: ClaimJobs, void: str
) -> None:
    accept(), accept()
    claimed_job, lost = claim()
    job_id = new_id() if void == "unknown" else lost.id
    epoch = lost.epoch + (void == "epoch")
    if void == "other dataset":
        other = stores.catalog.create(
            tenant_id, new_id(), msgspec.structs.replace(dataset.definition, name="o")
        )
        stores.jobs.accept(tenant_id, new_job(other.id))
        [foreign] = stores.jobs.claim(tenant_id, other.id, "w", RULES)
        job_id, epoch = foreign.id, foreign.epoch
    commit = commit_of([claimed_job, lost], [message()])
    outcome = JobOutcome(
        claim=Claim(job_id=job_id, epoch=epoch), instant_id=lost.instant_id, counts=RowCounts(inserted=1)
    )
    commit = msgspec.structs.replace(commit, outcomes=(commit.outcomes[0], outcome))
    assert stores.timeline.publish_one(tenant_id, commit) == Fenced(valid_ids=frozenset({claimed_job.id}))
    assert stores.catalog.get(tenant_id, dataset.id).version == 0
    assert stores.jobs.get(tenant_id, claimed_job.id).state is JobState.RUNNING


def test_commit_is_published_once(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    commit = commit_of([running()], [message()])
    assert isinstance(stores.timeline.publish_one(tenant_id, commit), Published)
    assert stores.timeline.publish_one(tenant_id, commit) == Fenced(valid_ids=frozenset())
    assert stores.catalog.get(tenant_id, dataset.id).version == 1


def test_one_of_racing_publications_of_a_group_wins(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    for round_number in range(5):
        version = stores.catalog.get(tenant_id, dataset.id).version
        commits = [commit_of([running()], [message(round_number)], read_version=version)]
        commits.append(msgspec.structs.replace(commits[0], messages=(message(round_number),)))
        barrier = Barrier(2)

        def publish(commit: NewCommit, barrier: Barrier = barrier) -> str:
            barrier.wait()
            return type(stores.timeline.publish_one(tenant_id, commit)).__name__

        assert sorted(together([partial(publish, commit) for commit in commits])) == ["Fenced", "Published"]


INCONSISTENT: dict[str, Callable[[DataFile], CommitMessage]] = {
    "removes a file that is not live": lambda base: message(5, removed=[data_file(5)]),
    "removes a file of a group it does not touch": lambda base: message(5, removed=[base]),
    "removes a file twice": lambda base: message(0, removed=[base, base]),
    "adds a file of another group": lambda base: msgspec.structs.replace(message(5), file_group="elsewhere"),
}


@pytest.mark.parametrize("fault", INCONSISTENT)
def test_inconsistent_commit_changes_nothing(
    stores: Stores,
    tenant_id: str,
    dataset: Dataset,
    publish: Callable[..., Published],
    running: Callable[[], Job],
    fault: str,
) -> None:
    base = message(0)
    publish(base, read_version=0)
    with pytest.raises(InconsistentCommit):
        stores.timeline.publish_one(
            tenant_id, commit_of([running()], [INCONSISTENT[fault](base.added[0])], read_version=1)
        )
    assert stores.catalog.get(tenant_id, dataset.id).version == 1
    assert live(stores, dataset, 2) == [base.added[0]]


def test_file_is_removed_once(
    stores: Stores, tenant_id: str, publish: Callable[..., Published], running: Callable[[], Job]
) -> None:
    """A plan that names its predecessor's base file would bring rows back; no conflict can excuse it."""
    base = message(0)
    publish(base, read_version=0)
    publish(message(0, removed=base.added), read_version=1)
    with pytest.raises(InconsistentCommit):
        stores.timeline.publish_one(
            tenant_id, commit_of([running()], [message(0, removed=base.added)], read_version=2)
        )


def test_message_that_removes_a_file_twice_is_refused(
    stores: Stores, tenant_id: str, publish: Callable[..., Published], running: Callable[[], Job]
) -> None:
    base = message(0)
    publish(base, read_version=0)
    twice = commit_of([running()], [message(0, removed=[*base.added, *base.added])], read_version=1)
    with pytest.raises(InconsistentCommit, match="removes a file twice"):
        stores.timeline.publish_one(tenant_id, twice)


@pytest.fixture
def other_versions(stores: Stores, tenant_id: str) -> None:
    """Two versions of another dataset, whose file groups have the same names."""
    other = stores.catalog.create(tenant_id, new_id(), definition("other"))
    for version, bucket in enumerate((1, 0)):
        stores.jobs.accept(tenant_id, new_job(other.id))
        [job] = stores.jobs.claim(tenant_id, other.id, "worker", RULES)
        commit = commit_of([job], [message(bucket)], read_version=version)
        assert isinstance(stores.timeline.publish_one(tenant_id, commit), Published)


@pytest.mark.usefixtures("other_versions")
def test_commits_to_another_dataset_are_no_conflict(
    stores: Stores, tenant_id: str, publish: Callable[..., Published], running: Callable[[], Job]
) -> None:
    base = message(0)
    publish(base, read_version=0)
    # The head moves on, so what has changed since version 1 is looked up.
    publish(message(2), read_version=1)
    commit = commit_of([running()], [message(0, removed=base.added)], read_version=1)
    assert isinstance(stores.timeline.publish_one(tenant_id, commit), Published)


@pytest.mark.usefixtures("other_versions")
def test_conflict_names_the_instant_of_its_own_dataset(
    stores: Stores,
    tenant_id: str,
    dataset: Dataset,
    publish: Callable[..., Published],
    running: Callable[[], Job],
) -> None:
    publish(message(1), read_version=0)
    publish(message(0), read_version=1)
    stale = commit_of([running()], [message(0)], read_version=1)
    conflict = stores.timeline.publish_one(tenant_id, stale)
    page = stores.timeline.instants(tenant_id, dataset.id, page_size=9, page_token=None)
    [winner] = [item.id for item in page.items if item.version == 2]
    assert isinstance(conflict, Conflicted)
    assert conflict.winner == winner


def test_commit_times_increase_when_the_clock_goes_backwards(
    stores: Stores, tenant_id: str, dataset: Dataset, publish: Callable[..., Published]
) -> None:
    ahead = dataset.created_at.replace(microsecond=5000) + timedelta(hours=1)
    with stores.database.tenant(tenant_id) as connection:
        connection.execute(heads.update().where(heads.c.dataset_id == dataset.id).values(committed_at=ahead))
    for version in range(3):
        publish(message(version), read_version=version)
        committed_at = stores.catalog.get(tenant_id, dataset.id).committed_at
        assert committed_at == ahead + timedelta(milliseconds=version + 1)


def test_commit_planned_at_a_future_version_is_refused(
    stores: Stores, tenant_id: str, running: Callable[[], Job]
) -> None:
    with pytest.raises(InconsistentCommit):
        stores.timeline.publish_one(tenant_id, commit_of([running()], [message()], read_version=1))


def test_commit_times_increase_strictly_and_resolve_to_versions(
    stores: Stores, tenant_id: str, dataset: Dataset, publish: Callable[..., Published]
) -> None:
    before = dataset.created_at - timedelta(seconds=1)
    assert stores.timeline.version_at(tenant_id, dataset.id, before) == 0
    times = []
    for version in range(6):
        publish(message(version), read_version=version)
        times.append(stores.catalog.get(tenant_id, dataset.id).committed_at)
    assert times == sorted(set(times))
    assert all(time.microsecond % 1000 == 0 for time in times)
    for version, time in enumerate(times, start=1):
        assert stores.timeline.version_at(tenant_id, dataset.id, time) == version
        assert stores.timeline.version_at(tenant_id, dataset.id, time - timedelta(milliseconds=1)) < version
    assert stores.timeline.version_at(tenant_id, dataset.id, times[-1] + timedelta(days=1)) == 6
    assert stores.timeline.commit_times(tenant_id, dataset.id, [6, 1, 7]) == {1: times[0], 6: times[5]}
    assert stores.timeline.commit_times(tenant_id, dataset.id, []) == {}
    assert stores.timeline.commit_times(tenant_id, new_id(), [1]) == {}


def test_each_version_has_its_end_offset(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    for version, changes in enumerate((3, 0, 2)):
        commit = commit_of([running()], [message(version, changes=changes)], read_version=version)
        stores.timeline.publish_one(tenant_id, commit)
    ends = [stores.timeline.next_offset(tenant_id, dataset.id, version) for version in range(4)]
    assert ends == [0, 3, 3, 5]


def test_published_commit_notifies_followers_and_a_refused_one_does_not(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]
) -> None:
    job = running()
    stores.outbox.relay(lambda messages: None, 10_000)
    sent: list[str] = []
    for _ in range(2):
        stores.timeline.publish_one(tenant_id, commit_of([job], [message()]))
    stores.outbox.relay(lambda messages: sent.extend(each.topic for each in messages), 10)
    assert sent == ["changes"]


def test_outcome_of_jobs_is_known_after_their_commit(
    stores: Stores, tenant_id: str, dataset: Dataset, accept: Accept, claim: ClaimJobs
) -> None:
    accept(), accept()
    group = claim()
    ids = [job.id for job in group]
    assert stores.timeline.outcome_of_one(tenant_id, dataset.id, ids) is None
    published = stores.timeline.publish_one(tenant_id, commit_of(group, [message(changes=2)]))
    assert stores.timeline.outcome_of_one(tenant_id, dataset.id, ids) == published
    waiting = accept()
    assert stores.timeline.outcome_of_one(tenant_id, dataset.id, [*ids, waiting.id]) is None


def test_commit_of_many_files_is_one_transaction(
    stores: Stores, tenant_id: str, dataset: Dataset, publish: Callable[..., Published]
) -> None:
    first = [message(bucket) for bucket in range(4_000)]
    publish(*first, read_version=0)
    publish(*(message(bucket, removed=each.added) for bucket, each in enumerate(first)), read_version=1)
    groups = [each.file_group for each in first]
    assert len(live(stores, dataset, 1, groups)) == len(live(stores, dataset, 2)) == 4_000
    assert len(stores.changelog.segments(tenant_id, dataset.id, 0, 8_000)) == 8_000
