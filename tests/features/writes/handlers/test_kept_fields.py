"""An update of Debezium without a large value keeps the stored value, in tables and writes of every kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import httpx2
import pytest

from tests.support.service import Service

NDJSON: Final = "application/x-ndjson"
P: Final = "__debezium_unavailable_value"
TABLES: Final[dict[str, dict[str, Any]]] = {
    "copy_on_write": {"table_type": "copy_on_write"},
    "copy_on_write, none": {"table_type": "copy_on_write", "changelog": {"producer": "none"}},
    "merge_on_read": {"table_type": "merge_on_read"},
    "merge_on_read, none": {"table_type": "merge_on_read", "changelog": {"producer": "none"}},
    "merge_on_read, deferred": {"table_type": "merge_on_read", "changelog": {"producer": "deferred"}},
    "postpone": {"bucket": {"mode": "postpone"}, "table_type": "merge_on_read"},
}
MODES: Final[dict[str, dict[str, Any]]] = {
    "commit_time": {},
    "event_time": {"ordering_field": "at"},
    "partial": {"ordering_field": "at", "merge_mode": "partial"},
}


def _registered(client: httpx2.Client, **members: Any) -> str:
    types = {"id": "int64", "at": "int64", "state": "string", "body": "string", "tags": "list<string>"}
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    definition = {"name": "letters", "schema": {"fields": fields}, "record_key": ["id"], **members}
    answer = client.post("/datasets", json=definition)
    assert answer.status_code == 201, answer.text
    return str(answer.headers["location"])


def _put(op: str, row: dict[str, Any]) -> dict[str, Any]:
    return {"op": op, "before": None, "after": row}


@pytest.fixture
def write(client: httpx2.Client, service: Service) -> Callable[..., dict[str, Any]]:
    def send(path: str, *records: Any, order: str = "arrival") -> dict[str, Any]:
        body = b"".join(json.dumps(record).encode() + b"\n" for record in records)
        parameters = {"operation": "changelog", "order": order}
        answer = client.post(
            f"{path}/writes", params=parameters, content=body, headers={"Content-Type": NDJSON}
        )
        service.work()
        job: dict[str, Any] = client.get(answer.headers["location"]).json()
        return job

    return send


FIRST: Final = {"id": 1, "at": 1, "state": "new", "body": "long", "tags": ["a", "b"]}
SECOND: Final = {"id": 2, "at": 1, "state": "new", "body": "text", "tags": None}
UPDATED: Final = {"id": 1, "at": 2, "state": "read", "body": P, "tags": [P]}
REWRITTEN: Final = {"id": 2, "at": 2, "state": "read", "body": "other", "tags": ["c"]}
AGAIN: Final = {"id": 2, "at": 3, "state": "kept", "body": P, "tags": [P]}
UNKNOWN: Final = {"id": 3, "at": 2, "state": "late", "body": P, "tags": None}
EXPECTED: Final = [
    {**FIRST, "at": 2, "state": "read"},
    {**REWRITTEN, "at": 3, "state": "kept"},
    {**UNKNOWN, "body": None},
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("together", [True, False], ids=["one write", "a write of each row"])
def test_update_keeps_the_stored_value(
    client: httpx2.Client,
    service: Service,
    write: Callable[..., dict[str, Any]],
    kind: str,
    mode: str,
    together: bool,
) -> None:
    path = _registered(client, **TABLES[kind], **MODES[mode])
    order = "arrival" if mode == "commit_time" else "ordering_field"
    first = write(path, _put("c", FIRST), _put("r", SECOND), order=order)
    assert first["state"] == "succeeded", first
    updates = [_put("u", row) for row in (UPDATED, REWRITTEN, AGAIN, UNKNOWN)]
    for records in [updates] if together else [[each] for each in updates]:
        job = write(path, *records, order=order)
        assert job["state"] == "succeeded", job
    if kind != "postpone":
        assert _rows(client, path) == EXPECTED
        key = client.post(f"{path}/rows/lookup", json={"keys": [{"id": 1}]})
        assert key.status_code == 200, key.text
        assert "long" in key.text
    client.post(f"{path}/compactions")
    service.work()
    assert _rows(client, path) == EXPECTED
    feed = client.get(f"{path}/changes", headers={"Accept": NDJSON}).text
    assert P not in feed
    if "none" not in kind:
        changes = [json.loads(line) for line in feed.splitlines()]
        last = {change["row"]["id"]: change["row"] for change in changes}
        assert [last[number] for number in sorted(last)] == EXPECTED


def _rows(client: httpx2.Client, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"{path}/rows").json()["rows"]
    return sorted(found, key=lambda row: int(row["id"]))


def test_late_update_has_no_effect(client: httpx2.Client, write: Callable[..., dict[str, Any]]) -> None:
    path = _registered(client, ordering_field="at")
    write(path, _put("c", {**FIRST, "at": 5}))
    job = write(path, _put("u", UPDATED), order="ordering_field")
    assert job["rows"]["late"] == 1
    assert _rows(client, path) == [{**FIRST, "at": 5}]


def test_feed_of_rows_as_they_were_sent_refuses_the_update(
    client: httpx2.Client, write: Callable[..., dict[str, Any]]
) -> None:
    path = _registered(client, changelog={"producer": "input"})
    body = json.dumps(_put("u", UPDATED)).encode()
    answer = client.post(
        f"{path}/writes", params={"operation": "changelog"}, content=body, headers={"Content-Type": NDJSON}
    )
    assert answer.status_code == 422, answer.text
    assert "REPLICA IDENTITY FULL" in answer.text
