"""Partitions that are done: marked over HTTP, kept by a worker, delivered in order."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from app.features.maintenance.compose import maintenance_store
from app.features.maintenance.service.run_maintenance import RunMaintenance
from app.features.retention.repository.references import ReferenceStore
from app.features.retention.service.reaper import Reap
from app.infra.files.storage import open_storage
from tests.support.http import problem, upsert
from tests.support.receiver import Receiver
from tests.support.service import Service
from tests.support.shares import share
from tests.support.waiting import until
from tests.support.webhooks import patch, state_of, tenant_of, work_until
from workers.wiring import reconcilers

MONDAY, TUESDAY = "day=2026-11-16", "day=2026-11-17"
VISITS = {
    "name": "visits",
    "schema": {"fields": [{"name": "id", "type": "int64"}, {"name": "day", "type": "date"}]},
    "record_key": ["day", "id"],
    "partition_by": ["day"],
    "services": {"partition_done": {"marker": True}},
}


@pytest.fixture
def visits(client: httpx2.Client, service: Service) -> str:
    """The path of a dataset with rows in two partitions."""
    path = client.post("/datasets", json=VISITS).headers["location"]
    write(client, service, path, {"id": 1, "day": "2026-11-16"}, {"id": 2, "day": "2026-11-17"})
    return path


def write(client: httpx2.Client, service: Service, path: str, *rows: dict[str, Any]) -> None:
    assert client.post(f"{path}/writes", json=upsert(*rows)).status_code == 202
    service.work()


@pytest.fixture
def keep(client: httpx2.Client, service: Service, visits: str) -> Callable[[], None]:
    """Does what the reconciler of partitions does in a worker, if the dataset is due."""
    keeping = RunMaintenance(
        tables=maintenance_store(service.platform),
        reconcilers={"partitions": reconcilers(service.worker)["partitions"]},
        owner="tests",
    )
    place = tenant_of(client, service), client.get(visits).json()["id"]
    return lambda: keeping.run(*place) and None


@pytest.fixture
def markers(service: Service, client: httpx2.Client, visits: str) -> Callable[[], dict[str, int]]:
    """The versions that markers in storage say, by partition."""
    storage = open_storage(service.settings.storage_uri)
    dataset_id = client.get(visits).json()["id"]

    def run() -> dict[str, int]:
        versions = {}
        for path, _ in storage.list(""):
            if dataset_id in path and path.endswith("_SUCCESS"):
                marker = json.loads(storage.open(path).read())
                assert path.endswith(f"/data/{marker['partition']}/_SUCCESS")
                versions[marker["partition"]] = marker["version"]
        return versions

    return run


@share(2)
def test_partition_is_marked_done_reopened_and_done_again(
    client: httpx2.Client,
    service: Service,
    visits: str,
    keep: Callable[[], None],
    markers: Callable[[], dict[str, int]],
) -> None:
    answer = client.post(f"{visits}/partitions/done", json={"partitions": [MONDAY]})
    assert answer.status_code == 200, answer.text
    [mark] = answer.json()["items"]
    assert (mark["path"], mark["changed_version"], mark["done_version"]) == (MONDAY, 1, 1)
    assert markers() == {MONDAY: 1}
    Reap(
        references=ReferenceStore(service.database),
        storage=open_storage(service.settings.storage_uri),
        grace_seconds=0,
        upload_seconds_max=3600,
        result_seconds_max=3600,
    ).run()
    assert markers() == {MONDAY: 1}
    write(client, service, visits, {"id": 3, "day": "2026-11-16"})
    keep()
    assert markers() == {}
    client.post(f"{visits}/partitions/done", json={"partitions": [TUESDAY, MONDAY]})
    assert markers() == {MONDAY: 2, TUESDAY: 2}
    first = client.get(f"{visits}/partitions/events", params={"limit": 3}).json()
    assert [
        (item["number"], item["kind"], item["partition"], item["version"]) for item in first["events"]
    ] == [
        (0, "done", MONDAY, 1),
        (1, "reopened", MONDAY, 2),
        (2, "done", TUESDAY, 2),
    ]
    assert (first["next_since"], first["pending"]) == (3, 1)
    rest = client.get(f"{visits}/partitions/events", params={"since": 3}).json()
    assert [item["partition"] for item in rest["events"]] == [MONDAY]
    assert rest["events"][0]["reason"] == "ended"
    assert rest["next_since"] == 4
    problem(client.get(f"{visits}/partitions/events", params={"since": 5}), 409, "offset-ahead")
    earliest, now = (
        client.get(f"{visits}/partitions/events", params={"since": since}).json()
        for since in ("earliest", "now")
    )
    assert (len(earliest["events"]), earliest["next_since"]) == (4, 4)
    assert now == {"events": [], "next_since": 4, "pending": 0}


def test_idle_partition_is_marked_done(
    client: httpx2.Client,
    service: Service,
    visits: str,
    keep: Callable[[], None],
    markers: Callable[[], dict[str, int]],
) -> None:
    etag = client.get(visits).headers["etag"]
    policy = {"partition_done": {"idle_seconds": 1, "marker": True}}
    client.patch(visits, json={"services": policy}, headers={"If-Match": etag})
    write(client, service, visits, {"id": 3, "day": "2026-11-17"})
    keep()
    until(lambda: keep() or len(markers()) == 2, "both partitions to be done")
    # The version that has all of their data is the head's: that of Monday was written two versions before.
    assert markers() == {MONDAY: 3, TUESDAY: 3}
    events = client.get(f"{visits}/partitions/events").json()["events"]
    assert [(event["kind"], event["reason"]) for event in events] == [("done", "idle")] * 2
    partitions = client.get(f"{visits}/partitions").json()["items"]
    marks = [(each["path"], each["changed_version"], each["done_version"]) for each in partitions]
    assert marks == [(MONDAY, 1, 3), (TUESDAY, 3, 3)]


def test_disabled_service_removes_marks_and_markers(
    client: httpx2.Client,
    visits: str,
    keep: Callable[[], None],
    markers: Callable[[], dict[str, int]],
) -> None:
    client.post(f"{visits}/partitions/done", json={"partitions": [MONDAY]})
    assert markers() == {MONDAY: 1}
    etag = client.get(visits).headers["etag"]
    changed = client.patch(visits, json={"services": {}}, headers={"If-Match": etag})
    assert changed.status_code == 200, changed.text
    keep()
    assert markers() == {}
    refused = client.post(f"{visits}/partitions/done", json={"partitions": [MONDAY]})
    refusal = problem(refused, 400, "invalid-request")
    assert "services.partition_done" in refusal["errors"][0]["detail"]


def test_invalid_partition_requests_are_refused_with_pointers(
    client: httpx2.Client, orders: str, visits: str
) -> None:
    path = f"{visits}/partitions/done"
    refusal = problem(client.post(path, json={"partitions": [MONDAY, "day=never"]}), 400, "invalid-request")
    assert [error["pointer"] for error in refusal["errors"]] == ["/partitions/1"]
    problem(client.post(path, json={"partitions": []}), 400, "invalid-request")
    for number, more, pointer in (
        (1, {"partition_by": []}, "/services/partition_done"),
        (2, {"services": {"partition_done": {"idle_seconds": 0}}}, "/services/partition_done/idle_seconds"),
        (
            3,
            {"services": {"partition_done": {"idle_seconds": 2**31}}},
            "/services/partition_done/idle_seconds",
        ),
        (
            4,
            {
                "table_type": "merge_on_read",
                "bucket": {"mode": "key_dynamic"},
                "changelog": {"producer": "deferred"},
            },
            "/services/partition_done",
        ),
    ):
        wanted = {**VISITS, "name": f"visits-{number}", **more}
        refusal = problem(client.post("/datasets", json=wanted), 422, "invalid-dataset")
        assert pointer in [error["pointer"] for error in refusal["errors"]]


def test_partition_webhook_is_delivered_in_order_despite_failures(
    client: httpx2.Client,
    service: Service,
    visits: str,
    keep: Callable[[], None],
    receiver: Receiver,
) -> None:
    wanted = {"dataset": "visits", "url": receiver.url, "events": "partitions", "batch_changes_max": 2}
    client.post(f"{visits}/partitions/done", json={"partitions": [MONDAY]})
    webhook = client.post("/webhooks", json={**wanted, "since": "earliest"}).json()
    late = client.post("/webhooks", json=wanted).json()
    assert (webhook["events"], webhook["position"], webhook["pending"]) == ("partitions", 0, 1)
    assert (late["position"], late["pending"]) == (1, 0)
    service.work()
    [first] = receiver.messages
    assert json.loads(first.body)["type"] == "dataset.partitions"
    assert first.signatures_of(webhook["secret"]) == 1
    events = client.get(f"{visits}/partitions/events").json()["events"]
    assert first.data == {
        "webhook_id": webhook["id"],
        "dataset_id": webhook["dataset"]["id"],
        "dataset": "visits",
        "since": 0,
        "next_since": 1,
        "events": events,
    }
    client.delete(f"/webhooks/{late['id']}")
    # Changes alone are nothing to report.
    write(client, service, visits, {"id": 4, "day": "2026-11-17"})
    assert len(receiver.messages) == 1
    write(client, service, visits, {"id": 3, "day": "2026-11-16"})
    receiver.answer(500, 500)
    client.post(f"{visits}/partitions/done", json={"partitions": [TUESDAY, MONDAY]})
    work_until(service, lambda: state_of(client, webhook)["pending"] == 0)
    sent = receiver.messages[1:]
    assert [message.id for message in sent[:3]] == [sent[0].id] * 3
    assert len({message.body for message in sent[:3]}) == 1
    events = client.get(f"{visits}/partitions/events").json()["events"]
    assert [event["kind"] for event in events] == ["done", "reopened", "done", "done"]
    assert sent[2].data["events"] + sent[3].data["events"] == events[1:]
    assert client.get(f"{visits}/consumers").json()["items"] == []
    # Back to where it has been: what was reported is reported again.
    patch(client, webhook, since=3)
    work_until(service, lambda: state_of(client, webhook)["pending"] == 0)
    assert receiver.messages[-1].data["events"] == events[3:]
    client.delete(f"/webhooks/{webhook['id']}")


def test_partition_webhook_requires_its_own_options(
    client: httpx2.Client, orders: str, visits: str, receiver: Receiver
) -> None:
    wanted = {"dataset": "visits", "url": receiver.url, "events": "partitions"}
    for more, pointer in (
        ({"dataset": "orders"}, "/events"),
        ({"columns": ["id"]}, "/columns"),
        ({"max_lag": {"changes": 1}}, "/max_lag"),
    ):
        refusal = problem(client.post("/webhooks", json={**wanted, **more}), 422, "invalid-webhook")
        assert [error["pointer"] for error in refusal["errors"]] == [pointer]
    problem(client.post("/webhooks", json={**wanted, "since": 1}), 409, "offset-ahead")
    other = problem(client.post("/webhooks", json={**wanted, "since_version": 1}), 422, "invalid-webhook")
    assert other["errors"][0]["pointer"] == "/since_version"
