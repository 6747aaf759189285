"""Savepoints, tags, restores and rollbacks over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import httpx2
import msgspec
import pytest
from sqlalchemy import delete, update

from app.core.catalog.tables import heads
from app.core.jobs.kinds.kind import JobKind
from app.core.timeline.tables import read_leases
from app.kernel.commit.restore_plan import RestageTask
from app.kernel.format.engine_task import EngineTask, Result
from tests.support.http import ORDERS, upsert
from tests.support.service import Service


@pytest.fixture
def history(client: httpx2.Client, orders: str, service: Service) -> list[list[dict[str, Any]]]:
    """The rows of the versions 0–3 of `orders`."""
    found: list[list[dict[str, Any]]] = [[]]
    for rows in (
        [{"id": 1, "note": "a"}, {"id": 2, "note": "b"}],
        [{"id": 1, "note": "c"}],
        [{"id": 3, "note": "d"}],
    ):
        write(client, service, orders, upsert(*rows))
        found.append(rows_of(client, orders))
    return found


def write(client: httpx2.Client, service: Service, orders: str, body: dict[str, Any]) -> None:
    assert client.post(f"{orders}/writes", json=body).status_code == 202
    service.work()


def rows_of(client: httpx2.Client, orders: str, **query: Any) -> list[dict[str, Any]]:
    answer = client.get(f"{orders}/rows", params=query)
    assert answer.status_code == 200, answer.text
    return sorted(answer.json()["rows"], key=lambda row: row["id"])


def done(
    client: httpx2.Client, service: Service, path: str, body: Any = None, **headers: str
) -> dict[str, Any]:
    """Requests a job, has it run, and returns it as it ended."""
    answer = client.post(path, json=body, headers=headers)
    assert answer.status_code == 202, answer.text
    service.work()
    job: dict[str, Any] = client.get(answer.headers["location"]).json()
    return job


def test_savepoints_and_tags_name_versions(
    client: httpx2.Client, orders: str, service: Service, history: list[Any]
) -> None:
    job = done(client, service, f"{orders}/savepoints", {"name": "before", "version": 1})
    assert (job["kind"], job["state"]) == ("savepoint", "succeeded")
    assert (job["result"]["name"], job["result"]["version"]) == ("before", 1)
    done(client, service, f"{orders}/tags", {"name": "latest", "keep_seconds": 3600})
    kept = client.get(f"{orders}/savepoints/before").json()
    assert (kept["version"], kept["automatic"], kept["expires_at"]) == (1, False, None)
    assert kept["links"]["rows"] == f"{orders}/rows?tag=before"
    tag = client.get(f"{orders}/tags/latest").json()
    assert tag["version"] == 3
    assert tag["expires_at"] > tag["created_at"]
    assert [item["name"] for item in client.get(f"{orders}/tags").json()["items"]] == ["latest"]
    assert [item["name"] for item in client.get(f"{orders}/savepoints").json()["items"]] == ["before"]
    assert rows_of(client, orders, tag="before") == history[1]
    assert rows_of(client, orders, tag="latest") == history[3]
    assert client.get(f"{orders}/tags/before").status_code == 404
    assert client.delete(f"{orders}/tags/before").status_code == 404
    assert client.delete(f"{orders}/savepoints/before").status_code == 204
    assert client.get(f"{orders}/rows", params={"tag": "before"}).status_code == 404
    shown = client.get(f"{orders}/timeline").json()["items"]
    assert [(item["action"], item["version"], item["files_added"]) for item in shown[:2]] == [
        ("tag", 3, 0), ("savepoint", 1, 0),
    ]  # fmt: skip


@pytest.mark.usefixtures("history")
def test_invalid_version_names_are_refused(client: httpx2.Client, orders: str, service: Service) -> None:
    done(client, service, f"{orders}/tags", {"name": "release", "version": 2})
    refused = {
        ("savepoints", '{"name": "release"}'): (409, "/problems/name-taken"),
        ("tags", '{"name": "17"}'): (400, "/problems/invalid-request"),
        ("tags", '{"name": "a/b"}'): (400, "/problems/invalid-request"),
        ("tags", '{"name": "late", "version": 9}'): (400, "/problems/invalid-request"),
        ("tags", '{"name": "late", "keep_seconds": 0}'): (400, "/problems/invalid-request"),
    }
    for (kind, body), expected in refused.items():
        answer = client.post(f"{orders}/{kind}", content=body, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["type"]) == expected, body


@pytest.mark.usefixtures("history")
def test_one_of_two_jobs_with_one_name_fails(client: httpx2.Client, orders: str, service: Service) -> None:
    jobs = [client.post(f"{orders}/tags", json={"name": "one"}).headers["location"] for _ in range(2)]
    service.work()
    ended = [client.get(path).json() for path in jobs]
    assert [job["state"] for job in ended] == ["succeeded", "failed"]
    assert ended[1]["error"]["type"] == "/problems/name-taken"


@pytest.mark.usefixtures("history")
def test_repeated_request_makes_one_job(client: httpx2.Client, orders: str, service: Service) -> None:
    key = {"Idempotency-Key": "k"}
    first = client.post(f"{orders}/tags", json={"name": "once"}, headers=key)
    service.work()
    # The name is taken by now: by this very request.
    again = client.post(f"{orders}/tags", json={"name": "once"}, headers=key)
    assert (again.status_code, again.headers["idempotency-replayed"]) == (200, "true")
    assert again.headers["location"] == first.headers["location"]
    assert client.post(f"{orders}/savepoints", json={"name": "once"}, headers=key).status_code == 422


def test_restore_returns_rows_and_emits_the_difference(
    client: httpx2.Client, orders: str, service: Service, history: list[Any]
) -> None:
    done(client, service, f"{orders}/savepoints", {"name": "before", "version": 1})
    job = done(client, service, f"{orders}/restores", {"savepoint": "before"})
    assert (job["kind"], job["state"], job["committed_version"]) == ("restore", "succeeded", 4)
    assert job["result"] == {"from_version": 3, "to_version": 1}
    assert rows_of(client, orders) == history[1]
    assert rows_of(client, orders, version=3) == history[3]
    emitted = client.get(f"{orders}/changes", params={"since": 5}).json()["changes"]
    assert sorted((change["op"], change["row"]["id"], change["row"]["note"]) for change in emitted) == [
        ("+C", 1, "a"), ("-C", 1, "c"), ("-R", 3, "d"),
    ]  # fmt: skip
    entry = client.get(f"{orders}/timeline").json()["items"][0]
    assert (entry["action"], entry["version"]) == ("restore", 4)
    verified = done(client, service, f"{orders}/verifications")
    assert verified["result"]["equal"]
    # And on again, by time.
    moment = next(item for item in client.get(f"{orders}/timeline").json()["items"] if item["version"] == 3)
    done(client, service, f"{orders}/restores", {"as_of": moment["completed_at"]})
    assert rows_of(client, orders) == history[3]


def test_rollback_undoes_the_latest_writes(
    client: httpx2.Client, orders: str, service: Service, history: list[Any]
) -> None:
    # Changes of the schema do not count, and stay.
    etag = client.get(orders).headers["etag"]
    field = {"kind": "add", "field": {"name": "more", "type": "string"}}
    answer = client.patch(orders, json={"changes": [field]}, headers={"If-Match": etag})
    assert answer.status_code == 200, answer.text
    job = done(client, service, f"{orders}/rollbacks")
    assert (job["kind"], job["result"]) == ("rollback", {"from_version": 4, "to_version": 2})
    assert [{"id": row["id"], "note": row["note"]} for row in rows_of(client, orders)] == history[2]
    assert "more" in rows_of(client, orders)[0]
    # A rollback is a write, so that undoing it brings back what it undid.
    done(client, service, f"{orders}/rollbacks", {"instants": 1})
    assert [row["id"] for row in rows_of(client, orders)] == [1, 2, 3]
    job = done(client, service, f"{orders}/rollbacks", {"instants": 9})
    assert (job["state"], job["error"]["type"]) == ("failed", "/problems/not-enough-writes")
    assert (job["error"]["instants"], job["error"]["writes"]) == (9, 5)


def test_rollback_counts_writes_accepted_before_it(
    client: httpx2.Client, orders: str, service: Service, history: list[Any]
) -> None:
    # Committed together, they are one version.
    client.post(f"{orders}/writes", json=upsert({"id": 8, "note": "y"}))
    client.post(f"{orders}/writes", json=upsert({"id": 9, "note": "z"}))
    rollback = client.post(f"{orders}/rollbacks", json={"instants": 1}).headers["location"]
    service.work()
    assert client.get(rollback).json()["result"] == {"from_version": 4, "to_version": 3}
    assert rows_of(client, orders) == history[3]


@pytest.mark.usefixtures("history")
def test_timeline_of_versions_has_what_made_and_what_names_them(
    client: httpx2.Client, orders: str, service: Service
) -> None:
    done(client, service, f"{orders}/tags", {"name": "release", "version": 2})
    restored = done(client, service, f"{orders}/restores", {"tag": "release"})
    rolled = done(client, service, f"{orders}/rollbacks")
    assert (restored["committed_version"], rolled["committed_version"]) == (4, 5)
    # Nothing is committed by a delete of a row that there is not.
    done(client, service, f"{orders}/writes", {**upsert({"id": 77}), "operation": "delete"})

    def listed(**query: int) -> list[tuple[str, int | None]]:
        items = client.get(f"{orders}/timeline", params=query).json()["items"]
        return [(item["action"], item["version"]) for item in items]

    assert listed(version=2) == [("tag", 2), ("commit", 2)]
    assert listed(version=4) == [("restore", 4)]
    assert listed(from_version=4) == [("rollback", 5), ("restore", 4)]
    assert listed(from_version=2, to_version=3) == [("tag", 2), ("commit", 3), ("commit", 2)]
    assert listed(to_version=1) == [("commit", 1)]
    assert listed(version=6) == []
    assert listed()[0] == ("commit", None)
    rollback, restore = client.get(f"{orders}/timeline", params={"from_version": 4}).json()["items"]
    assert restore["parameters"] == {"version": 2, "from_version": 3, "to_version": 2}
    assert rollback["parameters"] == {"instants": 1, "from_version": 4, "to_version": 3}


@pytest.mark.usefixtures("history")
def test_invalid_versions_of_a_timeline_are_named(client: httpx2.Client, orders: str) -> None:
    for query, pointer in (
        ({"version": -1}, "/version"),
        ({"version": 1, "to_version": 2}, "/version"),
        ({"from_version": 3, "to_version": 2}, "/from_version"),
    ):
        answer = client.get(f"{orders}/timeline", params=query)
        assert answer.status_code == 400
        assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


@pytest.mark.usefixtures("history")
def test_invalid_restore_and_rollback_are_refused(
    client: httpx2.Client, orders: str, service: Service
) -> None:
    done(client, service, f"{orders}/tags", {"name": "release"})
    refused: list[tuple[dict[str, Any], int]] = [
        ({}, 400),
        ({"version": 1, "tag": "release"}, 400),
        ({"version": 7}, 400),
        ({"savepoint": "release"}, 404),
        ({"tag": "unknown"}, 404),
        ({"version": 1, "expected_version": 2}, 409),
        ({"as_of": "2026-11-22T10:00:00"}, 400),
    ]
    for body, status in refused:
        assert client.post(f"{orders}/restores", json=body).status_code == status, body
    errors = client.post(f"{orders}/restores", json={}).json()["errors"]
    assert [error["pointer"] for error in errors] == ["/version", "/as_of", "/savepoint", "/tag"]
    assert client.post(f"{orders}/rollbacks", json={"instants": 0}).status_code == 400
    assert client.post(f"{orders}/rollbacks", json={"instants": 1, "expected_version": 9}).status_code == 202
    service.work()
    [entry] = client.get(f"{orders}/timeline", params={"page_size": 1}).json()["items"]
    assert (entry["action"], entry["state"]) == ("rollback", "rolled_back")


@pytest.mark.usefixtures("orders")
def test_restore_and_rollback_of_a_view_are_refused(client: httpx2.Client) -> None:
    view = client.post("/views", json={"name": "shown", "sql": "SELECT id, note FROM orders"})
    assert view.status_code == 201, view.text
    for path, body in (("restores", {"version": 0}), ("rollbacks", {})):
        answer = client.post(f"/datasets/shown/{path}", json=body)
        assert (answer.status_code, answer.json()["type"]) == (409, "/problems/derived-dataset")


def test_comparison_reports_the_differences(
    client: httpx2.Client, orders: str, service: Service, history: list[Any]
) -> None:
    done(client, service, f"{orders}/tags", {"name": "first", "version": 1})
    job = done(client, service, f"{orders}/comparisons", {"from_tag": "first"})
    assert (job["kind"], job["state"]) == ("comparison", "succeeded")
    result = job["result"]
    assert (result["from_version"], result["to_version"]) == (1, 3)
    assert result["rows"] == {"added": 1, "removed": 0, "changed": 1, "unchanged": 1}
    assert result["columns"] == {"note": 1}
    assert result["schema"] == []
    assert len(history) == 4
    refused = client.post(f"{orders}/comparisons", json={"from_version": 1, "from_tag": "first"})
    assert refused.json()["errors"] == [{"pointer": "/from_tag", "detail": "omit it"}]


def test_restore_that_conflicts_compares_again(
    client: httpx2.Client,
    orders: str,
    service: Service,
    history: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = service.run_writes.stagers[JobKind.RESTORE].engine  # type: ignore[attr-defined]
    rules = msgspec.structs.replace(service.run_writes.rules, dataset_writers_max=2)
    other = replace(service.run_writes, rules=rules)
    staged: list[int] = []
    run = engine.run
    dataset = client.get(orders).json()["id"]

    def meanwhile(tasks: Sequence[EngineTask[Result]], tag: str) -> list[Result]:
        if not isinstance(tasks[0], RestageTask):
            return run(tasks, tag)
        staged.append(len(tasks))
        if len(staged) == 1:
            client.post(f"{orders}/writes", json=upsert({"id": 4, "note": "e"}))
            [waiting] = [each for each in service.jobs.runnable(1_000) if each.dataset_id == dataset]
            other.run(waiting.tenant_id, waiting.dataset_id)
        return run(tasks, tag)

    monkeypatch.setattr(engine, "run", meanwhile)
    job = done(client, service, f"{orders}/restores", {"version": 1})
    assert (job["state"], job["committed_version"]) == ("succeeded", 5)
    assert job["result"] == {"from_version": 4, "to_version": 1, "winner_version": 4}
    assert len(staged) == 2
    assert rows_of(client, orders, version=4)[-1] == {"id": 4, "note": "e"}
    assert rows_of(client, orders) == history[1]


@pytest.mark.usefixtures("history")
def test_restore_of_a_version_that_expires_while_it_waits_fails(
    client: httpx2.Client, orders: str, service: Service
) -> None:
    restore = client.post(f"{orders}/restores", json={"version": 1}).headers["location"]
    dataset = client.get(orders).json()["id"]
    [waiting] = [each for each in service.jobs.runnable(1_000) if each.dataset_id == dataset]
    with service.database.tenant(waiting.tenant_id) as connection:
        connection.execute(update(heads).where(heads.c.dataset_id == dataset).values(earliest_version=2))
        # It has waited for a day.
        connection.execute(delete(read_leases).where(read_leases.c.dataset_id == dataset))
    service.work()
    ended = client.get(restore).json()
    assert (ended["state"], ended["error"]["type"]) == ("failed", "/problems/version-expired")
    assert client.post(f"{orders}/restores", json={"version": 1}).status_code == 410
    assert client.get(f"{orders}/rows", params={"version": 1}).status_code == 410


def test_restore_returns_postponed_writes_to_their_queue(client: httpx2.Client, service: Service) -> None:
    late = {**ORDERS, "name": "late", "bucket": {"mode": "postpone"}}
    answer = client.post("/datasets", json=late)
    assert answer.status_code == 201, answer.text
    path = answer.headers["location"]
    write(client, service, path, upsert({"id": 1, "note": "a"}))
    done(client, service, f"{path}/compactions")
    write(client, service, path, upsert({"id": 2, "note": "b"}))
    assert rows_of(client, path) == [{"id": 1, "note": "a"}]
    job = done(client, service, f"{path}/restores", {"version": 1})
    assert (job["state"], job["committed_version"]) == ("succeeded", 4)
    assert rows_of(client, path) == []
    done(client, service, f"{path}/compactions")
    assert rows_of(client, path) == [{"id": 1, "note": "a"}]
    assert done(client, service, f"{path}/verifications")["result"]["equal"]
