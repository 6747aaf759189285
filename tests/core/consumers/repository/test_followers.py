"""Followers: who is due, who holds one, and that a hold that was lost changes nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
from sqlalchemy import text

from app.core.catalog.values import Dataset
from app.core.changes.positions import SnapshotPosition
from app.core.consumers.followers import Consumer, ConsumerKind
from app.core.consumers.repository.followers import (
    FollowerStore,
    add_follower,
    move_consumer,
    move_follower,
    wake_follower,
)
from app.core.consumers.values import ConsumerPlace
from app.core.jobs.values import Job, OutboxMessage
from app.infra.identifiers import new_id
from tests.support.lakehouse import commit_of, definition, message
from tests.support.store_fixtures import Stores
from tests.support.threads import together

LEASE_SECONDS = 60.0


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
        position: int = 0,
        *,
        kind: ConsumerKind = ConsumerKind.WEBHOOK,
        wake: float | None = None,
        snapshot: SnapshotPosition | None = None,
    ) -> str:
        name = f"{kind.value}:{new_id()}"
        with stores.database.tenant(dataset.tenant_id) as connection:
            add_follower(
                connection, dataset.id, name, kind, position, snapshot=snapshot, wake_after_seconds=wake
            )
        return name

    return run


@pytest.fixture
def due(followers: FollowerStore, dataset: Dataset) -> Callable[[], bool]:
    return lambda: (dataset.tenant_id, dataset.id) in followers.due(10_000)


@pytest.fixture
def claim_follower(followers: FollowerStore, dataset: Dataset) -> Callable[..., Consumer | None]:
    def run(owner: str = "worker", seconds: float = LEASE_SECONDS) -> Consumer | None:
        return followers.claim(dataset.tenant_id, dataset.id, owner, seconds)

    return run


def claimed(claim_follower: Callable[..., Consumer | None], **how: object) -> Consumer:
    found = claim_follower(**how)
    assert found is not None
    return found


def move(stores: Stores, dataset: Dataset, name: str, since: int, next_since: int) -> bool:
    with stores.database.tenant(dataset.tenant_id) as connection:
        return move_follower(connection, dataset.id, name, since, next_since)


def wake(stores: Stores, dataset: Dataset, name: str, after: float | None = 0.0) -> None:
    with stores.database.tenant(dataset.tenant_id) as connection:
        wake_follower(connection, dataset.id, name, after)


def test_follower_is_due_while_it_is_behind(
    stores: Stores,
    followers: FollowerStore,
    dataset: Dataset,
    publish: Callable[[], None],
    add: Callable[..., str],
    due: Callable[[], bool],
    claim_follower: Callable[..., Consumer | None],
) -> None:
    name = add()
    assert not due()
    assert claim_follower() is None
    publish()
    assert due()
    consumer = claimed(claim_follower)
    assert (consumer.name, consumer.kind, consumer.position) == (name, ConsumerKind.WEBHOOK, 0)
    assert move(stores, dataset, name, 0, 2)
    followers.settle(dataset.tenant_id, consumer, None)
    assert due()
    consumer = claimed(claim_follower)
    assert (consumer.position, consumer.revision) == (2, 2)
    assert move(stores, dataset, name, 2, 3)
    followers.settle(dataset.tenant_id, consumer, None)
    assert not due()
    publish()
    assert due()


def test_follower_is_due_at_its_requested_time(
    stores: Stores,
    followers: FollowerStore,
    dataset: Dataset,
    publish: Callable[[], None],
    add: Callable[..., str],
    due: Callable[[], bool],
    claim_follower: Callable[..., Consumer | None],
) -> None:
    publish()
    name = add()
    for seconds in (3_600.0, math.inf):
        # Though it is behind, and though more comes.
        followers.settle(dataset.tenant_id, claimed(claim_follower), seconds)
        publish()
        assert not due()
        assert claim_follower() is None
        wake(stores, dataset, name)
        assert due()
    followers.settle(dataset.tenant_id, claimed(claim_follower), math.inf)
    wake(stores, dataset, name, None)
    assert due()
    move(stores, dataset, name, 0, 9)
    assert not due()
    # Though there is nothing to read: it may be time for something else.
    wake(stores, dataset, name, 0.0)
    assert due()
    assert claim_follower() is not None


def test_new_follower_may_start_later(
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


def test_claimed_follower_is_not_claimed_by_others(
    followers: FollowerStore,
    dataset: Dataset,
    publish: Callable[[], None],
    add: Callable[..., str],
    due: Callable[[], bool],
    claim_follower: Callable[..., Consumer | None],
) -> None:
    publish()
    names = {add() for _ in range(5)}
    found = together([claim_follower] * 8)
    assert {each.name for each in found if each is not None} == names
    assert sum(each is None for each in found) == 3
    assert not due()
    for each in found:
        if each is not None:
            followers.settle(dataset.tenant_id, each, None)
    assert due()


def test_follower_that_moved_longest_ago_is_claimed_first(
    stores: Stores,
    followers: FollowerStore,
    dataset: Dataset,
    publish: Callable[[], None],
    add: Callable[..., str],
    claim_follower: Callable[..., Consumer | None],
) -> None:
    publish(), publish()
    names = [add() for _ in range(3)]
    served = []
    for _ in range(12):
        consumer = claimed(claim_follower)
        served.append(consumer.name)
        # Always behind.
        assert move(stores, dataset, consumer.name, consumer.position, consumer.position + 1)
        followers.settle(dataset.tenant_id, consumer, None)
    assert served == names * 4


def test_lost_claim_changes_nothing(
    stores: Stores,
    followers: FollowerStore,
    dataset: Dataset,
    publish: Callable[[], None],
    add: Callable[..., str],
    due: Callable[[], bool],
    claim_follower: Callable[..., Consumer | None],
) -> None:
    publish()
    name = add()
    slow = claimed(claim_follower, owner="slow")
    assert not due()
    with stores.database.tenant(dataset.tenant_id) as connection:
        connection.execute(
            text("UPDATE consumers SET lease_until = clock_timestamp(), wake_at = clock_timestamp()")
        )
    assert due()
    other = claimed(claim_follower, owner="other")
    assert (other.name, other.lease_epoch) == (name, slow.lease_epoch + 1)
    followers.settle(dataset.tenant_id, slow, math.inf)
    assert claim_follower() is None, "it is the other's still"
    followers.settle(dataset.tenant_id, other, None)
    followers.settle(dataset.tenant_id, slow, math.inf)
    assert due()
    assert claimed(claim_follower).member == "worker"


def test_wake_during_a_claim_makes_the_follower_due_afterwards(
    stores: Stores,
    followers: FollowerStore,
    dataset: Dataset,
    add: Callable[..., str],
    due: Callable[[], bool],
    claim_follower: Callable[..., Consumer | None],
) -> None:
    """The worker that holds it has looked before what it is called for was there."""
    name = add(wake=0.0)
    for seconds in (None, 3_600.0, math.inf):
        consumer = claimed(claim_follower)
        wake(stores, dataset, name)
        assert not due()
        followers.settle(dataset.tenant_id, consumer, seconds)
        assert due()


def test_follower_moves_only_from_its_current_position(
    stores: Stores, dataset: Dataset, add: Callable[..., str], followers: FollowerStore
) -> None:
    name = add(4)
    assert not move(stores, dataset, name, 3, 9)
    assert not move(stores, dataset, "webhook:other", 4, 9)
    assert sum(together([lambda: move(stores, dataset, name, 4, 5)] * 4)) == 1
    with stores.database.tenant(dataset.tenant_id) as connection:
        row = connection.execute(text("SELECT position, revision FROM consumers")).one()
    assert tuple(row) == (5, 2)


def test_commit_notifies_followers_only_if_there_are_any(
    stores: Stores, dataset: Dataset, publish: Callable[[], None], add: Callable[..., str]
) -> None:
    def relayed() -> list[str]:
        found: list[str] = []

        def keep(messages: Sequence[OutboxMessage]) -> None:
            found.extend(each.topic for each in messages if each.dataset_id == dataset.id)

        while stores.outbox.relay(keep, 100):
            pass
        return found

    publish()
    assert "follow" not in relayed()
    add()
    assert relayed() == ["follow"]
    publish()
    assert relayed().count("follow") == 1


def test_followers_of_another_tenant_are_not_claimed(
    stores: Stores,
    followers: FollowerStore,
    dataset: Dataset,
    publish: Callable[[], None],
    add: Callable[..., str],
) -> None:
    publish()
    add()
    other = stores.tenants.add_tenant(f"tenant-{new_id()}")
    assert followers.claim(other, dataset.id, "w", LEASE_SECONDS) is None


def test_followers_of_one_tenant_do_not_hide_those_of_another(
    stores: Stores, followers: FollowerStore, tenant_id: str
) -> None:
    def follow(tenant: str) -> tuple[str, str]:
        made = stores.catalog.create(tenant, new_id(), definition(f"d-{new_id()}")).id
        with stores.database.tenant(tenant) as connection:
            add_follower(
                connection, made, f"webhook:{new_id()}", ConsumerKind.WEBHOOK, 0, wake_after_seconds=0
            )
        return tenant, made

    noisy = [follow(tenant_id) for _ in range(5)]
    quiet = follow(stores.tenants.add_tenant(f"tenant-{new_id()}"))
    found = [each for each in followers.due(10_000) if each in (*noisy, quiet)]
    assert found == [noisy[0], quiet, *noisy[1:]]


def test_follower_within_the_rows_of_a_version_is_due_at_the_head(
    stores: Stores, dataset: Dataset, add: Callable[..., str], due: Callable[[], bool]
) -> None:
    within = SnapshotPosition(version=0, group=0, row=2)
    name = add(0, snapshot=within)
    assert due()
    with stores.database.tenant(dataset.tenant_id) as connection:
        ids = connection, dataset.id, name
        there, behind = ConsumerPlace(offset=0, snapshot=within), ConsumerPlace(offset=0)
        assert not move_follower(*ids, 0, 3)
        assert not move_consumer(*ids, behind, there)
        assert move_consumer(*ids, there, behind)
    assert not due()
