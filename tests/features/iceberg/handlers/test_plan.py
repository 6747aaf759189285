"""Scans planned over HTTP: the protocol's documents, continued plans, and what is refused."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.features.iceberg.handlers.test_catalogue import TABLES, failure
from tests.support.http import upsert
from tests.support.service import Service

ORDERS_TABLE = f"{TABLES}/orders"
Document = dict[str, Any]


@pytest.fixture
def history(client: httpx2.Client, orders: str, service: Service) -> str:
    """The path of a dataset with two versions; the second deletes a row of the first."""
    client.post(f"{orders}/writes", json=upsert(*({"id": number, "note": "a"} for number in range(9))))
    service.work()
    client.post(f"{orders}/writes", json={"operation": "delete", "where": "id = 3"})
    service.work()
    return orders


def planned(client: httpx2.Client, **request: Any) -> Document:
    answer = client.post(f"{ORDERS_TABLE}/plan", json=request)
    assert answer.status_code == 200, answer.text
    document: Document = answer.json()
    return document


def test_plan_has_files_with_their_deleted_rows(client: httpx2.Client, history: str) -> None:
    plan = planned(client)
    assert plan["status"] == "completed"
    assert sum(task["data-file"]["record-count"] for task in plan["file-scan-tasks"]) == 9
    for task in plan["file-scan-tasks"]:
        assert task["data-file"]["content"] == "data"
        assert task["data-file"]["file-format"] == "parquet"
        for place in task.get("delete-file-references", []):
            delete = plan["delete-files"][place]
            assert delete["referenced-data-file"] == task["data-file"]["file-path"]
    deleted_rows = sum(each["record-count"] for each in plan["delete-files"])
    assert deleted_rows == 1
    assert [each["file-format"] for each in plan["delete-files"]] == ["puffin"]
    assert planned(client, **{"snapshot-id": 1})["delete-files"] == []
    assert planned(client, filter={"type": "gt", "term": "id", "value": 100})["file-scan-tasks"] == []
    again = client.get(f"{ORDERS_TABLE}/plan/{plan['plan-id']}")
    assert again.json() == plan
    assert client.delete(f"{ORDERS_TABLE}/plan/{plan['plan-id']}").status_code == 204


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"filter": {"type": "xor"}}, 400),
        ({"filter": {"type": "eq", "term": "nothing", "value": 1}}, 400),
        ({"filter": {"type": "eq", "term": "id", "value": 2**64}}, 400),
        ({"filter": {"type": "eq", "term": {"type": "reference", "id": -(2**63) - 1}, "value": 1}}, 400),
        ({"start-snapshot-id": 1, "end-snapshot-id": 2}, 400),
        ({"snapshot-id": 99}, 404),
        ({"snapshot-id": "text"}, 400),
    ],
)
def test_what_cannot_be_planned_is_refused(
    client: httpx2.Client, history: str, body: Document, status: int
) -> None:
    answer = client.post(f"{ORDERS_TABLE}/plan", json=body)
    type_ = "BadRequestException" if status == 400 else "NoSuchTableException"
    assert failure(answer, status, type_)


def test_unknown_tasks_and_plans_are_not_found(client: httpx2.Client, history: str) -> None:
    assert client.post(f"{ORDERS_TABLE}/tasks", json={"plan-task": "x"}).status_code == 404
    assert client.get(f"{ORDERS_TABLE}/plan/x").status_code == 404
