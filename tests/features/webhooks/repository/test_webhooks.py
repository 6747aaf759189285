"""Webhooks in Postgres: who lost a hold changes nothing, and who wakes one that is held is heard."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count

import msgspec
import pytest
from sqlalchemy import func, update

from app.access.errors import NotFound, PreconditionFailed
from app.core.catalog.values import Dataset
from app.core.changes.positions import StartingPosition
from app.core.changes.values import DeliveryFormat
from app.core.consumers.followers import Consumer
from app.core.consumers.repository.followers import FollowerStore
from app.core.consumers.tables import consumers
from app.core.consumers.values import ConsumerPlace, MaxLag
from app.core.timeline.values import Published
from app.features.webhooks.repository.deliveries import DeliveryStore
from app.features.webhooks.repository.webhooks import WebhookStore
from app.features.webhooks.values import (
    ATTEMPTS_MAX,
    Delivery,
    DeliveryState,
    Reply,
    Webhook,
    WebhookDefinition,
    WebhookState,
)
from app.infra.identifiers import new_id
from app.kernel.format.errors import Fault
from tests.support.lakehouse import commit_of, message
from tests.support.store_fixtures import Stores

DEFINITION = WebhookDefinition(url="https://hooks.example/")
REFUSED = Reply(status=500, error="no", seconds=0.1)
TAKEN = Reply(status=200, error=None, seconds=0.1)


@pytest.fixture
def webhooks(stores: Stores) -> WebhookStore:
    return WebhookStore(stores.database)


@pytest.fixture
def deliveries(stores: Stores) -> DeliveryStore:
    return DeliveryStore(stores.database, keep_seconds=3600)


@pytest.fixture
def followers(stores: Stores) -> FollowerStore:
    return FollowerStore(stores.database)


@pytest.fixture
def commit(stores: Stores, tenant_id: str, running: Callable[..., object]) -> Callable[[int], None]:
    """Commits this number of changes."""

    numbers = count()

    def run(changes: int) -> None:
        commit = commit_of([running()], [message(next(numbers), changes=changes)])
        assert isinstance(stores.timeline.publish_one(tenant_id, commit), Published)

    return run


@pytest.fixture
def webhook(webhooks: WebhookStore, tenant_id: str, dataset: Dataset) -> Webhook:
    return webhooks.add(
        tenant_id,
        new_id(),
        dataset.id,
        DEFINITION,
        "whsec_1",
        schema_id=dataset.definition.schema.id,
        since=StartingPosition.NOW,
        max_lag=MaxLag(),
    )


@pytest.fixture
def claim_follower(followers: FollowerStore, tenant_id: str, dataset: Dataset) -> Callable[..., Consumer]:
    def run(lease_seconds: float = 30) -> Consumer:
        consumer = followers.claim(tenant_id, dataset.id, "worker", lease_seconds)
        assert consumer is not None
        return consumer

    return run


def at(offset: int) -> ConsumerPlace:
    return ConsumerPlace(offset=offset)


def resume(webhooks: WebhookStore, tenant_id: str, webhook_id: str) -> None:
    webhooks.change(
        tenant_id,
        webhook_id,
        revision=webhooks.get(tenant_id, webhook_id).revision,
        definition=DEFINITION,
        state=WebhookState.ACTIVE,
        max_lag=MaxLag(),
    )


@pytest.fixture
def begun(
    webhook: Webhook,
    deliveries: DeliveryStore,
    tenant_id: str,
    commit: Callable[[int], None],
    claim_follower: Callable[..., Consumer],
) -> Delivery:
    """A message of two changes."""
    commit(2)
    delivery = deliveries.begin(
        tenant_id, claim_follower(), at(0), at(2), new_id(), DeliveryFormat(schema_id=1)
    )
    assert delivery is not None
    return delivery


def test_ended_message_advances_the_position(
    begun: Delivery, webhook: Webhook, webhooks: WebhookStore, deliveries: DeliveryStore, tenant_id: str
) -> None:
    work = deliveries.work(tenant_id, webhook.id)
    assert work is not None
    assert (work.next, work.next_seconds, work.redelivery) == (begun, 0, None)
    assert webhooks.get(tenant_id, webhook.id).place.offset == 0
    deliveries.delivered(tenant_id, begun, msgspec.structs.replace(TAKEN, status=204))
    assert webhooks.get(tenant_id, webhook.id).place.offset == 2
    ended = webhooks.delivery(tenant_id, webhook.id, begun.id)
    assert (ended.state, ended.attempts, ended.status) == (DeliveryState.DELIVERED, 1, 204)


def test_two_workers_with_one_message_count_one_attempt(
    begun: Delivery, webhook: Webhook, webhooks: WebhookStore, deliveries: DeliveryStore, tenant_id: str
) -> None:
    deliveries.failed(tenant_id, begun, REFUSED, retry_seconds=60, dead_max=1)
    deliveries.delivered(tenant_id, begun, TAKEN)
    deliveries.failed(tenant_id, begun, REFUSED, retry_seconds=None, dead_max=1)
    waits = webhooks.delivery(tenant_id, webhook.id, begun.id)
    assert (waits.state, waits.attempts, waits.error) == (DeliveryState.PENDING, 1, "no")
    assert webhooks.get(tenant_id, webhook.id).place.offset == 0
    work = deliveries.work(tenant_id, webhook.id)
    assert work is not None
    assert work.next_seconds is not None
    assert 50 < work.next_seconds <= 60


def test_lost_claim_neither_begins_nor_skips_a_message(
    webhook: Webhook,
    webhooks: WebhookStore,
    deliveries: DeliveryStore,
    followers: FollowerStore,
    tenant_id: str,
    commit: Callable[[int], None],
    claim_follower: Callable[..., Consumer],
) -> None:
    commit(3)
    lost = claim_follower(lease_seconds=0.05)
    time.sleep(0.1)
    taken = claim_follower()
    assert taken.lease_epoch > lost.lease_epoch
    assert deliveries.begin(tenant_id, lost, at(0), at(2), new_id(), DeliveryFormat()) is None
    deliveries.skip(tenant_id, lost, at(0), at(2))
    followers.settle(tenant_id, lost, math.inf)
    assert webhooks.get(tenant_id, webhook.id).place.offset == 0
    deliveries.skip(tenant_id, taken, at(0), at(2))
    assert webhooks.get(tenant_id, webhook.id).place.offset == 2
    # The same hold again, at a position that it has left.
    assert deliveries.begin(tenant_id, taken, at(0), at(3), new_id(), DeliveryFormat()) is None


def test_wake_during_a_claim_makes_the_follower_due(
    webhook: Webhook,
    webhooks: WebhookStore,
    followers: FollowerStore,
    tenant_id: str,
    dataset: Dataset,
    commit: Callable[[int], None],
    claim_follower: Callable[..., Consumer],
) -> None:
    commit(1)
    consumer = claim_follower()
    # The worker has seen that the webhook is paused; now it is resumed, and only then the hold ends.
    resume(webhooks, tenant_id, webhook.id)
    followers.settle(tenant_id, consumer, math.inf)
    assert (tenant_id, dataset.id) in followers.due(100)
    consumer = claim_follower()
    followers.settle(tenant_id, consumer, math.inf)
    assert (tenant_id, dataset.id) not in followers.due(100)
    commit(1)
    assert (tenant_id, dataset.id) not in followers.due(100)


def test_follower_of_a_dead_worker_becomes_due(
    webhook: Webhook,
    followers: FollowerStore,
    tenant_id: str,
    dataset: Dataset,
    commit: Callable[[int], None],
    claim_follower: Callable[..., Consumer],
) -> None:
    commit(1)
    claim_follower(lease_seconds=0.2)
    assert (tenant_id, dataset.id) not in followers.due(100)
    time.sleep(0.3)
    assert (tenant_id, dataset.id) in followers.due(100)


def test_consecutive_dead_messages_pause_a_webhook_and_redeliveries_do_not(
    begun: Delivery, webhook: Webhook, webhooks: WebhookStore, deliveries: DeliveryStore, tenant_id: str
) -> None:
    deliveries.failed(tenant_id, begun, REFUSED, retry_seconds=None, dead_max=2)
    found = webhooks.get(tenant_id, webhook.id)
    assert (found.state, found.failures, found.place.offset) == (WebhookState.ACTIVE, 1, 2)
    assert webhooks.redeliver(tenant_id, webhook.id, None) == 1
    work = deliveries.work(tenant_id, webhook.id)
    assert work is not None
    assert (work.next, work.redelivery_seconds) == (None, 0)
    assert work.redelivery is not None
    deliveries.failed(tenant_id, work.redelivery, REFUSED, retry_seconds=None, dead_max=2)
    found = webhooks.get(tenant_id, webhook.id)
    assert (found.state, found.failures, found.place.offset) == (WebhookState.ACTIVE, 1, 2)


def test_first_pause_reason_is_kept(
    webhook: Webhook, webhooks: WebhookStore, deliveries: DeliveryStore, tenant_id: str
) -> None:
    for detail in ("first", "second"):
        deliveries.pause(tenant_id, webhook.id, Fault(code="internal", title="t", detail=detail))
    paused = webhooks.get(tenant_id, webhook.id)
    assert paused.error is not None
    assert (paused.state, paused.error.detail, paused.revision) == (WebhookState.PAUSED, "first", 2)


def test_old_messages_are_purged_when_new_ones_begin(
    stores: Stores,
    begun: Delivery,
    webhook: Webhook,
    webhooks: WebhookStore,
    deliveries: DeliveryStore,
    followers: FollowerStore,
    tenant_id: str,
    commit: Callable[[int], None],
    claim_follower: Callable[..., Consumer],
) -> None:
    deliveries.delivered(tenant_id, begun, TAKEN)

    def next_message(keep_seconds: float) -> list[int]:
        """The positions of those that are delivered after one more."""
        commit(1)
        resume(webhooks, tenant_id, webhook.id)
        with stores.database.tenant(tenant_id) as connection:
            connection.execute(update(consumers).values(lease_until=func.clock_timestamp()))
        consumer, store = claim_follower(), DeliveryStore(stores.database, keep_seconds=keep_seconds)
        delivery = store.begin(
            tenant_id,
            consumer,
            at(consumer.position),
            at(consumer.position + 1),
            new_id(),
            DeliveryFormat(),
        )
        assert delivery is not None
        store.delivered(tenant_id, delivery, TAKEN)
        page = webhooks.deliveries(tenant_id, webhook.id, None, page_size=10, page_token=None)
        return [each.since.offset for each in page.items]

    assert next_message(3600) == [2, 0]
    assert next_message(1e-6) == [3]


def test_deleted_webhook_ends_its_messages_during_a_delivery(
    begun: Delivery,
    webhook: Webhook,
    webhooks: WebhookStore,
    deliveries: DeliveryStore,
    followers: FollowerStore,
    tenant_id: str,
    dataset: Dataset,
) -> None:
    webhooks.delete(tenant_id, webhook.id, revision=None)
    assert deliveries.work(tenant_id, webhook.id) is None
    deliveries.delivered(tenant_id, begun, TAKEN)
    deliveries.failed(tenant_id, begun, REFUSED, retry_seconds=None, dead_max=1)
    with pytest.raises(NotFound):
        webhooks.get(tenant_id, webhook.id)
    assert followers.claim(tenant_id, dataset.id, "worker", 30) is None


def test_users_and_workers_do_not_deadlock(
    webhook: Webhook,
    webhooks: WebhookStore,
    deliveries: DeliveryStore,
    followers: FollowerStore,
    tenant_id: str,
    dataset: Dataset,
    commit: Callable[[int], None],
) -> None:
    commit(20)
    stop = threading.Event()

    def work() -> None:
        consumer = followers.claim(tenant_id, dataset.id, "worker", 5)
        if consumer is None:
            return
        work = deliveries.work(tenant_id, webhook.id)
        assert work is not None
        begun = work.next or deliveries.begin(
            tenant_id,
            consumer,
            at(consumer.position),
            at(consumer.position + 1),
            new_id(),
            DeliveryFormat(),
        )
        if begun is not None:
            deliveries.failed(tenant_id, begun, REFUSED, retry_seconds=None, dead_max=99)
        followers.settle(tenant_id, consumer, None)

    def use() -> None:
        webhooks.redeliver(tenant_id, webhook.id, None)
        with suppress(PreconditionFailed):
            resume(webhooks, tenant_id, webhook.id)
        webhooks.rotate(tenant_id, webhook.id, "whsec_2", overlap_seconds=5)

    def again_and_again(act: Callable[[], None]) -> None:
        while not stop.is_set():
            act()

    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(again_and_again, act) for act in (work, work, use, use)]
        time.sleep(1.5)
        stop.set()
        for each in running:
            each.result()
    assert webhooks.get(tenant_id, webhook.id).place.offset > 0


def test_attempts_are_bounded_and_the_latest_is_first(
    begun: Delivery, webhook: Webhook, webhooks: WebhookStore, deliveries: DeliveryStore, tenant_id: str
) -> None:
    assert webhooks.attempts(tenant_id, webhook.id) == ()
    deliveries.failed(
        tenant_id, begun, msgspec.structs.replace(REFUSED, answer="full"), retry_seconds=0, dead_max=1
    )
    [first] = webhooks.attempts(tenant_id, webhook.id)
    assert (first.delivery, first.status, first.error, first.seconds, first.answer) == (
        begun.id,
        *(500, "no", 0.1, "full"),
    )
    deliveries.delivered(tenant_id, begun, TAKEN)
    assert webhooks.attempts(tenant_id, webhook.id) == (first,), "another worker has counted that attempt"
    for number in range(ATTEMPTS_MAX + 2):
        webhooks.tested(tenant_id, webhook.id, msgspec.structs.replace(TAKEN, seconds=float(number)))
    latest = webhooks.attempts(tenant_id, webhook.id)
    assert [each.seconds for each in latest] == [float(number) for number in range(11, 1, -1)]
    assert {each.delivery for each in latest} == {None}
    webhooks.delete(tenant_id, webhook.id, revision=None)
    webhooks.tested(tenant_id, webhook.id, TAKEN)
