"""Signs of life: a worker lives while it polls."""

from __future__ import annotations

import time

from app.jobs.repository.workers import WorkerStore
from tests.support.store_fixtures import Stores


def test_worker_is_alive_from_its_poll_until_it_ends_or_stops_polling(stores: Stores) -> None:
    workers = WorkerStore(stores.database)
    assert workers.alive(60) == 0
    workers.polled("one")
    workers.polled("two")
    workers.polled("one")
    assert workers.alive(60) == 2
    time.sleep(1.1)
    workers.polled("two")
    assert workers.alive(1) == 1
    workers.ended("two")
    workers.ended("two")
    assert workers.alive(60) == 1
