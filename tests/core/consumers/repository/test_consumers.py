"""Consumers: which commits are taken, who holds one, and what racing members and cuts come to."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from sqlalchemy import text

from app.access.errors import NotFound, PreconditionFailed, PreconditionRequired
from app.core.catalog.values import Dataset
from app.core.changes.errors import OffsetAhead
from app.core.changes.positions import SnapshotPosition, StartingPosition
from app.core.consumers.errors import ConsumerLeased, ConsumerManaged, LeaseLost
from app.core.consumers.followers import ConsumerKind
from app.core.consumers.repository.consumers import ConsumerStore
from app.core.consumers.repository.followers import add_follower
from app.core.consumers.values import ConsumerChange, ConsumerStatus, ExpectedRevision, MaxLag
from app.core.jobs.values import Job
from app.core.timeline.errors import OffsetExpired, VersionExpired
from app.infra.identifiers import new_id
from app.kernel.format.errors import HeadwaterError
from tests.support.lakehouse import commit_of, message
from tests.support.store_fixtures import Stores
from tests.support.threads import together


@pytest.fixture
def consumers(stores: Stores) -> ConsumerStore:
    return ConsumerStore(stores.database)


@pytest.fixture
def feed(stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]) -> Dataset:
    """Commits of 3, 2 and 4 changes: offsets 0–2, 3–4, 5–8."""
    for version, changes in enumerate((3, 2, 4)):
        commit = commit_of([running()], [message(version, changes=changes)], read_version=version)
        stores.timeline.publish_one(tenant_id, commit)
    return dataset


@pytest.fixture
def put(consumers: ConsumerStore, feed: Dataset) -> Callable[..., ConsumerStatus]:
    """Makes or moves the consumer `c`; at the revision that it has, unless one is specified."""

    def run(
        offset: int | StartingPosition | SnapshotPosition | None,
        *,
        revision: int | None = None,
        **more: object,
    ) -> ConsumerStatus:
        try:
            revision = revision or consumers.get(feed.tenant_id, feed.id, "c").consumer.revision
        except NotFound:
            revision = None
        change = ConsumerChange(offset=offset, **more)  # type: ignore[arg-type]
        return consumers.put(feed.tenant_id, feed.id, "c", change, ExpectedRevision(revision=revision))[0]

    return run


def cut(stores: Stores, dataset: Dataset, earliest: int) -> None:
    with stores.database.tenant(dataset.tenant_id) as connection:
        connection.execute(text("UPDATE heads SET earliest_offset = :at"), {"at": earliest})


def test_lag_counts_uncommitted_changes_and_their_age(
    stores: Stores, feed: Dataset, put: Callable[..., ConsumerStatus]
) -> None:
    with stores.database.tenant(feed.tenant_id) as connection:
        age = "SELECT extract(epoch FROM clock_timestamp() - committed_at) FROM commits WHERE version = :version"
        for position, version in [(0, 1), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3)]:
            before = connection.execute(text(age), {"version": version}).scalar_one()
            standing = put(position)
            after = connection.execute(text(age), {"version": version}).scalar_one()
            assert before <= standing.behind_seconds <= after
            assert standing.behind_changes == 9 - position
    at_head = put(StartingPosition.NOW)
    assert (at_head.behind_changes, at_head.behind_seconds, at_head.expired) == (0, 0, False)


def test_position_before_the_earliest_offset_is_expired(
    stores: Stores, consumers: ConsumerStore, feed: Dataset, put: Callable[..., ConsumerStatus]
) -> None:
    put(2)
    cut(stores, feed, 5)
    standing = consumers.get(feed.tenant_id, feed.id, "c")
    assert standing.expired
    assert (standing.behind_changes, standing.bounds.earliest) == (7, 5)
    for position, reset in [(2, False), (4, False), (0, True)]:
        with pytest.raises(OffsetExpired) as error:
            put(position, reset=reset)
        assert error.value.facts == {"since": position, "earliest": 5}
    assert not put(StartingPosition.EARLIEST).expired
    with pytest.raises(OffsetAhead):
        put(10)


def test_moved_at_changes_only_with_the_position(put: Callable[..., ConsumerStatus]) -> None:
    first = put(3).consumer
    assert first.revision == 1
    bounded = put(None, max_lag=MaxLag(changes=7)).consumer
    assert (bounded.position, bounded.revision, bounded.moved_at) == (3, 2, first.moved_at)
    same = put(3).consumer
    assert (same.revision, same.moved_at) == (3, first.moved_at)
    moved = put(4).consumer
    assert moved.moved_at > first.moved_at
    assert (moved.max_lag_rows, moved.max_lag_seconds, moved.created_at) == (7, None, first.created_at)


def test_deleted_dataset_accepts_no_consumer(stores: Stores, consumers: ConsumerStore, feed: Dataset) -> None:
    stores.catalog.delete(feed.tenant_id, feed.id, version=None)
    for dataset_id in (feed.id, new_id()):
        with pytest.raises(NotFound):
            consumers.put(feed.tenant_id, dataset_id, "c", ConsumerChange(offset=0), ExpectedRevision())


def test_one_of_racing_creators_wins(consumers: ConsumerStore, feed: Dataset) -> None:
    def make() -> str:
        try:
            consumers.put(
                feed.tenant_id, feed.id, "c", ConsumerChange(offset=0), ExpectedRevision(absent=True)
            )
        except PreconditionFailed:
            return "there"
        return "made"

    assert sorted(together([make] * 6)) == ["made"] + ["there"] * 5
    with pytest.raises(PreconditionRequired):
        consumers.put(feed.tenant_id, feed.id, "c", ConsumerChange(offset=0), ExpectedRevision())


def test_one_of_racing_commits_of_a_revision_wins(
    consumers: ConsumerStore, feed: Dataset, put: Callable[..., ConsumerStatus]
) -> None:
    put(0)
    for revision in range(1, 6):

        def commit(revision: int = revision) -> bool:
            change = ConsumerChange(offset=revision)
            try:
                consumers.put(feed.tenant_id, feed.id, "c", change, ExpectedRevision(revision=revision))
            except PreconditionFailed:
                return False
            return True

        assert sum(together([commit] * 4)) == 1
    consumer = consumers.get(feed.tenant_id, feed.id, "c").consumer
    assert (consumer.position, consumer.revision) == (5, 6)


def test_only_one_member_advances_at_a_time(
    stores: Stores, consumers: ConsumerStore, feed: Dataset, put: Callable[..., ConsumerStatus]
) -> None:
    """Members take the lease from one another as it runs out, and never read the revision again but with a lease."""
    put(0)
    taken: list[tuple[int, str]] = []
    lapse = threading.Event()

    def member(name: str) -> None:
        for _ in range(8):
            try:
                leased = consumers.lease(feed.tenant_id, feed.id, "c", name, 60, None)
            except ConsumerLeased:
                continue
            # It is slow: meanwhile its lease may have run out, and another may have it.
            lapse.wait(0.002)
            change = ConsumerChange(offset=min(leased.position + 1, 9), lease=leased.token)
            try:
                standing, _ = consumers.put(
                    feed.tenant_id, feed.id, "c", change, ExpectedRevision(revision=leased.revision)
                )
                taken.append((standing.consumer.lease_epoch, name))
            except (LeaseLost, PreconditionFailed):
                continue

    def clock() -> None:
        for _ in range(40):
            with stores.database.tenant(feed.tenant_id) as connection:
                connection.execute(
                    text("UPDATE consumers SET lease_until = clock_timestamp() WHERE member IS NOT NULL")
                )

    together([lambda: member("a"), lambda: member("b"), lambda: member("c"), clock])
    epochs = [epoch for epoch, _ in taken]
    assert len(set(epochs)) == len(epochs), "two members committed under one lease"
    assert consumers.get(feed.tenant_id, feed.id, "c").consumer.position == min(len(taken), 9)


def test_expired_lease_ends_with_a_commit_of_another_member(
    stores: Stores, consumers: ConsumerStore, feed: Dataset, put: Callable[..., ConsumerStatus]
) -> None:
    put(0)
    leased = consumers.lease(feed.tenant_id, feed.id, "c", "a", 60, None)
    with pytest.raises(ConsumerLeased) as error:
        put(1)
    assert error.value.facts["member"] == "a"
    assert 1 <= error.value.facts["retry_after_seconds"] <= 60
    with stores.database.tenant(feed.tenant_id) as connection:
        connection.execute(text("UPDATE consumers SET lease_until = clock_timestamp()"))
    # No other has come since, so it is still its member's.
    put(1, lease=leased.token)
    assert consumers.lease(feed.tenant_id, feed.id, "c", "a", 60, leased.token).token == leased.token
    with stores.database.tenant(feed.tenant_id) as connection:
        connection.execute(text("UPDATE consumers SET lease_until = clock_timestamp()"))
    put(2)
    with pytest.raises(LeaseLost):
        put(3, lease=leased.token)
    with pytest.raises(LeaseLost):
        consumers.lease(feed.tenant_id, feed.id, "c", "a", 60, leased.token)


def test_follower_positions_are_listed_and_read_only(
    stores: Stores, consumers: ConsumerStore, feed: Dataset
) -> None:
    name = f"webhook:{new_id()}"
    with stores.database.tenant(feed.tenant_id) as connection:
        add_follower(connection, feed.id, name, ConsumerKind.WEBHOOK, 3, max_lag_seconds=60)
    listed = consumers.list(feed.tenant_id, feed.id, page_size=5, page_token=None).items
    assert [(each.consumer.name, each.consumer.position, each.behind_changes) for each in listed] == [
        (name, 3, 6)
    ]
    calls: list[Callable[[], object]] = [
        lambda: consumers.delete(feed.tenant_id, feed.id, name, revision=None),
        lambda: consumers.lease(feed.tenant_id, feed.id, name, "m", 5, None),
        lambda: consumers.release(feed.tenant_id, feed.id, name, "token"),
    ]
    for call in calls:
        with pytest.raises(ConsumerManaged, match="is the position of a webhook"):
            call()
    assert consumers.get(feed.tenant_id, feed.id, name).consumer == listed[0].consumer


def test_refused_change_leaves_the_consumer_unchanged(
    consumers: ConsumerStore, feed: Dataset, put: Callable[..., ConsumerStatus]
) -> None:
    put(4, max_lag=MaxLag(seconds=5))
    before = consumers.get(feed.tenant_id, feed.id, "c").consumer
    for change, revision in [
        (ConsumerChange(offset=3, max_lag=None), 1),
        (ConsumerChange(offset=5, max_lag=None), 2),
        (ConsumerChange(offset=10, max_lag=None), 1),
        (ConsumerChange(offset=5, lease="x", max_lag=None), 1),
        (ConsumerChange(max_lag=None, lease="x"), 1),
        (ConsumerChange(reset=True, max_lag=None), 1),
    ]:
        with pytest.raises(HeadwaterError):
            consumers.put(feed.tenant_id, feed.id, "c", change, ExpectedRevision(revision=revision))
    assert consumers.get(feed.tenant_id, feed.id, "c").consumer == before


def kept_versions(stores: Stores, dataset: Dataset) -> list[tuple[str, int]]:
    with stores.database.tenant(dataset.tenant_id) as connection:
        query = "SELECT reader, version FROM read_leases WHERE lease_until > clock_timestamp() ORDER BY 1, 2"
        return [(row[0], row[1]) for row in connection.execute(text(query))]


def test_version_is_kept_while_a_consumer_is_within_its_rows(
    stores: Stores, consumers: ConsumerStore, feed: Dataset, put: Callable[..., ConsumerStatus]
) -> None:
    at = put(SnapshotPosition(version=2)).consumer
    # The changes after version 2 are kept by the offset.
    assert (at.place, at.position) == (SnapshotPosition(version=2), 5)
    assert kept_versions(stores, feed) == [("consumer:c", 2)]
    put(SnapshotPosition(version=2, group=1, row=7))
    assert kept_versions(stores, feed) == [("consumer:c", 2)]
    assert put(SnapshotPosition(), reset=True).consumer.place == SnapshotPosition(version=3)
    assert kept_versions(stores, feed) == [("consumer:c", 3)]
    assert put(9).consumer.place == 9
    assert kept_versions(stores, feed) == []
    put(SnapshotPosition(), reset=True)
    consumers.delete(feed.tenant_id, feed.id, "c", revision=None)
    assert kept_versions(stores, feed) == []


def test_consumer_does_not_start_with_a_version_that_is_lost(
    stores: Stores, consumers: ConsumerStore, feed: Dataset, put: Callable[..., ConsumerStatus]
) -> None:
    put(SnapshotPosition(version=1))
    with stores.database.tenant(feed.tenant_id) as connection:
        connection.execute(text("UPDATE heads SET earliest_version = 3"))
    # It is kept for the consumer that is within it, and for no other.
    put(SnapshotPosition(version=1, row=1))
    with stores.database.tenant(feed.tenant_id) as connection:
        connection.execute(text("UPDATE read_leases SET lease_until = clock_timestamp()"))
    with pytest.raises(VersionExpired):
        put(SnapshotPosition(version=1, row=2))
    assert put(SnapshotPosition(), reset=True).consumer.place == SnapshotPosition(version=3)
    cut(stores, feed, 9)
    with stores.database.tenant(feed.tenant_id) as connection:
        connection.execute(text("UPDATE heads SET earliest_version = 0"))
    with pytest.raises(OffsetExpired):
        put(SnapshotPosition(version=2), reset=True)
