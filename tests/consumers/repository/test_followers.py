"""Followers: who is due, who holds one, and that a hold that was lost changes nothing."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from sqlalchemy import text

from app.catalog.values import Dataset
from app.consumers.followers import Consumer, ConsumerKind
from app.consumers.repository.followers import FollowerStore, add_follower, move_follower, wake_follower
from app.format.identifiers import new_id
from app.jobs.values import Job
from tests.support.lakehouse import commit_of, message
from tests.support.store_fixtures import Stores
from tests.support.threads import together

HOLD = 60.0


@pytest.fixture
def followers(stores: Stores) -> FollowerStore:
    return FollowerStore(stores.database)


@pytest.fixture
def publish(stores: Stores, dataset: Dataset, running: Callable[[], Job]) -> Callable[[], None]:
    """Commits three more changes."""

    def run() -> None:
        version = stores.catalog.get(dataset.tenant_id, dataset.id).version
        commit = commit_of([running()], [message(changes=3)], read_version=version)
        stores.timeline.publish_one(dataset.tenant_id, commit)

    return run


@pytest.fixture
def add(stores: Stores, dataset: Dataset) -> Callable[..., str]:
    """Adds a follower and returns its name."""

    def run(
        position: int = 0, *, kind: ConsumerKind = ConsumerKind.WEBHOOK, wake: float | None = None
    ) -> str:
        name = f"{kind.value}:{new_id()}"
        with stores.database.tenant(dataset.tenant_id) as connection:
            add_follower(connection, dataset.id, name, kind, position, wake_after_seconds=wake)
        return name

    return run


@pytest.fixture
def due(followers: FollowerStore, dataset: Dataset) -> Callable[[], bool]:
    return lambda: (dataset.tenant_id, dataset.id) in followers.due(10_000)


@pytest.fixture
def hold(followers: FollowerStore, dataset: Dataset) -> Callable[..., Consumer | None]:
    def run(owner: str = "worker", seconds: float = HOLD) -> Consumer | None:
        return followers.claim(dataset.tenant_id, dataset.id, owner, seconds)

    return run


def held(hold: Callable[..., Consumer | None], **how: object) -> Consumer:
    found = hold(**how)
    assert found is not None
    return found


def move(stores: Stores, dataset: Dataset, name: str, since: int, next_since: int) -> bool:
    with stores.database.tenant(dataset.tenant_id) as connection:
        return move_follower(connection, dataset.id, name, since, next_since)


def wake(stores: Stores, dataset: Dataset, name: str, after: float | None = 0.0) -> None:
    with stores.database.tenant(dataset.tenant_id) as connection:
        wake_follower(connection, dataset.id, name, after)


def test_it_is_due_while_it_is_behind(
    stores: Stores,
    followers: FollowerStore,
    dataset: Dataset,
    publish: Callable[[], None],
    add: Callable[..., str],
    due: Callable[[], bool],
    hold: Callable[..., Consumer | None],
) -> None:
    name = add()
    assert not due()
    assert hold() is None
    publish()
    assert due()
    consumer = held(hold)
    assert (consumer.name, consumer.kind, consumer.position) == (name, ConsumerKind.WEBHOOK, 0)
    assert move(stores, dataset, name, 0, 2)
    followers.settle(dataset.tenant_id, consumer, None)
    assert due()
    consumer = held(hold)
    assert (consumer.position, consumer.revision) == (2, 2)
    assert move(stores, dataset, name, 2, 3)
    followers.settle(dataset.tenant_id, consumer, None)
    assert not due()
    publish()
    assert due()


def test_it_is_due_when_it_asked_to_be(
    stores: Stores,
    followers: FollowerStore,
    dataset: Dataset,
    publish: Callable[[], None],
    add: Callable[..., str],
    due: Callable[[], bool],
    hold: Callable[..., Consumer | None],
) -> None:
    publish()
    name = add()
    for seconds in (3_600.0, math.inf):
        # Though it is behind, and though more comes.
        followers.settle(dataset.tenant_id, held(hold), seconds)
        publish()
        assert not due()
        assert hold() is None
        wake(stores, dataset, name)
        assert due()
    followers.settle(dataset.tenant_id, held(hold), math.inf)
    wake(stores, dataset, name, None)
    assert due()
    move(stores, dataset, name, 0, 9)
    assert not due()
    # Though there is nothing to read: it may be time for something else.
    wake(stores, dataset, name, 0.0)
    assert due()
    assert hold() is not None


def test_a_new_one_may_wait_for_its_time(
    publish: Callable[[], None], add: Callable[..., str], due: Callable[[], bool]
) -> None:
    publish()
    add(wake=3_600.0)
    assert not due()
    add(3)
    assert not due()
    add(0, kind=ConsumerKind.READER)
    assert not due(), "a reader moves by itself"
    add(3, wake=0.0)
    assert due()


def test_what_is_held_is_nobody_elses(
    followers: FollowerStore,
    dataset: Dataset,
    publish: Callable[[], None],
    add: Callable[..., str],
    due: Callable[[], bool],
    hold: Callable[..., Consumer | None],
) -> None:
    publish()
    names = {add() for _ in range(5)}
    found = together([hold] * 8)
    assert {each.name for each in found if each is not None} == names
    assert sum(each is None for each in found) == 3
    assert not due()
    for each in found:
        if each is not None:
            followers.settle(dataset.tenant_id, each, None)
    assert due()


def test_whoever_moved_longest_ago_comes_first(
    stores: Stores,
    followers: FollowerStore,
    dataset: Dataset,
    publish: Callable[[], None],
    add: Callable[..., str],
    hold: Callable[..., Consumer | None],
) -> None:
    publish(), publish()
    names = [add() for _ in range(3)]
    served = []
    for _ in range(12):
        consumer = held(hold)
        served.append(consumer.name)
        # Always behind.
        assert move(stores, dataset, consumer.name, consumer.position, consumer.position + 1)
        followers.settle(dataset.tenant_id, consumer, None)
    assert served == names * 4


def test_a_hold_that_was_lost_changes_nothing(
    stores: Stores,
    followers: FollowerStore,
    dataset: Dataset,
    publish: Callable[[], None],
    add: Callable[..., str],
    due: Callable[[], bool],
    hold: Callable[..., Consumer | None],
) -> None:
    publish()
    name = add()
    slow = held(hold, owner="slow")
    assert not due()
    with stores.database.tenant(dataset.tenant_id) as connection:
        connection.execute(
            text("UPDATE consumers SET lease_until = clock_timestamp(), wake_at = clock_timestamp()")
        )
    assert due()
    other = held(hold, owner="other")
    assert (other.name, other.lease_epoch) == (name, slow.lease_epoch + 1)
    followers.settle(dataset.tenant_id, slow, math.inf)
    assert hold() is None, "it is the other's still"
    followers.settle(dataset.tenant_id, other, None)
    followers.settle(dataset.tenant_id, slow, math.inf)
    assert due()
    assert held(hold).member == "worker"


def test_a_call_while_it_is_held_is_heard(
    stores: Stores,
    followers: FollowerStore,
    dataset: Dataset,
    add: Callable[..., str],
    due: Callable[[], bool],
    hold: Callable[..., Consumer | None],
) -> None:
    """The worker that holds it has looked before what it is called for was there."""
    name = add(wake=0.0)
    for seconds in (None, 3_600.0, math.inf):
        consumer = held(hold)
        wake(stores, dataset, name)
        assert not due()
        followers.settle(dataset.tenant_id, consumer, seconds)
        assert due()


def test_a_position_moves_from_where_it_is(
    stores: Stores, dataset: Dataset, add: Callable[..., str], followers: FollowerStore
) -> None:
    name = add(4)
    assert not move(stores, dataset, name, 3, 9)
    assert not move(stores, dataset, "webhook:other", 4, 9)
    assert sum(together([lambda: move(stores, dataset, name, 4, 5)] * 4)) == 1
    with stores.database.tenant(dataset.tenant_id) as connection:
        row = connection.execute(text("SELECT position, revision FROM consumers")).one()
    assert tuple(row) == (5, 2)


def test_a_commit_calls_followers_if_there_are_any(
    stores: Stores, dataset: Dataset, publish: Callable[[], None], add: Callable[..., str]
) -> None:
    def told() -> list[str]:
        found: list[str] = []

        def keep(message: object) -> None:
            if getattr(message, "dataset_id", None) == dataset.id:
                found.append(getattr(message, "topic", ""))

        while stores.outbox.relay(keep, 100):
            pass
        return found

    publish()
    assert "follow" not in told()
    add()
    assert told() == ["follow"]
    publish()
    assert told().count("follow") == 1


def test_another_tenants_followers_are_not_there(
    stores: Stores,
    followers: FollowerStore,
    dataset: Dataset,
    publish: Callable[[], None],
    add: Callable[..., str],
) -> None:
    publish()
    add()
    other = stores.tenants.add_tenant(f"tenant-{new_id()}")
    assert followers.claim(other, dataset.id, "w", HOLD) is None
