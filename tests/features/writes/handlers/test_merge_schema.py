"""Writes that bring their schema."""

import json

import pytest

from tests.support.http import problem, upsert
from tests.support.schema_changes import FIRST, merge_write, write

NDJSON = "application/x-ndjson"


def test_write_adds_its_missing_columns(client, service, trips):
    write(client, service, trips, upsert(FIRST))
    job = merge_write(
        client,
        service,
        trips,
        [
            {"id": 2, "seats": 2**40, "seen": 1, "tags": ["a"], "from": {"lat": 1, "lon": 2.5}},
            {"id": 1, "seats": 4, "seen": 2, "city": "Bonn", "at": "2026-01-01T00:00:00Z"},
        ],
    )
    assert job["state"] == "succeeded", job
    assert (job["committed_version"], job["rows"]["inserted"], job["rows"]["updated"]) == (2, 1, 1)
    dataset = client.get(trips).json()
    assert [(field["name"], field["type"]) for field in dataset["schema"]["fields"]] == [
        ("id", "int64"),
        ("seats", "int64"),
        ("day", "date"),
        ("fare", "float"),
        ("city", "string"),
        ("seen", "int64"),
        ("tags", "list<string>"),
        ("from", "struct<lat: int64, lon: double>"),
        ("at", "string"),
    ]
    assert client.get(f"{trips}/schema").json()["id"] == 2
    rows = {row["id"]: row for row in client.get(f"{trips}/rows").json()["rows"]}
    assert rows[2]["from"] == {"lat": 1, "lon": 2.5}
    assert (rows[1]["city"], rows[1]["at"], rows[1]["tags"]) == ("Bonn", "2026-01-01T00:00:00Z", None)
    assert client.get(f"{trips}/rows", params={"version": 1}).json()["rows"] == [FIRST]
    changes = client.get(f"{trips}/changes").json()
    assert changes["schema_id"] == 2
    assert sorted(each["op"] for each in changes["changes"]) == ["+A", "+A", "+C", "-C"]
    # The same columns again are no change.
    assert merge_write(client, service, trips, [{"id": 3, "seats": 1, "tags": []}])["state"] == "succeeded"
    assert client.get(f"{trips}/schema").json()["id"] == 2


@pytest.mark.parametrize("media_type", [NDJSON, "text/csv"])
def test_raw_body_adds_its_columns(client, service, trips, media_type):
    body = '{"id": 1, "seats": 1, "seen": 1, "score": 1.5}\n{"id": 2, "seats": 1, "score": 2}\n'
    if media_type == "text/csv":
        body = "id,seats,score\n1,1,1.5\n2,1,2\n"
    answer = client.post(
        f"{trips}/writes",
        params={"operation": "insert", "merge_schema": True},
        content=body,
        headers={"Content-Type": media_type},
    )
    assert answer.status_code == 202, answer.text
    service.work()
    assert client.get(answer.headers["location"]).json()["state"] == "succeeded"
    rows = client.get(f"{trips}/rows", params={"columns": "id,score"}).json()["rows"]
    assert sorted(rows, key=lambda row: row["id"]) == [{"id": 1, "score": 1.5}, {"id": 2, "score": 2.0}]


def test_values_are_cast_only_on_request(client, service, trips):
    rows = [{"id": 1, "seats": 1, "seen": 1, "day": "2026-01-02T03:04:05Z", "at": "2026-01-01T00:00:00Z"}]
    refused = merge_write(client, service, trips, rows)
    assert refused["error"]["type"] == "/problems/schema-mismatch"
    assert client.get(trips).json()["version"] == 0
    assert merge_write(client, service, trips, rows, explicit_cast=True)["state"] == "succeeded"
    types = {field["name"]: field["type"] for field in client.get(trips).json()["schema"]["fields"]}
    assert (types["day"], types["at"]) == ("timestamp", "timestamp")


def test_column_that_cannot_be_added_fails_the_write(client, service, trips):
    job = merge_write(client, service, trips, [{"id": 1, "seats": 1, "Seats": 2, "empty": []}])
    assert job["error"]["type"] == "/problems/schema-mismatch"
    assert [error["pointer"] for error in job["error"]["errors"]] == ["/rows"]
    job = merge_write(client, service, trips, [{"id": 1, "seats": 1, "Seats": 2}])
    assert [error["pointer"] for error in job["error"]["errors"]] == ["/rows/0/Seats"]
    assert client.get(f"{trips}/schema").json()["id"] == 1


