"""The outbox: a message exists if and only if its transaction does, and is sent at least once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Barrier, Event

import pytest

from app.core.catalog.values import Dataset
from app.core.idempotency.errors import IdempotencyMismatch
from app.core.jobs.values import Job, OutboxMessage
from tests.support.lakehouse import new_job
from tests.support.store_fixtures import Stores
from tests.support.threads import together


@pytest.fixture(autouse=True)
def emptied(stores: Stores) -> None:
    """Messages of other tests of the module are gone."""
    while stores.outbox.relay(lambda messages: None, 1000):
        pass


def test_messages_are_sent_in_order_and_once(
    stores: Stores, tenant_id: str, dataset: Dataset, accept: Callable[[], Job]
) -> None:
    accept(), accept(), accept()
    sent: list[OutboxMessage] = []
    assert stores.outbox.relay(sent.extend, 2) == 2
    assert stores.outbox.relay(sent.extend, 2) == 1
    assert stores.outbox.relay(sent.extend, 2) == 0
    assert [(each.topic, each.tenant_id, each.dataset_id) for each in sent] == [
        ("work", tenant_id, dataset.id)
    ] * 3


def test_messages_stay_when_sending_fails(stores: Stores, accept: Callable[[], Job]) -> None:
    accept(), accept()

    def fail(messages: Sequence[OutboxMessage]) -> None:
        assert len(messages) == 2
        raise ConnectionError("the queue is gone")

    with pytest.raises(ConnectionError):
        stores.outbox.relay(fail, 10)
    assert stores.outbox.relay(lambda messages: None, 10) == 2


def test_refused_request_leaves_no_message(stores: Stores, tenant_id: str, dataset: Dataset) -> None:
    stores.jobs.accept(tenant_id, new_job(dataset.id, key="k"))
    with pytest.raises(IdempotencyMismatch):
        stores.jobs.accept(tenant_id, new_job(dataset.id, key="k", request_hash="another"))
    stores.jobs.accept(tenant_id, new_job(dataset.id, key="k"))
    assert stores.outbox.relay(lambda messages: None, 10) == 1


def test_relays_do_not_wait_for_each_other_nor_send_twice(stores: Stores, accept: Callable[[], Job]) -> None:
    accept(), accept()
    first_locked, second_done = Event(), Event()

    def slow() -> int:
        def send(messages: Sequence[OutboxMessage]) -> None:
            first_locked.set()
            assert second_done.wait(10)

        return stores.outbox.relay(send, 1)

    def quick() -> int:
        assert first_locked.wait(10)
        relayed = stores.outbox.relay(lambda messages: None, 10)
        second_done.set()
        return relayed

    assert together([slow, quick]) == [1, 1]


def test_racing_relays_send_every_message_once(stores: Stores, accept: Callable[[], Job]) -> None:
    for _ in range(30):
        accept()
    barrier = Barrier(3)

    def relay() -> int:
        barrier.wait()
        total = 0
        while count := stores.outbox.relay(lambda messages: None, 4):
            total += count
        return total

    assert sum(together([relay] * 3)) == 30
