"""A dataset whose schema changes, over HTTP."""

from __future__ import annotations

from typing import Any

import httpx2

from tests.support.service import Service

TRIPS = {
    "name": "trips",
    "schema": {
        "fields": [
            {"name": "id", "type": "int64"},
            {"name": "seats", "type": "int32", "nullable": False},
            {"name": "day", "type": "date"},
            {"name": "fare", "type": "float"},
            {"name": "city", "type": "string"},
            {"name": "seen", "type": "int64"},
        ]
    },
    "record_key": ["id"],
    "ordering_field": "seen",
    "event_time_field": "day",
    "partition_by": [],
}
FIRST = {"id": 1, "seats": 2, "day": "2026-01-02", "fare": 1.5, "city": "Ulm", "seen": 1}


def change(client: httpx2.Client, path: str, *changes: dict[str, Any]) -> httpx2.Response:
    """Changes the schema of the dataset as it is."""
    headers = {"If-Match": client.get(path).headers["etag"]}
    return client.patch(path, json={"changes": list(changes)}, headers=headers)


def write(client: httpx2.Client, service: Service, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The job of a write, which must succeed."""
    job = ended(client, service, path, body)
    assert job["state"] == "succeeded", job
    return job


def merge_write(
    client: httpx2.Client, service: Service, path: str, rows: list[dict[str, Any]], **options: Any
) -> dict[str, Any]:
    """The job of an upsert that brings its schema."""
    body = {"operation": "upsert", "source": {"kind": "rows", "rows": rows}, "merge_schema": True, **options}
    return ended(client, service, path, body)


def ended(client: httpx2.Client, service: Service, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The job of a write once it has ended."""
    answer = client.post(f"{path}/writes", json=body)
    assert answer.status_code == 202, answer.text
    service.work()
    job: dict[str, Any] = client.get(answer.headers["location"]).json()
    return job
