"""Datasets that are partitioned by what is made of their fields."""

from __future__ import annotations

from tests.support.http import problem

FIELDS = [
    {"name": "id", "type": "int64"},
    {"name": "ts", "type": "timestamp"},
    {"name": "address", "type": "struct<city: string>"},
]
VISITS = {"name": "visits", "schema": {"fields": FIELDS}}
ROWS = [
    {"id": 1, "ts": "2026-11-21T23:59:59.999999Z", "address": {"city": "Köln"}},
    {"id": 2, "ts": "2026-11-22T00:00:00Z", "address": {"city": None}},
    {"id": 3, "ts": None, "address": None},
    {"id": 4, "ts": "2026-11-22T12:00:00Z", "address": {"city": "a/b"}},
]


def test_rows_of_member_and_day_partitions_are_read_back(client, service):
    made = client.post("/datasets", json={**VISITS, "partition_by": ["Day( ts )", "address.city"]})
    assert made.status_code == 201, made.text
    assert made.json()["partition_by"] == ["day(ts)", "address.city"]
    path = made.headers["location"]
    with service.working():
        body = {"operation": "insert", "source": {"kind": "rows", "rows": ROWS}}
        answer = client.post(f"{path}/writes", json=body, headers={"Prefer": "wait=20"})
    assert answer.status_code == 200, answer.text
    rows = client.get(f"{path}/rows").json()["rows"]
    assert sorted(rows, key=lambda row: row["id"])[2:] == ROWS[2:]
    assert len(rows) == len(ROWS)


def test_invalid_partition_entry_is_named(client):
    answer = client.post("/datasets", json={**VISITS, "partition_by": ["hour(ts)", "week(ts)", "address"]})
    errors = problem(answer, 422, "invalid-dataset")["errors"]
    assert [error["pointer"] for error in errors] == ["/partition_by/1", "/partition_by/2"]
