"""What requests wait for is announced: none of it is found by the polls, which are seldom here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from app.http.waiting import shared_polls
from tests.support.http import problem, upsert
from tests.support.service import Service
from tests.support.waiting import until

# Far below the polls of the database by the relay, and by requests that wait.
SOON = 3.0


@pytest.fixture(autouse=True)
def seldom(monkeypatch: pytest.MonkeyPatch, service: Service) -> None:
    monkeypatch.setattr(shared_polls, "POLL_SECONDS", 60.0)
    monkeypatch.setattr(shared_polls, "ANNOUNCED_POLL_SECONDS", 60.0)
    until(lambda: service.api.subscriptions.hears, "the connection to Redis")


@pytest.fixture
def worker(service: Service) -> Iterator[None]:
    with service.working():
        yield


def waited(service: Service, client: httpx.Client, send: Callable[[httpx.Client], Any]) -> Callable[[], Any]:
    """What a request that waits returns in the end. It waits before this returns."""
    found: list[Any] = []

    def run() -> None:
        with service.client(client.headers["authorization"].split()[1]) as own:
            found.append(send(own))

    thread = threading.Thread(target=run)
    thread.start()
    polls: Any = service.api.dependencies["job_waits"]
    heads: Any = service.api.dependencies["head_polls"]
    until(lambda: polls.polls._open or heads._open, "the request to wait")

    def end() -> Any:
        thread.join(SOON)
        assert found, "the request still waits"
        return found[0]

    return end


@pytest.mark.usefixtures("worker")
def test_job_that_succeeds_or_fails_is_announced(client: httpx.Client, orders: str) -> None:
    wait = {"Prefer": "wait=20"}
    rows = {"id": 1, "note": "a"}
    done = client.post(f"{orders}/writes", json=upsert(rows), headers=wait, timeout=SOON)
    assert done.json()["state"] == "succeeded", done.text
    refused = {**upsert(rows), "operation": "insert"}
    failed = client.post(f"{orders}/writes", json=refused, headers=wait, timeout=SOON)
    problem(failed, 422, "duplicate-key")


def test_job_that_is_cancelled_is_announced(service: Service, client: httpx.Client, orders: str) -> None:
    job = client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"})).json()["id"]
    end = waited(service, client, lambda own: own.get(f"/jobs/{job}", params={"wait": 20}))
    assert client.post(f"/jobs/{job}/cancel").is_success
    assert end().json()["state"] == "cancelled"


def test_deleted_dataset_is_announced(service: Service, client: httpx.Client, orders: str) -> None:
    end = waited(
        service, client, lambda own: own.get(f"{orders}/changes", params={"feed": "longpoll", "timeout": 20})
    )
    assert client.delete(orders).status_code == 204
    problem(end(), 404, "not-found")
