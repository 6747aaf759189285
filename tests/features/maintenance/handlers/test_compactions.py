"""Compactions over HTTP: tasks beside the writes of their dataset."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.support.http import problem, upsert
from tests.support.service import Service

PARTED = {
    "name": "parted",
    "schema": {"fields": [{"name": "id", "type": "int64"}, {"name": "day", "type": "string"}]},
    "record_key": ["id", "day"],
    "partition_by": ["day"],
    "table_type": "merge_on_read",
    "changelog": {"producer": "input"},
    "bucket": {"count": 1},
}


@pytest.fixture
def parted(client: httpx2.Client, service: Service) -> str:
    """A dataset with two logs in each of two partitions."""
    path = client.post("/datasets", json=PARTED).headers["location"]
    for _ in range(2):
        client.post(f"{path}/writes", json=upsert({"id": 1, "day": "mon"}, {"id": 1, "day": "tue"}))
        service.work()
    return path


def compacted(client: httpx2.Client, service: Service, path: str, **request: Any) -> dict[str, Any]:
    """The job of a compaction that has succeeded."""
    answer = client.post(f"{path}/compactions", **request)
    assert answer.status_code == 202, answer.text
    service.work()
    job = client.get(answer.headers["location"]).json()
    assert (job["kind"], job["state"], job["operation"]) == ("compaction", "succeeded", None)
    found: dict[str, Any] = job
    return found


def test_compaction_reports_its_result_and_its_actor(
    client: httpx2.Client, service: Service, parted: str
) -> None:
    job = compacted(client, service, parted)
    result = job["result"]
    assert result.pop("bytes") > 0
    assert result == {"file_groups": 2, "file_groups_left": 0, "files_added": 2, "files_removed": 4}
    assert job["committed_version"] == 3
    assert job["actor"] is not None
    newest = client.get(f"{parted}/timeline").json()["items"][0]
    assert (newest["action"], newest["state"], newest["version"]) == ("compaction", "completed", 3)
    again = compacted(client, service, parted)
    assert again["result"]["file_groups"] == 0
    assert client.get(parted).json()["version"] == 3


def test_compaction_is_restricted_to_the_requested_partitions(
    client: httpx2.Client, service: Service, parted: str
) -> None:
    job = compacted(client, service, parted, json={"partitions": ["day=m*"]})
    assert job["result"]["files_removed"] == 2
    left = compacted(client, service, parted)
    assert left["result"]["files_removed"] == 2


@pytest.mark.parametrize("body", [{"partitions": []}, {"partitions": ["hour=1"]}, {"files": []}])
def test_invalid_body_is_refused(client: httpx2.Client, parted: str, body: Any) -> None:
    answer = client.post(f"{parted}/compactions", json=body)
    problem(answer, 400, "invalid-request")


def test_idempotency_key_makes_one_job_for_one_body(
    client: httpx2.Client, service: Service, parted: str
) -> None:
    headers = {"Idempotency-Key": "once"}
    first = client.post(f"{parted}/compactions", headers=headers)
    again = client.post(f"{parted}/compactions", headers=headers)
    assert again.json()["id"] == first.json()["id"]
    other = client.post(f"{parted}/compactions", headers=headers, json={"partitions": ["day=mon"]})
    problem(other, 422, "idempotency-mismatch")


def test_compaction_runs_beside_a_waiting_write_and_can_be_cancelled(
    client: httpx2.Client, service: Service, parted: str
) -> None:
    write = client.post(f"{parted}/writes", json=upsert({"id": 2, "day": "mon"})).json()
    job = client.post(f"{parted}/compactions").json()
    assert client.post(f"/jobs/{job['id']}/cancel").json()["state"] == "cancelled"
    next_job = client.post(f"{parted}/compactions").json()
    tenant, dataset = service.jobs.runnable(1)[0].tenant_id, parted.rsplit("/", 1)[1]
    assert service.run_tasks.run(tenant, dataset)
    assert client.get(f"/jobs/{next_job['id']}").json()["state"] == "succeeded"
    assert client.get(f"/jobs/{write['id']}").json()["state"] == "queued"
