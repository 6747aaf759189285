"""Signs of life: a worker lives while it polls."""

from __future__ import annotations

import time

from sqlalchemy import text

from app.core.jobs.repository.workers import WorkerStore
from tests.support.store_fixtures import Stores


def test_worker_is_alive_from_its_poll_until_it_ends_or_stops_polling(stores: Stores) -> None:
    workers = WorkerStore(stores.database)
    assert workers.alive(60) == {}
    workers.polled("one")
    workers.polled("two")
    workers.polled("one")
    assert set(workers.alive(60)) == {"one", "two"}
    time.sleep(1.1)
    workers.polled("two")
    assert set(workers.alive(1)) == {"two"}
    assert workers.silent(1) == ["one"]
    workers.ended("two")
    workers.ended("two")
    assert set(workers.alive(60)) == {"one"}


def test_worker_reports_the_executors_of_its_last_poll(stores: Stores) -> None:
    workers = WorkerStore(stores.database)
    workers.polled("on a cluster", None, 0)
    workers.polled("on a cluster", None, 2)
    workers.polled("by itself")
    executors = {name: worker.executors for name, worker in workers.alive(60).items()}
    assert executors | {"on a cluster": 2, "by itself": None} == executors


def test_row_of_a_killed_worker_is_deleted_by_another_after_an_hour(stores: Stores) -> None:
    workers = WorkerStore(stores.database)
    for name in ("killed", "busy"):
        workers.polled(name)
    with stores.database.relay() as connection:
        ages = text("UPDATE workers SET polled_at = polled_at - CAST(:age AS interval) WHERE id = :id")
        connection.execute(ages, [{"id": "killed", "age": "61 min"}, {"id": "busy", "age": "59 min"}])
    workers.polled("new")
    with stores.database.relay() as connection:
        left = set(connection.execute(text("SELECT id FROM workers")).scalars())
    assert left & {"killed", "busy", "new"} == {"busy", "new"}
