"""The watermark of a dataset over HTTP: declared, in the feed, in the timeline, and in the results of jobs."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.support.http import problem, upsert
from tests.support.service import Service

FIELDS = [{"name": "id", "type": "int64"}, {"name": "at", "type": "timestamp"}]


def registered(client: httpx2.Client, late: str) -> str:
    body = {
        "name": f"readings_{late}",
        "schema": {"fields": FIELDS},
        "record_key": ["id"],
        "watermark": {"field": "at", "delay_seconds": 60, "late": late},
    }
    answer = client.post("/datasets", json=body)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert (made["watermark"], made["watermark_at"]) == (body["watermark"], None)
    return f"/datasets/{made['id']}"


def written(client: httpx2.Client, service: Service, path: str, *rows: dict[str, Any], **options: Any) -> Any:
    answer = client.post(f"{path}/writes", json=upsert(*rows) | options)
    assert answer.status_code == 202, answer.text
    service.work()
    return client.get(answer.headers["location"]).json()


def row(number: int, minute: int) -> dict[str, Any]:
    return {"id": number, "at": f"2026-11-23T12:{minute:02d}:00Z"}


def test_feed_has_the_watermark_of_each_position(client: httpx2.Client, service: Service) -> None:
    path = registered(client, "accept")
    assert "watermark" not in client.get(f"{path}/changes").json()
    written(client, service, path, row(1, 10))
    written(client, service, path, row(2, 20), row(3, 0))
    found = [
        client.get(f"{path}/changes", params={"limit": limit, "since": since}).json().get("watermark")
        for since, limit in ((0, 1), (0, 2), (0, 3), (3, 1))
    ]
    first, second = "2026-11-23T12:09:00Z", "2026-11-23T12:19:00Z"
    assert found == [first, first, second, second]
    page = client.get(f"{path}/changes", headers={"Accept": "application/x-ndjson"})
    assert page.headers["headwater-watermark"] == second
    assert client.get(path).json()["watermark_at"] == "2026-11-23T12:19:00Z"
    entries = client.get(f"{path}/timeline").json()["items"]
    assert [entry["watermark"] for entry in entries] == ["2026-11-23T12:19:00Z", "2026-11-23T12:09:00Z"]
    events = client.get(f"{path}/changes/events", params={"until": 3}).text
    assert events.endswith(f'\n\nevent: watermark\ndata: {{"watermark":"{second}"}}\n\n')
    assert events.count("event: watermark") == 1


@pytest.mark.parametrize(
    ("late", "counts", "left"),
    [
        ("accept", {"inserted": 2}, [1, 2, 3]),
        ("drop", {"inserted": 1, "unchanged": 1}, [1, 3]),
        ("quarantine", {"inserted": 1, "quarantined": 1}, [1, 3]),
    ],
)
def test_late_rows_are_counted_in_the_result_of_the_job(
    client: httpx2.Client, service: Service, late: str, counts: dict[str, int], left: list[int]
) -> None:
    path = registered(client, late)
    job = written(client, service, path, row(1, 10))
    assert job["result"]["late"] == {"rows": 0, "watermark": None}
    job = written(client, service, path, row(2, 0), row(3, 30))
    assert job["result"]["late"] == {"rows": 1, "watermark": "2026-11-23T12:09:00Z"}
    assert {name: number for name, number in job["rows"].items() if number} == counts
    assert [each["id"] for each in client.get(f"{path}/rows").json()["rows"]] == left


@pytest.mark.parametrize("by_id", [True, False])
def test_late_record_is_redriven_unchanged_when_late_rows_are_accepted(
    client: httpx2.Client, service: Service, by_id: bool
) -> None:
    path = registered(client, "quarantine")
    written(client, service, path, row(1, 10))
    job = written(client, service, path, row(2, 0))
    [record] = client.get(f"{path}/quarantine").json()["items"]
    body: dict[str, Any] = {"records": [{"id": record["id"]}]} if by_id else {"job": job["id"]}
    problem(client.post(f"{path}/quarantine/redrives", json=body | {"late": "drop"}), 400, "invalid-request")
    answer = client.post(f"{path}/quarantine/redrives", json=body | {"late": "accept"})
    assert answer.status_code == 202, answer.text
    service.work()
    redriven = client.get(answer.headers["location"]).json()
    assert (redriven["rows"]["inserted"], redriven["rows"]["quarantined"]) == (1, 0)
    assert redriven["result"]["late"] == {"rows": 1, "watermark": "2026-11-23T12:09:00Z"}
    assert [each["id"] for each in client.get(f"{path}/rows").json()["rows"]] == [1, 2]
    assert [each["state"] for each in client.get(f"{path}/quarantine").json()["items"]] == ["redriven"]


def test_watermark_survives_renames_and_its_field_stays(client: httpx2.Client, service: Service) -> None:
    path = registered(client, "accept")
    written(client, service, path, row(1, 10))
    etag = client.get(path).headers["etag"]
    dropped = {"changes": [{"kind": "drop", "name": "at"}]}
    problem(client.patch(path, json=dropped, headers={"If-Match": etag}), 422, "schema-change-refused")
    renamed = {"changes": [{"kind": "rename", "name": "at", "to": "taken"}]}
    answer = client.patch(path, json=renamed, headers={"If-Match": etag})
    assert answer.status_code == 200, answer.text
    assert answer.json()["watermark"]["field"] == "taken"
    assert client.get(f"{path}/timeline").json()["items"][0]["watermark"] == "2026-11-23T12:09:00Z"


@pytest.mark.parametrize(
    ("watermark", "pointer"),
    [
        ({"field": "id"}, "/watermark/field"),
        ({"field": "absent"}, "/watermark/field"),
        ({"field": "at", "delay_seconds": -1}, "/watermark/delay_seconds"),
        ({"field": "at", "late": "keep"}, "/watermark/late"),
        ({"field": "at", "delay": 5}, "/watermark/delay"),
    ],
)
def test_watermark_that_is_not_valid_is_refused(
    client: httpx2.Client, watermark: dict[str, Any], pointer: str
) -> None:
    answer = client.post(
        "/datasets", json={"name": "bad", "schema": {"fields": FIELDS}, "watermark": watermark}
    )
    assert answer.status_code in (400, 422), answer.text
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