def test_bad_records_are_quarantined_while_good_ones_merge_their_schema(client, service, trips):
    rows = [{"id": 1, "seats": 1, "tip": 1}, {"id": "two", "seats": 1, "tip": 2}]
    job = merge_write(client, service, trips, rows, on_error="quarantine")
    assert job["state"] == "succeeded", job
    assert (job["rows"]["inserted"], job["rows"]["quarantined"]) == (1, 1)
    assert client.get(f"{trips}/rows", params={"columns": "id,tip"}).json()["rows"] == [{"id": 1, "tip": 1}]


def test_two_writes_merge_their_schemas_one_after_the_other(client, service, trips):
    bodies = [
        {"operation": "upsert", "merge_schema": True, "source": {"kind": "rows", "rows": [row]}}
        for row in (
            {"id": 1, "seats": 1, "a": 1},
            {"id": 2, "seats": 1, "b": "x"},
            {"id": 3, "seats": 1, "a": 2},
        )
    ]
    answers = [client.post(f"{trips}/writes", json=body) for body in bodies]
    service.work()
    jobs = [client.get(answer.headers["location"]).json() for answer in answers]
    assert [job["committed_version"] for job in jobs] == [1, 2, 3]
    assert [schema["id"] for schema in client.get(f"{trips}/schemas").json()["items"]] == [3, 2, 1]
    rows = client.get(f"{trips}/rows", params={"columns": "id,a,b"}).json()["rows"]
    assert sorted(rows, key=lambda row: row["id"]) == [
        {"id": 1, "a": 1, "b": None},
        {"id": 2, "a": None, "b": "x"},
        {"id": 3, "a": 2, "b": None},
    ]


DEBEZIUM = [
    {"op": "c", "before": None, "after": {"id": 1, "seats": 1, "seen": 1, "tip": 5}, "ts_ms": 1},
    {"payload": {"op": "c", "before": None, "after": {"id": 2, "seats": 1, "seen": 1, "kind": {"a": True}}}},
    {"op": "u", "before": {"id": 1, "tip": 5}, "after": {"id": 1, "seats": 2**40, "seen": 2, "tip": 6}},
]
FLAT = "op,id,seats,seen,tip,kind\n+A,1,1,1,5,\n+A,2,1,1,,x\n-C,1,1,1,5,\n+C,1,1099511627776,2,6,\n"


@pytest.mark.parametrize("media_type", [NDJSON, "text/csv"])
def test_changelog_write_adds_its_columns(client, service, trips, media_type):
    lines = "\n".join([*map(json.dumps, DEBEZIUM), "null"])
    answer = client.post(
        f"{trips}/writes",
        params={"operation": "changelog", "merge_schema": True},
        content=FLAT if media_type == "text/csv" else lines,
        headers={"Content-Type": media_type},
    )
    assert answer.status_code == 202, answer.text
    service.work()
    job = client.get(answer.headers["location"]).json()
    assert job["state"] == "succeeded", job
    fields = client.get(trips).json()["schema"]["fields"]
    assert [
        (field["name"], field["type"]) for field in fields if field["name"] in ("seats", "tip", "kind")
    ] == [
        ("seats", "int64"),
        ("tip", "int64"),
        ("kind", "string" if media_type == "text/csv" else "struct<a: boolean>"),
    ]
    assert len(fields) == 8
    rows = client.get(f"{trips}/rows", params={"columns": "id,seats,tip"}).json()["rows"]
    assert sorted(rows, key=lambda row: row["id"]) == [
        {"id": 1, "seats": 2**40, "tip": 6},
        {"id": 2, "seats": 1, "tip": None},
    ]


def test_delete_refuses_merge_schema(client, trips):
    body = {"operation": "delete", "merge_schema": True, "source": {"kind": "rows", "rows": []}}
    members = problem(client.post(f"{trips}/writes", json=body), 400, "invalid-request")
    assert [error["pointer"] for error in members["errors"]] == ["/merge_schema"]
