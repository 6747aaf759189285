"""Sources over HTTP: registered, found, paused, reset and deleted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import httpx2
import pytest

from app.features.maintenance.compose import maintenance_store
from app.features.maintenance.service.run_maintenance import RunMaintenance
from app.features.sources.compose import round_store
from tests.support.http import ORDERS, problem, upsert
from tests.support.service import Service
from tests.support.sources import Incoming, notes
from tests.support.webhooks import tenant_of
from workers.wiring import reconcilers


def test_sources_are_listed_by_name_in_pages(incoming: Incoming, orders: str, events: str) -> None:
    for name, dataset in (("b", "orders"), ("a", "events"), ("c", "orders")):
        incoming.register(name=name, dataset=dataset)
    first = incoming.client.get("/sources", params={"page_size": 2}).json()
    assert [each["name"] for each in first["items"]] == ["a", "b"]
    rest = incoming.client.get("/sources", params={"page_size": 2, "page_token": first["next_page_token"]})
    assert [each["name"] for each in rest.json()["items"]] == ["c"]
    of_orders = incoming.client.get("/sources", params={"dataset": "orders"}).json()["items"]
    assert [each["name"] for each in of_orders] == ["b", "c"]
    assert incoming.client.get("/sources/a").json() == first["items"][0]


def test_name_is_unique_and_free_after_the_source_is_deleted(incoming: Incoming, orders: str) -> None:
    path = incoming.register()
    again = incoming.client.post("/sources", json=incoming.source())
    assert problem(again, 409, "source-exists")["name"] == "in"
    assert incoming.client.delete(path).status_code == 204
    problem(incoming.client.get(path), 404, "not-found")
    incoming.register()


def test_paused_source_starts_rounds_on_request_only(incoming: Incoming, orders: str) -> None:
    path = incoming.register(mode="continuous")
    assert incoming.client.patch(path, json={"state": "paused"}).json()["state"] == "paused"
    incoming.put("1.ndjson", {"id": 1, "note": "a"})
    incoming.run(path)
    assert incoming.rows() == []
    answer = incoming.client.post(f"{path}/rounds")
    assert answer.status_code == 202
    assert incoming.run(path)["state"] == "paused"
    assert notes(incoming.rows()) == {1: "a"}
    incoming.put("2.ndjson", {"id": 2, "note": "b"})
    incoming.client.patch(path, json={"state": "active"})
    incoming.run(path)
    assert notes(incoming.rows()) == {1: "a", 2: "b"}


def test_round_without_input_succeeds_without_a_version(incoming: Incoming, orders: str) -> None:
    path = incoming.register(mode="continuous")
    incoming.run(path)
    job = incoming.client.post(f"{path}/rounds").json()
    incoming.run(path)
    ended = incoming.client.get(f"/jobs/{job['id']}").json()
    assert (ended["state"], ended["rows"]["inserted"]) == ("succeeded", 0)
    assert incoming.client.get(orders).json()["version"] == 0


def test_commits_of_rounds_have_the_metadata_of_the_source(incoming: Incoming, orders: str) -> None:
    metadata = {"from": "in"}
    path = incoming.register(metadata=metadata)
    assert incoming.client.get(path).json()["metadata"] == metadata
    incoming.put("1.ndjson", {"id": 1, "note": "a"})
    incoming.run(path)
    [commit] = incoming.client.get(f"{orders}/changes").json()["commits"]
    assert (commit["version"], commit["metadata"]) == (1, [metadata])


@pytest.mark.parametrize("more", [{}, {"dataset": "new", "create": {}}])
def test_metadata_of_sources_is_bounded(incoming: Incoming, orders: str, more: dict[str, Any]) -> None:
    source = incoming.source(metadata={"a b": "1"}, **more)
    [error] = problem(incoming.client.post("/sources", json=source), 422, "invalid-source")["errors"]
    assert error["pointer"] == "/metadata/a b"


def test_source_without_news_makes_no_job(incoming: Incoming, orders: str) -> None:
    path = incoming.register(mode="continuous", interval_seconds=0.1)
    for _ in range(3):
        incoming.client.patch(path, json={"state": "active"})
        incoming.run(path)
    assert incoming.jobs() == []


def test_round_is_queued_once_and_its_request_replayed(incoming: Incoming, orders: str) -> None:
    path = incoming.register()
    incoming.client.patch(path, json={"state": "paused"})
    first, second = (incoming.client.post(f"{path}/rounds").json()["id"] for _ in range(2))
    assert first == second
    incoming.service.work()
    key = {"Idempotency-Key": "again"}
    made = incoming.client.post(f"{path}/rounds", headers=key).json()["id"]
    incoming.service.work()
    replay = incoming.client.post(f"{path}/rounds", headers=key)
    assert replay.headers["Idempotency-Replayed"] == "true"
    assert (replay.json()["id"], made == first) == (made, False)


def test_source_that_is_reset_reads_everything_again(incoming: Incoming, orders: str) -> None:
    incoming.put("1.ndjson", {"id": 1, "note": "a"})
    path = incoming.register()
    source = incoming.run(path)
    incoming.client.post(f"{orders}/writes", json={"operation": "delete", "where": "id = 1"})
    incoming.service.work()
    assert incoming.rows() == []
    answer = incoming.client.patch(path, json={"position": {}, "state": "active"})
    assert (answer.json()["position"], answer.json()["rounds"]) == ({}, source["rounds"] + 1)
    assert incoming.run(path)["position"] == source["position"]
    assert notes(incoming.rows()) == {1: "a"}


def test_change_for_another_revision_is_refused(incoming: Incoming, orders: str) -> None:
    path = incoming.register()
    tag = incoming.client.get(path).headers["etag"]
    changed = incoming.client.patch(path, json={"interval_seconds": 5}, headers={"If-Match": tag})
    assert changed.json()["interval_seconds"] == 5
    stale = {"headers": {"If-Match": tag}}
    problem(incoming.client.patch(path, json={"state": "paused"}, **stale), 412, "precondition-failed")
    problem(incoming.client.delete(path, **stale), 412, "precondition-failed")
    problem(incoming.client.patch(path, json={"state": "finished"}), 422, "invalid-source")
    problem(incoming.client.patch(path, json={}), 400, "invalid-request")


def test_limits_are_changed_and_hold_from_the_next_round_on(incoming: Incoming, orders: str) -> None:
    path = incoming.register(mode="continuous", max_items=1)
    for number in range(2):
        incoming.put(f"{number}.ndjson", {"id": number, "note": "a"})
    assert incoming.run(path)["rounds"] == 2
    limits = {"max_items": 5, "max_rows": 7, "max_bytes": 1_000}
    changed = incoming.client.patch(path, json=limits).json()
    assert {name: changed[name] for name in limits} == limits
    assert (changed["interval_seconds"], changed["revision"]) == (1.0, 2)
    # A limit alone leaves the others as they are.
    changed = incoming.client.patch(path, json={"max_rows": 8}).json()
    assert {name: changed[name] for name in limits} == {**limits, "max_rows": 8}
    for number in range(2, 5):
        incoming.put(f"{number}.ndjson", {"id": number, "note": "a"})
    incoming.client.patch(path, json={"state": "active"})
    assert incoming.run(path)["rounds"] == 3
    found = problem(incoming.client.patch(path, json={"max_items": 0}), 400, "invalid-request")
    assert found["errors"][0]["pointer"] == "/max_items"


def test_rate_counts_the_rows_of_the_last_rounds(incoming: Incoming, orders: str) -> None:
    path = incoming.register(mode="continuous", max_items=1)
    assert incoming.run(path)["rate"] is None
    for number in range(12):
        incoming.put(f"{number:02d}.ndjson", *({"id": 10 * number + row, "note": "a"} for row in range(10)))
    incoming.client.patch(path, json={"state": "active"})
    source = incoming.run(path)
    assert source["rounds"] == 12
    jobs = [incoming.client.get(f"/jobs/{job['id']}").json() for job in incoming.jobs()][-10:]
    first, last = (
        datetime.fromisoformat(text) for text in (jobs[0]["started_at"], source["last_round"]["ended_at"])
    )
    assert source["rate"] == pytest.approx(100 / (last - first).total_seconds(), rel=0.01)
    assert "recent" not in source["last_round"]


def test_rounds_lead_to_a_compaction(incoming: Incoming, service: Service) -> None:
    services = {"compaction": {"small_files": 3}}
    new = {**ORDERS, "record_key": [], "services": services}
    incoming.client.post("/datasets", json=new).raise_for_status()
    path = incoming.register(mode="continuous", max_items=1)
    keeping = RunMaintenance(
        tables=maintenance_store(service.platform),
        reconcilers={"compaction": reconcilers(service.worker)["compaction"]},
        owner="tests",
    )
    place = tenant_of(incoming.client, service), incoming.client.get("/datasets/orders").json()["id"]
    for number in range(5):
        incoming.put(f"{number}.ndjson", {"id": number, "note": "a"})
        incoming.client.patch(path, json={"state": "active"})
        incoming.run(path)
        keeping.run(*place)
        service.work()
    jobs = incoming.client.get("/jobs", params={"dataset": "orders", "kind": "compaction"}).json()["items"]
    assert {(job["state"], job["actor"]) for job in jobs} == {("succeeded", None)}
    assert incoming.found(path)["rounds"] == 5
    assert notes(incoming.rows()) == dict.fromkeys(range(5), "a")


def test_deleted_source_cancels_its_round(incoming: Incoming, orders: str) -> None:
    incoming.put("1.ndjson", {"id": 1, "note": "a"})
    path = incoming.register()
    job = incoming.client.post(f"{path}/rounds").json()
    assert incoming.client.delete(path).status_code == 204
    incoming.service.work()
    assert incoming.client.get(f"/jobs/{job['id']}").json()["state"] == "cancelled"
    assert incoming.rows() == []


def test_sources_end_with_their_dataset(incoming: Incoming, orders: str) -> None:
    path = incoming.register(mode="continuous")
    assert incoming.client.delete(orders).status_code == 204
    problem(incoming.client.get(path), 404, "not-found")


@pytest.mark.parametrize(
    ("members", "status", "code", "pointer"),
    [
        ({"kind": "telegraph"}, 422, "invalid-source", "/kind"),
        ({"dataset": "absent"}, 404, "not-found", None),
        ({"name": "no blanks"}, 400, "invalid-request", "/name"),
        ({"operation": "delete_partition"}, 422, "invalid-source", "/operation"),
        ({"interval_seconds": 0}, 400, "invalid-request", "/interval_seconds"),
        ({"max_items": 0}, 400, "invalid-request", "/max_items"),
        ({"position": {"files": 1}}, 422, "invalid-source", "/position"),
        ({"config": {"start": {}}}, 400, "invalid-request", "/config/start"),
        (
            {"config": {"start": {"after": "a", "time": "2026-11-25T10:00:00Z"}}},
            400,
            "invalid-request",
            "/config/start",
        ),
        ({"config": {"format": "docx"}}, 400, "invalid-request", "/config/format"),
        ({"config": {"colour": "red"}}, 400, "invalid-request", "/config/colour"),
        ({"config": {"format": "parquet", "gzip": True}}, 400, "invalid-request", "/config/gzip"),
    ],
)
def test_invalid_source_is_refused(
    incoming: Incoming, orders: str, members: dict[str, Any], status: int, code: str, pointer: str | None
) -> None:
    found = problem(incoming.client.post("/sources", json=incoming.source(**members)), status, code)
    if pointer is not None:
        assert [each["pointer"] for each in found["errors"]] == [pointer]


def test_view_has_no_source(incoming: Incoming, orders: str, new_view: Callable[..., dict[str, Any]]) -> None:
    new_view("long", "SELECT id, note FROM orders", lambda rows: rows)
    problem(incoming.client.post("/sources", json=incoming.source(dataset="long")), 409, "derived-dataset")


def test_quota_of_sources_and_of_what_is_written(
    incoming: Incoming, service: Service, orders: str, new_client: Callable[..., httpx2.Client]
) -> None:
    tenant = incoming.client.get("/me").json()["tenant"]["id"]
    operator = new_client()
    operator.patch(f"/tenants/{tenant}", json={"quotas": {"sources": 1, "rows_per_day": 1}})
    incoming.put("1.ndjson", {"id": 1, "note": "a"})
    path = incoming.register(mode="continuous")
    refused = incoming.client.post("/sources", json=incoming.source(name="second"))
    assert problem(refused, 429, "quota-exceeded")["quota"] == "sources"
    incoming.run(path)
    incoming.put("2.ndjson", {"id": 2, "note": "b"})
    incoming.client.patch(path, json={"state": "active"})
    source = incoming.run(path)
    assert source["state"] == "active"
    assert source["last_error"]["type"] == "/problems/quota-exceeded"
    assert notes(incoming.rows()) == {1: "a"}


def test_source_of_a_suspended_tenant_starts_no_round(
    incoming: Incoming, orders: str, new_client: Callable[..., httpx2.Client]
) -> None:
    tenant = incoming.client.get("/me").json()["tenant"]["id"]
    path = incoming.register(mode="continuous")
    incoming.run(path)
    incoming.put("1.ndjson", {"id": 1, "note": "a"})
    operator = new_client()
    assert operator.patch(f"/tenants/{tenant}", json={"state": "suspended"}).status_code == 200
    service = incoming.service
    with service.database.tenant(tenant) as connection:
        connection.exec_driver_sql("UPDATE sources SET due_at = clock_timestamp()")
    source_id = path.rsplit("/", 1)[1]
    assert (tenant, source_id) in round_store(service.platform).due(1_000)
    service.start_rounds.run(tenant, source_id)
    assert incoming.jobs() == []
    assert (tenant, source_id) not in round_store(service.platform).due(1_000), "it stands before others"
    operator.patch(f"/tenants/{tenant}", json={"state": "active"})
    incoming.client.post(f"{path}/rounds").raise_for_status()
    incoming.run(path)
    assert notes(incoming.rows()) == {1: "a"}


def test_end_of_a_round_is_announced_to_the_poll_of_sources(incoming: Incoming, orders: str) -> None:
    ended: list[bool] = []
    runs = replace(incoming.service.run_writes, after_round=lambda: ended.append(True))
    tenant_id = tenant_of(incoming.client, incoming.service)
    dataset_id = incoming.client.get(orders).json()["id"]
    incoming.client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"}))
    runs.run(tenant_id, dataset_id)
    assert (len(incoming.rows()), ended) == (1, [])
    incoming.put("1.ndjson", {"id": 2, "note": "b"})
    path = incoming.register()
    assert incoming.client.post(f"{path}/rounds").status_code == 202
    runs.run(tenant_id, dataset_id)
    assert ended == [True]
    assert incoming.run(path)["state"] == "finished"
