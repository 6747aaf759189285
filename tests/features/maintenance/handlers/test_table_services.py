"""What is done for a dataset by itself, as its users say it and see it."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.support.http import ORDERS, problem

DEFAULTS = {
    "compaction": {"logs": 16, "log_ratio": 1.0, "deleted_ratio": 0.5, "small_files": 32, "seconds": None},
    "changelog": {"small_files": 24, "seconds": 10},
    "clustering": None,
    "history": {"versions": None, "seconds": 604_800},
    "timeline": {"instants": 10_000},
    "tags": None,
    "batch_tags": None,
    "partition_done": None,
    "metastore": None,
}
TAGS = {"period": "day", "keep": 7}


def test_dataset_has_default_services(client: httpx2.Client) -> None:
    path = client.post("/datasets", json=ORDERS).headers["location"]
    assert client.get(path).json()["services"] == DEFAULTS


def test_requested_services_are_completed_by_defaults(client: httpx2.Client) -> None:
    chosen = {"compaction": {"logs": 4, "log_ratio": None}, "timeline": None, "tags": TAGS}
    created = client.post("/datasets", json={**ORDERS, "services": chosen})
    assert created.status_code == 201
    services = client.get(created.headers["location"]).json()["services"]
    assert services == created.json()["services"]
    assert services == DEFAULTS | {
        "compaction": DEFAULTS["compaction"] | {"logs": 4, "log_ratio": None},
        "timeline": None,
        "tags": TAGS,
    }


def test_service_change_replaces_all_services_and_is_a_version(client: httpx2.Client) -> None:
    created = client.post("/datasets", json={**ORDERS, "services": {"compaction": None, "tags": TAGS}})
    path = created.headers["location"]
    changed = client.patch(path, json={"services": {"timeline": None}}, headers={"If-Match": '"0"'})
    assert changed.status_code == 200
    assert changed.json()["services"] == DEFAULTS | {"timeline": None}
    assert changed.json()["version"] == 1
    assert len(client.get(f"{path}/schemas").json()["items"]) == 1
    problem(
        client.patch(path, json={"services": {}}, headers={"If-Match": '"0"'}), 412, "precondition-failed"
    )
    assert client.get(path).json()["services"] == changed.json()["services"]


def test_view_has_services_of_its_own(client: httpx2.Client, orders: str) -> None:
    made = client.post("/views", json={"name": "notes", "sql": "SELECT id FROM orders", "record_key": ["id"]})
    assert made.status_code == 201, made.text
    path = "/datasets/notes"
    found = client.get(path)
    assert found.json()["services"] == DEFAULTS
    changed = client.patch(
        path, json={"services": {"tags": TAGS}}, headers={"If-Match": found.headers["etag"]}
    )
    assert changed.json()["services"]["tags"] == TAGS


@pytest.mark.parametrize(
    ("services", "pointer"),
    [
        ({"compaction": {"logs": 0}}, "/services/compaction/logs"),
        ({"compaction": {"deleted_ratio": 2.0}}, "/services/compaction/deleted_ratio"),
        ({"compaction": {"log_ratio": -1}}, "/services/compaction/log_ratio"),
        ({"tags": {"period": "day", "keep": 0}}, "/services/tags/keep"),
    ],
)
def test_invalid_services_are_refused(
    client: httpx2.Client, orders: str, services: dict[str, Any], pointer: str
) -> None:
    path = client.get(orders).json()["id"]
    answers = (
        client.post("/datasets", json={**ORDERS, "name": "others", "services": services}),
        client.patch(f"/datasets/{path}", json={"services": services}, headers={"If-Match": '"0"'}),
    )
    for answer in answers:
        assert [error["pointer"] for error in problem(answer, 422, "invalid-dataset")["errors"]] == [pointer]


@pytest.mark.parametrize("services", [{"vacuum": {}}, {"tags": {"period": "year"}}, {"tags": {}}, []])
def test_unknown_services_are_refused(client: httpx2.Client, services: Any) -> None:
    answer = client.post("/datasets", json={**ORDERS, "services": services})
    assert answer.status_code in (400, 422)
    assert "services" in answer.text
