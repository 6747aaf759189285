"""What requests wait for is announced at once: nothing else finds it here within a minute.

Each action is made once the request has been polled, so that it waits for an announcement only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.http.waiting import shared_polls
from app.infra.identifiers import new_id
from app.infra.runtime.valkey import EmbeddedValkey
from tests.support.exports import ONCE
from tests.support.http import ORDERS, problem, upsert
from tests.support.postgres import TestServer
from tests.support.service import Service, running_service, settings_for
from tests.support.waiting import until

SOON = 10.0
NEVER = 1e6


@pytest.fixture(scope="module")
def seldom(
    postgres: TestServer, redis: EmbeddedValkey, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A service whose relay and whose polls only do what they are woken for."""
    folder: Path = tmp_path_factory.mktemp("seldom")
    with postgres.fresh_database() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_polls, "POLL_SECONDS", NEVER)
        patch.setattr(shared_polls, "ANNOUNCED_POLL_SECONDS", NEVER)
        settings = settings_for(postgres.application_url(name), postgres.admin_url(name), redis.url, folder)
        with running_service(replace(settings, poll_seconds=60.0)) as service:
            until(lambda: service.api.subscriptions.hears, "the connection to Redis")
            yield service


@pytest.fixture
def client(seldom: Service) -> Iterator[httpx2.Client]:
    with seldom.client(seldom.new_key(f"seldom-{new_id()[-12:]}-x")) as client:
        yield client


class Waiting:
    """A request in a thread that waits, and has been polled."""

    def __init__(
        self, service: Service, client: httpx2.Client, path: str, method: str = "GET", **request: Any
    ) -> None:
        self.found: list[httpx2.Response] = []
        credential = client.headers["authorization"].split()[1]

        def run() -> None:
            with service.client(credential) as own:
                self.found.append(own.request(method, path, **request))

        dependencies: Any = service.api.dependencies
        polls = (dependencies["job_waits"].polls._open, dependencies["head_polls"]._open)
        before = {key for each in polls for key in each}
        self._thread = threading.Thread(target=run)
        self._thread.start()

        def polled() -> bool:
            opened = [poll for each in polls for key, poll in list(each.items()) if key not in before]
            return any(poll.polls_ended for poll in opened)

        until(polled, "the request to be polled")

    def response(self) -> httpx2.Response:
        """What it returns soon."""
        self._thread.join(SOON)
        assert self.found, "the request still waits"
        return self.found[0]


@pytest.mark.parametrize(("operation", "status"), [("upsert", 200), ("insert", 422)])
def test_write_that_succeeds_or_fails_is_announced(
    seldom: Service, client: httpx2.Client, operation: str, status: int
) -> None:
    rows = {"id": 1, "note": "a"}
    orders = client.post("/datasets", json=ORDERS).headers["location"]
    client.post(f"{orders}/writes", json=upsert(rows))
    seldom.work()
    body = {**upsert(rows), "operation": operation}
    waiting = Waiting(seldom, client, f"{orders}/writes", "POST", json=body, headers={"Prefer": "wait=60"})
    with seldom.working():
        assert waiting.response().status_code == status


def _written(client: httpx2.Client) -> tuple[str, str]:
    job = client.post("/datasets/orders/writes", json=upsert({"id": 1, "note": "a"})).json()["id"]
    return f"/jobs/{job}", f"POST /jobs/{job}/cancel"


def _of_dataset(_: httpx2.Client) -> tuple[str, str]:
    return "/datasets/orders/changes", "DELETE /datasets/orders"


def _of_view(client: httpx2.Client) -> tuple[str, str]:
    made = client.post("/views", json={"name": "notes", "sql": "SELECT id, note FROM orders"})
    assert made.is_success, made.text
    return "/datasets/notes/changes", "DELETE /views/notes"


def _exported(client: httpx2.Client) -> tuple[str, str]:
    made = client.post("/datasets/orders/exports", json=ONCE)
    run = client.post(f"/exports/{made.json()['id']}/runs")
    assert run.is_success, run.text
    return run.json()["links"]["job"], f"DELETE /exports/{made.json()['id']}"


@pytest.mark.parametrize("act", [_written, _of_dataset, _of_view, _exported])
def test_what_a_request_ends_is_announced(
    seldom: Service, client: httpx2.Client, act: Callable[[httpx2.Client], tuple[str, str]]
) -> None:
    client.post("/datasets", json=ORDERS)
    path, end = act(client)
    of_job = path.startswith("/jobs/")
    wait = {"wait": 60} if of_job else {"feed": "longpoll", "timeout": 60}
    waiting = Waiting(seldom, client, path, params=wait)
    method, _, target = end.partition(" ")
    ended = client.request(method, target)
    assert ended.is_success, ended.text
    if of_job:
        assert waiting.response().json()["state"] == "cancelled"
    else:
        problem(waiting.response(), 404, "not-found")


def test_source_that_ends_has_its_round_announced(seldom: Service, client: httpx2.Client) -> None:
    client.post("/datasets", json=ORDERS)
    folder = seldom.settings.data_dir / "incoming"
    folder.mkdir(exist_ok=True)
    (folder / "rows.ndjson").write_text('{"id": 1, "note": "a"}\n')
    config = {"path": folder.as_uri(), "format": "ndjson"}
    made = client.post(
        "/sources", json={"name": "in", "dataset": "orders", "kind": "files", "config": config}
    )
    assert made.is_success, made.text
    job = client.post(f"{made.headers['location']}/rounds").json()["id"]
    waiting = Waiting(seldom, client, f"/jobs/{job}", params={"wait": 60})
    assert client.delete(made.headers["location"]).is_success
    assert waiting.response().json()["state"] == "cancelled"
