"""The relay on the outbox in Postgres."""

import threading
import time

import pytest

from app.core.jobs.repository.outbox import OutboxStore
from app.core.jobs.service.relay import Relay
from app.infra.identifiers import new_id
from app.process.features import stores_on
from tests.support.administration import Administration
from tests.support.lakehouse import definition, new_job
from tests.support.service import relay_loop


@pytest.fixture
def dataset(database, administration):
    tenant = Administration(administration).add_tenant(f"relay-{new_id()}")
    return stores_on(database).catalog.create(tenant, new_id(), definition())


def post(database, dataset, count):
    """Writes as many messages about the dataset."""
    for _ in range(count):
        stores_on(database).jobs.accept(dataset.tenant_id, new_job(dataset.id))


def run_until(relay, done, *, poll_seconds=60.0, seconds_max=20):
    """Runs the relay until `done` says so."""
    stop = threading.Event()
    thread = threading.Thread(target=relay_loop(relay, poll_seconds).run, args=(stop,))
    thread.start()
    deadline = time.monotonic() + seconds_max
    try:
        while not done():
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        stop.set()
        relay.wake()
        thread.join(10)
        assert not thread.is_alive()


def test_equal_messages_are_sent_once_and_deleted(database, dataset):
    post(database, dataset, 3)
    sent = []
    outbox = OutboxStore(database)
    run_until(Relay(outbox, sent.extend), lambda: sent)
    assert [(each.topic, each.tenant_id, each.dataset_id) for each in sent] == [
        ("work", dataset.tenant_id, dataset.id)
    ]
    assert outbox.relay(sent.extend, 10) == 0


def test_relay_sends_on_a_wake_and_on_its_poll(database, dataset):
    for poll_seconds in (60.0, 0.1):
        sent = []
        relay = Relay(OutboxStore(database), sent.extend)

        def later(relay=relay, poll_seconds=poll_seconds):
            time.sleep(0.5)
            post(database, dataset, 1)
            if poll_seconds == 60.0:
                relay.wake()

        thread = threading.Thread(target=later)
        thread.start()
        run_until(relay, lambda sent=sent: sent, poll_seconds=poll_seconds, seconds_max=10)
        thread.join()


def test_unsent_messages_stay_until_they_can_be_sent(database, dataset):
    post(database, dataset, 2)
    failures, sent = [], []

    def send(messages):
        if len(failures) < 3:
            failures.append(messages)
            raise ConnectionError("Redis is gone")
        sent.extend(messages)

    run_until(Relay(OutboxStore(database), send), lambda: sent, poll_seconds=0.05)
    assert len(sent) == 1
