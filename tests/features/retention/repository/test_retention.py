"""Retention: what is cut off feeds, what holds it up, and what readers and consumers see of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event

import pytest
from msgspec import structs
from sqlalchemy import text

from app.core.catalog.values import Dataset
from app.core.changes.positions import FeedBounds, StartingPosition
from app.core.changes.repository import lock_feed
from app.core.consumers.followers import ConsumerKind
from app.core.consumers.repository.consumers import ConsumerStore
from app.core.consumers.repository.followers import add_follower
from app.core.consumers.values import ConsumerChange, ExpectedRevision
from app.core.idempotency.repository import ReplyStore
from app.core.jobs.values import Job
from app.core.timeline.errors import OffsetExpired
from app.core.timeline.values import Published
from app.features.retention.repository.feed import RetentionStore
from app.features.retention.repository.references import ReferenceStore
from app.features.retention.service.feed import Retain
from app.infra.files.storage import LocalStorage
from app.infra.identifiers import new_id, new_instant_id
from app.kernel.format.dataset import Retention
from tests.support.expired_rows import expire_rows
from tests.support.lakehouse import commit_of, definition, message
from tests.support.postgres import TestServer
from tests.support.store_fixtures import Stores
from tests.support.threads import together
from tests.support.waiting import until

WEEK = 7 * 86400.0


@pytest.fixture
def retention(stores: Stores) -> RetentionStore:
    return RetentionStore(stores.database)


@pytest.fixture
def consumers(stores: Stores) -> ConsumerStore:
    return ConsumerStore(stores.database)


@pytest.fixture
def feed(
    stores: Stores,
    postgres: TestServer,
    database_url: str,
    tenant_id: str,
    dataset: Dataset,
    running: Callable[[], Job],
) -> Dataset:
    """Commits of 3, 2, 0 and 4 changes, which end at 3, 5, 5 and 9. They are 4, 3, 2 and 1 hours old."""
    for version, changes in enumerate((3, 2, 0, 4)):
        messages = [message(version, changes=changes)]
        stores.timeline.publish_one(tenant_id, commit_of([running()], messages, read_version=version))
    with postgres.administration(database_url.rsplit("/", 1)[1]) as connection:
        connection.execute(
            "UPDATE commits SET committed_at = clock_timestamp() - make_interval(hours => 5 - version::int)"
            " WHERE dataset_id = %s",
            [dataset.id],
        )
    return dataset


def keep(stores: Stores, feed: Dataset, **retention: int) -> None:
    """Gives the feed a retention."""
    now = stores.catalog.get(feed.tenant_id, feed.id)
    changelog = structs.replace(now.definition.changelog, retention=Retention(**retention))
    stores.catalog.evolve(
        feed.tenant_id,
        feed.id,
        structs.replace(now.definition, changelog=changelog),
        version=now.version,
        instant_id=new_instant_id(),
    )


def place(feed: Dataset) -> tuple[str, str]:
    return feed.tenant_id, feed.id


def earliest(stores: Stores, feed: Dataset) -> int:
    return stores.changelog.bounds(feed.tenant_id, feed.id).earliest


def cut(retention: RetentionStore, feed: Dataset) -> int:
    return retention.cut(feed.tenant_id, feed.id, follower_lag_seconds=WEEK)


@pytest.mark.parametrize(
    ("bounds", "beginning"),
    [
        # Nine changes: a commit goes once none of its changes is among the latest that are kept.
        ({"changes": 100}, 0),
        ({"changes": 9}, 0),
        ({"changes": 7}, 0),
        ({"changes": 6}, 3),
        ({"changes": 5}, 3),
        ({"changes": 4}, 5),
        ({"changes": 1}, 5),
        ({"seconds": 5 * 3600}, 0),
        ({"seconds": 4 * 3600 - 60}, 3),
        ({"seconds": 3 * 3600 - 60}, 5),
        ({"seconds": 2 * 3600 - 60}, 5),
        # All of it is too old.
        ({"seconds": 60}, 9),
        ({"seconds": 4 * 3600 - 60, "changes": 4}, 5),
        ({"seconds": 3 * 3600 - 60, "changes": 100}, 5),
    ],
)
def test_commits_expire_by_age_and_number(
    stores: Stores, retention: RetentionStore, feed: Dataset, bounds: dict[str, int], beginning: int
) -> None:
    keep(stores, feed, **bounds)
    assert cut(retention, feed) == beginning
    assert stores.changelog.bounds(feed.tenant_id, feed.id) == FeedBounds(earliest=beginning, next_offset=9)
    assert stores.catalog.get(feed.tenant_id, feed.id).earliest_offset == beginning
    assert cut(retention, feed) == 0


def test_dataset_without_retention_expires_nothing(
    stores: Stores, retention: RetentionStore, feed: Dataset
) -> None:
    assert feed.id not in retention.datasets(feed.tenant_id)
    assert cut(retention, feed) == 0
    keep(stores, feed, changes=1)
    assert feed.id in retention.datasets(feed.tenant_id)
    stores.catalog.delete(feed.tenant_id, feed.id, version=None)
    assert feed.id not in retention.datasets(feed.tenant_id)
    assert cut(retention, feed) == 0


HOUR = 3600


@pytest.mark.parametrize(
    ("kind", "position", "max_changes", "max_seconds", "beginning"),
    [
        (ConsumerKind.READER, 3, None, None, 3),
        # A position within a commit keeps all of the commit.
        (ConsumerKind.READER, 4, None, None, 3),
        (ConsumerKind.READER, 0, None, None, 0),
        (ConsumerKind.READER, 9, None, None, 9),
        (ConsumerKind.READER, 3, 6, None, 3),
        (ConsumerKind.READER, 3, 5, None, 9),
        # The oldest change that it has not committed is three hours old.
        (ConsumerKind.READER, 3, None, 3 * HOUR + 60, 3),
        (ConsumerKind.READER, 3, None, 3 * HOUR - 60, 9),
        (ConsumerKind.READER, 3, 5, 3 * HOUR + 60, 9),
        (ConsumerKind.READER, 3, 6, 3 * HOUR - 60, 9),
        (ConsumerKind.READER, 9, 0, 0, 9),
        (ConsumerKind.VIEW, 3, None, None, 3),
        # It reads its input as a whole if it comes back.
        (ConsumerKind.VIEW, 0, None, None, 9),
        (ConsumerKind.WEBHOOK, 3, None, None, 3),
        (ConsumerKind.EXPORT, 0, None, None, 9),
        (ConsumerKind.EXPORT, 0, None, 5 * HOUR, 0),
        (ConsumerKind.WEBHOOK, 3, 6, None, 3),
    ],
)
def test_consumers_within_their_lag_bound_retain_their_changes(
    stores: Stores,
    retention: RetentionStore,
    feed: Dataset,
    kind: ConsumerKind,
    position: int,
    max_changes: int | None,
    max_seconds: int | None,
    beginning: int,
) -> None:
    """Followers that say nothing may be three and a half hours behind here."""
    keep(stores, feed, seconds=60)
    with stores.database.tenant(feed.tenant_id) as connection:
        # Who is at the head holds nothing.
        add_follower(connection, feed.id, "view:head", ConsumerKind.VIEW, 9)
        bounds = {"max_lag_rows": max_changes, "max_lag_seconds": max_seconds}
        add_follower(connection, feed.id, "c", kind, position, **bounds)
    retention.cut(feed.tenant_id, feed.id, follower_lag_seconds=3.5 * HOUR)
    assert earliest(stores, feed) == beginning


def test_consumer_with_expired_changes_retains_nothing(
    stores: Stores, retention: RetentionStore, consumers: ConsumerStore, feed: Dataset
) -> None:
    keep(stores, feed, changes=5)
    with stores.database.tenant(feed.tenant_id) as connection:
        add_follower(connection, feed.id, "slow", ConsumerKind.READER, 1, max_lag_rows=2)
    assert cut(retention, feed) == 3
    consumers.put(feed.tenant_id, feed.id, "slow", ConsumerChange(max_lag=None), ExpectedRevision(revision=1))
    keep(stores, feed, changes=1)
    assert cut(retention, feed) == 2
    assert consumers.get(feed.tenant_id, feed.id, "slow").expired


def test_files_expire_in_bounded_steps(stores: Stores, retention: RetentionStore, feed: Dataset) -> None:
    """Until then they are referenced, so that nothing deletes them while a page is read."""
    references = ReferenceStore(stores.database)
    segments = stores.changelog.segments(feed.tenant_id, feed.id, 0, 9)
    paths = [segment.file.path for segment in segments]
    keep(stores, feed, changes=1)
    assert retention.expire_files(feed.tenant_id, feed.id, 10) == 0
    assert cut(retention, feed) == 5
    assert references.referenced(feed.tenant_id, feed.id, paths) == set(paths)
    assert retention.expire_files(feed.tenant_id, feed.id, 1) == 1
    assert references.referenced(feed.tenant_id, feed.id, paths) == set(paths[1:])
    assert retention.expire_files(feed.tenant_id, feed.id, 10) == 1
    assert references.referenced(feed.tenant_id, feed.id, paths) == {paths[2]}
    assert retention.expire_files(feed.tenant_id, feed.id, 10) == 0


def test_retention_round_cuts_every_feed_and_expires_files_in_the_next(
    stores: Stores, retention: RetentionStore, feed: Dataset, tmp_path: Path
) -> None:
    keep(stores, feed, changes=1)
    rounds = Retain(
        feeds=retention,
        keys=ReplyStore(stores.database),
        rows=expire_rows(stores.database, LocalStorage(tmp_path), job_keep_seconds=WEEK),
        follower_lag_seconds=WEEK,
    )
    other = stores.tenants.add_tenant(f"tenant-{new_id()}")
    stores.catalog.create(other, new_id(), definition())
    assert rounds.run() == 5
    assert rounds.run() == 0
    with stores.database.tenant(feed.tenant_id) as connection:
        left = connection.execute(text("SELECT first_offset FROM changelog_files")).scalars().all()
    assert left == [5]


def test_expired_offsets_are_refused_and_the_rest_is_read(
    stores: Stores, retention: RetentionStore, feed: Dataset, running: Callable[[], Job]
) -> None:
    keep(stores, feed, changes=1)
    cut(retention, feed)
    for purged in (False, True):
        assert [each.first_offset for each in stores.changelog.segments(feed.tenant_id, feed.id, 5, 9)] == [5]
        if purged:
            # One who had requested the bounds before the cut is not given what is left for what it requested.
            for since in (0, 2, 3, 4):
                with pytest.raises(OffsetExpired) as error:
                    stores.changelog.segments(feed.tenant_id, feed.id, since, 9)
                assert error.value.facts == {"since": since, "earliest": 5}
        retention.expire_files(feed.tenant_id, feed.id, 10)
    version = stores.catalog.get(feed.tenant_id, feed.id).version
    more = commit_of([running()], [message(7, changes=2)], read_version=version)
    assert stores.timeline.publish_one(feed.tenant_id, more).first_offset == 9
    assert [each.first_offset for each in stores.changelog.segments(feed.tenant_id, feed.id, 5, 11)] == [5, 9]


def test_consumer_created_during_a_cut_is_never_expired(
    stores: Stores, retention: RetentionStore, consumers: ConsumerStore, feed: Dataset
) -> None:
    """Never in between: what a consumer was promised at its making is there."""
    keep(stores, feed, changes=1)
    for number in range(12):
        with stores.database.tenant(feed.tenant_id) as connection:
            connection.execute(text("UPDATE heads SET earliest_offset = 0"))
            connection.execute(text("DELETE FROM consumers"))

        def make(name: str, offset: int | StartingPosition) -> None:
            with suppress(OffsetExpired):
                consumers.put(
                    feed.tenant_id, feed.id, name, ConsumerChange(offset=offset), ExpectedRevision()
                )

        calls: list[Callable[[], object]] = [
            partial(make, "three", 3),
            partial(cut, retention, feed),
            partial(make, "earliest", StartingPosition.EARLIEST),
            partial(cut, retention, feed),
        ]
        together(calls if number % 2 else calls[::-1])
        made = consumers.list(feed.tenant_id, feed.id, page_size=5, page_token=None).items
        assert "earliest" in {each.consumer.name for each in made}
        assert not any(each.expired for each in made)


def test_consumer_creation_blocks_a_cut(
    stores: Stores, retention: RetentionStore, consumers: ConsumerStore, feed: Dataset
) -> None:
    """The interleaving that a race may miss: the cut waits for the making that has read the bounds already."""
    keep(stores, feed, changes=1)
    with stores.database.tenant(feed.tenant_id) as connection:
        lock_feed(connection, feed.id)
        with ThreadPoolExecutor(1) as pool:
            cutting = pool.submit(cut, retention, feed)
            until(cutting.running, "the cut to begin")
            add_follower(connection, feed.id, "c", ConsumerKind.READER, 3)
            connection.commit()
            assert cutting.result(timeout=20) == 3


def test_consumer_move_blocks_a_cut(
    stores: Stores, retention: RetentionStore, consumers: ConsumerStore, feed: Dataset
) -> None:
    """It keeps nothing where it is, and everything where it goes."""
    keep(stores, feed, changes=1)
    with stores.database.tenant(feed.tenant_id) as connection:
        add_follower(connection, feed.id, "c", ConsumerKind.READER, 0, max_lag_rows=6)
    with stores.database.tenant(feed.tenant_id) as connection:
        connection.execute(text("UPDATE consumers SET position = 3"))
        with ThreadPoolExecutor(1) as pool:
            cutting = pool.submit(cut, retention, feed)
            until(cutting.running, "the cut to begin")
            time.sleep(0.1)
            assert not cutting.done()
            connection.commit()
            assert cutting.result(timeout=20) == 3
    # And the other way round: who waited for a cut gets what that left.
    keep(stores, feed, changes=1)
    with stores.database.tenant(feed.tenant_id) as connection:
        connection.execute(text("SELECT FROM consumers FOR SHARE"))
        connection.execute(text("UPDATE heads SET earliest_offset = 5"))
        with ThreadPoolExecutor(1) as pool:
            change = ConsumerChange(offset=4)
            moving = pool.submit(consumers.put, *place(feed), "c", change, ExpectedRevision(revision=1))
            until(moving.running, "the move to begin")
            time.sleep(0.1)
            assert not moving.done()
            connection.commit()
            with pytest.raises(OffsetExpired):
                moving.result(timeout=20)


def test_commits_proceed_beside_constantly_moving_consumers(
    stores: Stores, consumers: ConsumerStore, feed: Dataset, running: Callable[[], Job]
) -> None:
    """Those who share a lock never make way for one who wants it alone, so a move must not share the head's."""
    done = Event()

    def move(name: str) -> None:
        revision = None
        while not done.is_set():
            change = ConsumerChange(offset=StartingPosition.NOW)
            standing, _ = consumers.put(*place(feed), name, change, ExpectedRevision(revision=revision))
            revision = standing.consumer.revision

    def publish() -> None:
        try:
            for _ in range(6):
                version = stores.catalog.get(feed.tenant_id, feed.id).version
                commit = commit_of([running()], [message(changes=1)], read_version=version)
                assert isinstance(stores.timeline.publish_one(feed.tenant_id, commit), Published)
        finally:
            done.set()

    together([publish, *(partial(move, f"c{number}") for number in range(4))])


def test_retention_change_is_a_version_without_a_schema(stores: Stores, feed: Dataset) -> None:
    before = stores.catalog.get(feed.tenant_id, feed.id)
    keep(stores, feed, seconds=60)
    after = stores.catalog.get(feed.tenant_id, feed.id)
    assert (after.version, after.next_offset) == (before.version + 1, before.next_offset)
    assert after.definition.schema == before.definition.schema
    assert len(stores.catalog.schemas(feed.tenant_id, feed.id, page_size=5, page_token=None).items) == 1
    assert stores.timeline.schema_at(feed.tenant_id, feed.id, after.version) == before.definition.schema
