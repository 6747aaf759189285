"""Sources of servers that stop answering: they hold few threads of a worker and of the API, and these for a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from tests.support.fake_postgres import FakePostgres, columns, done, fake_postgres, row
from tests.support.shares import share
from tests.support.sources import Incoming
from tests.support.waiting import until

# Half of the slots of a worker.
_TENANT_MAX = 2


def _no_rows_arrive(statement: str) -> Iterable[bytes] | None:
    """A server that counts its rows, and never sends them."""
    if "IS NULL" in statement:
        return [columns("count"), row("0"), done()]
    return [columns("count"), row("5"), done()] if "count(*)" in statement else None


@pytest.fixture
def silent() -> Iterator[FakePostgres]:
    with fake_postgres(_no_rows_arrive) as server:
        yield server


def _source(incoming: Incoming, server: FakePostgres, dataset: str, **members: Any) -> str:
    """A paused source; returns its path."""
    config = {"url": server.url, "table": "book", "watermark": "seen"}
    body = {"name": f"of_{dataset}", "dataset": dataset, "kind": "sql", "config": config, "mode": "once"}
    answer = incoming.client.post("/sources", json={**body, **members})
    assert answer.status_code == 201, answer.text
    path = str(answer.headers["location"])
    incoming.client.patch(path, json={"state": "paused"})
    return path


def test_silent_servers_hold_few_threads_until_their_sources_are_deleted(
    incoming: Incoming, silent: FakePostgres
) -> None:
    names = [f"book_{number}" for number in range(_TENANT_MAX + 1)]
    schema = {"fields": [{"name": "id", "type": "int64"}]}
    paths, jobs = [], []
    for name in names:
        assert incoming.client.post("/datasets", json={"name": name, "schema": schema}).status_code == 201
        paths.append(_source(incoming, silent, name))
        jobs.append(incoming.client.post(f"{paths[-1]}/rounds").json()["id"])

    def job(number: int) -> dict[str, Any]:
        found: dict[str, Any] = incoming.client.get(f"/jobs/{jobs[number]}").json()
        return found

    waiting = {found.dataset_id: found.tenant_id for found in incoming.service.jobs.runnable(10)}
    ids = [incoming.client.get(f"/datasets/{name}").json()["id"] for name in names]
    run = incoming.service.run_writes.run
    with ThreadPoolExecutor(_TENANT_MAX) as pool:
        held = [pool.submit(run, waiting[each], each) for each in ids[:_TENANT_MAX]]
        until(lambda: len(_fetches(silent)) == _TENANT_MAX, "the rounds to read")
        run(waiting[ids[-1]], ids[-1])
        assert (job(-1)["state"], job(-1)["progress"]["waiting_for"]) == ("queued", "sources")
        assert not any(each.done() for each in held)
        began = time.monotonic()
        for path in paths:
            assert incoming.client.delete(path).status_code == 204
        for each in held:
            each.result(timeout=20)
        assert time.monotonic() - began < 15
    assert [job(number)["state"] for number in range(len(names))] == ["cancelled"] * len(names)


def test_a_server_that_counts_rows_and_has_none_is_polled_after_the_interval(incoming: Incoming) -> None:
    counted: list[str] = []

    def nothing(statement: str) -> Iterable[bytes]:
        if "IS NULL" in statement:
            return [columns("count"), row("0"), done()]
        if "count(*)" in statement:
            counted.append(statement)
            # Without a pause between rounds, the test ends nevertheless.
            return [columns("count"), row("1000000" if len(counted) < 20 else "0"), done()]
        return [columns("id", "seen") if "LIMIT 0" in statement else columns("row", "seen"), done()]

    schema = {"fields": [{"name": "id", "type": "int64"}]}
    for mode in ("continuous", "once"):
        counted.clear()
        name = f"none_{mode}"
        assert incoming.client.post("/datasets", json={"name": name, "schema": schema}).status_code == 201
        with fake_postgres(nothing) as server:
            path = _source(incoming, server, name, mode=mode, interval_seconds=3600)
            incoming.client.patch(path, json={"state": "active"})
            incoming.service.work()
        assert [job["state"] for job in incoming.jobs(name)] == ["succeeded"]


def _fetches(server: FakePostgres) -> list[str]:
    return [statement for _, statement in server.statements if "row_to_json" in statement]


@share(2)
def test_requests_that_wait_for_a_silent_server_end_and_leave_threads_to_others(
    incoming: Incoming, silent: FakePostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.features.sources.service.register._SAMPLE_SECONDS", 3.0)
    path = _source(incoming, silent, "new", create={"record_key": ["id"]})
    other = incoming.service.client(incoming.service.new_key("other-of-silent"))
    answers: list[httpx2.Response] = []

    def start() -> None:
        answers.append(incoming.client.post(f"{path}/rounds"))

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: len(_fetches(silent)) == 2, "two requests to read")
    began = time.monotonic()
    assert other.post("/sources/absent/rounds").status_code == 404
    assert time.monotonic() - began < 2
    assert answers == []
    for thread in threads:
        thread.join(20)
    assert [answer.json()["type"] for answer in answers] == ["/problems/source-unavailable"] * 4
