"""Changes to rows without a key over HTTP: a retraction removes one equal row."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from tests.support.http import EVENTS, problem
from tests.support.service import Service

NDJSON = "application/x-ndjson"
A, B, C = ({"at": None, "what": what} for what in "abc")
SNAPSHOTS = ([A, A, B], [A, C, C], [], [B, A, A, A])


def change(op: str, row: dict[str, Any]) -> dict[str, Any]:
    return {"op": op, "row": row}


def write(
    client: httpx2.Client, service: Service, path: str, operation: str, *rows: Any, **options: Any
) -> Any:
    """The job of a write that has ended."""
    body = {"operation": operation, "source": {"kind": "rows", "rows": list(rows)}, **options}
    answer = client.post(f"{path}/writes", json=body)
    assert answer.status_code == 202, answer.text
    service.work()
    return client.get(f"/jobs/{answer.json()['id']}").json()


def rows(client: httpx2.Client, path: str, **parameters: Any) -> list[Any]:
    answer = client.get(f"{path}/rows", params=parameters)
    assert answer.status_code == 200, answer.text
    return sorted(answer.json()["rows"], key=str)


def changes(client: httpx2.Client, path: str, **parameters: Any) -> list[Any]:
    answer = client.get(f"{path}/changes", params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()["changes"]


@pytest.fixture(params=["copy_on_write", "merge_on_read"])
def copy(client: httpx2.Client, events: str, request: pytest.FixtureRequest) -> str:
    """A dataset like `events`."""
    answer = client.post("/datasets", json={**EVENTS, "name": "copy", "table_type": request.param})
    assert answer.status_code == 201, answer.text
    return str(answer.headers["location"])


def test_retract_stream_reproduces_a_keyless_dataset_at_every_version(
    client: httpx2.Client, service: Service, events: str, copy: str
) -> None:
    for snapshot in SNAPSHOTS:
        write(client, service, events, "snapshot", *snapshot)
    versions = range(1, len(SNAPSHOTS) + 1)
    for version in versions:
        sent = [each for each in changes(client, events) if each["version"] == version]
        job = write(client, service, copy, "changelog", *sent)
        assert (job["state"], job["committed_version"]) == ("succeeded", version), job
        assert job["rows"]["unchanged"] == 0
    for version in versions:
        assert rows(client, copy, version=version) == rows(client, events, version=version)
    shown = [
        sorted((each["version"], each["op"], str(each["row"])) for each in changes(client, path))
        for path in (events, copy)
    ]
    assert shown[0] == shown[1]
    verification = client.post(f"{copy}/verifications").json()
    service.work()
    assert client.get(f"/jobs/{verification['id']}").json()["state"] == "succeeded"


def test_retraction_of_a_row_that_is_not_there_fails_the_write(
    client: httpx2.Client, service: Service, events: str
) -> None:
    write(client, service, events, "insert", A, B)
    job = write(client, service, events, "changelog", change("+A", C), change("-R", B), change("-R", B))
    assert job["state"] == "failed"
    error = job["error"]
    assert (error["type"], error["rows"], error["count"]) == ("/problems/retracted-row-missing", [2], 1)
    assert rows(client, events) == [A, B]


def test_retraction_of_a_row_that_is_not_there_is_quarantined_and_redriven(
    client: httpx2.Client, service: Service, events: str
) -> None:
    write(client, service, events, "insert", A)
    job = write(
        client,
        service,
        events,
        "changelog",
        change("-R", B),
        change("-R", A),
        change("+A", C),
        on_error="quarantine",
    )
    assert job["rows"] == {
        "inserted": 1,
        "updated": 0,
        "deleted": 1,
        "unchanged": 0,
        "quarantined": 1,
        "late": 0,
    }
    assert rows(client, events) == [C]
    [record] = client.get(f"{events}/quarantine").json()["items"]
    assert record["position"] == 0
    assert json.loads(record["payload"]) == change("-R", B)
    assert record["errors"][0]["pointer"] == "/row"

    write(client, service, events, "insert", B)
    answer = client.post(f"{events}/quarantine/redrives", json={"job": job["id"]})
    assert answer.status_code == 202, answer.text
    service.work()
    redriven = client.get(f"/jobs/{answer.json()['id']}").json()
    assert redriven["rows"] == {
        "inserted": 0,
        "updated": 0,
        "deleted": 1,
        "unchanged": 0,
        "late": 0,
        "quarantined": 0,
    }
    assert rows(client, events) == [C]


def test_retraction_needs_the_required_values_of_its_row(client: httpx2.Client, service: Service) -> None:
    fields = [{"name": "what", "type": "string", "nullable": False}, {"name": "n", "type": "int32"}]
    path = client.post("/datasets", json={"name": "strict", "schema": {"fields": fields}}).headers["location"]
    body = {"operation": "changelog", "source": {"kind": "rows", "rows": [change("-R", {"n": 1})]}}
    answer = client.post(f"{path}/writes", json=body)
    assert problem(answer, 422, "schema-mismatch")["errors"][0]["pointer"] == "/source/rows/0/row/what"


def test_correction_without_a_key_is_a_retraction_and_an_append(
    client: httpx2.Client, service: Service, events: str
) -> None:
    write(client, service, events, "insert", A, A)
    body = b"".join(json.dumps(each).encode() + b"\n" for each in [{"op": "u", "before": A, "after": B}])
    answer = client.post(
        f"{events}/writes?operation=changelog", content=body, headers={"Content-Type": NDJSON}
    )
    assert answer.status_code == 202, answer.text
    service.work()
    assert rows(client, events) == [A, B]
    assert [(each["op"], each["row"]["what"]) for each in changes(client, events, since=2)] == [
        ("-R", "a"),
        ("+A", "b"),
    ]
