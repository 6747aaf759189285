"""Changing the schema of a dataset, and reading rows and changes on both sides of a change."""

import io
import json

import pyarrow.ipc as ipc
import pytest

from tests.support.http import problem, upsert, without_engines
from tests.support.schema_changes import FIRST, TRIPS, change, write

NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"


def test_schema_change_is_a_version_of_its_own(client, trips):
    answer = change(
        client,
        trips,
        {"kind": "add", "field": {"name": "tip", "type": "decimal(9, 2)", "doc": "cash"}},
        {"kind": "drop", "name": "fare"},
        {"kind": "rename", "name": "city", "to": "town"},
        {"kind": "widen", "name": "day", "type": "timestamp", "explicit_cast": True},
        {"kind": "relax", "name": "seats"},
        {"kind": "reorder", "names": ["id", "town", "day", "seats", "seen", "tip"]},
    )
    assert answer.status_code == 200, answer.text
    assert answer.headers["etag"] == '"1"'
    dataset = answer.json()
    assert dataset == without_engines(client.get(trips).json())
    assert dataset["version"] == 1
    assert dataset["schema"]["fields"] == [
        {"name": "id", "type": "int64", "nullable": False, "doc": None},
        {"name": "town", "type": "string", "nullable": True, "doc": None},
        {"name": "day", "type": "timestamp", "nullable": True, "doc": None},
        {"name": "seats", "type": "int32", "nullable": True, "doc": None},
        {"name": "seen", "type": "int64", "nullable": True, "doc": None},
        {"name": "tip", "type": "decimal(9, 2)", "nullable": True, "doc": "cash"},
    ]
    [instant] = client.get(f"{trips}/timeline").json()["items"]
    assert (instant["action"], instant["operation"], instant["state"]) == ("schema", "evolve", "completed")
    assert (instant["version"], instant["job_id"]) == (1, None)


def test_schemas_of_all_versions_stay_readable(client, trips):
    change(client, trips, {"kind": "drop", "name": "fare"})
    change(client, trips, {"kind": "add", "field": {"name": "fare", "type": "string"}})
    latest = client.get(f"{trips}/schema").json()
    assert latest["id"] == 3
    assert [field["id"] for field in latest["fields"]] == [1, 2, 3, 5, 6, 7]
    first = client.get(f"{trips}/schema", params={"id": 1}).json()
    assert [field["name"] for field in first["fields"]] == [
        each["name"] for each in TRIPS["schema"]["fields"]
    ]
    listed = client.get(f"{trips}/schemas", params={"page_size": 2}).json()
    assert [schema["id"] for schema in listed["items"]] == [3, 2]
    assert listed["items"][0] | {"readers": []} == latest
    rest = client.get(f"{trips}/schemas", params={"page_token": listed["next_page_token"]}).json()
    assert rest == {"items": [first], "next_page_token": None}
    problem(client.get(f"{trips}/schema", params={"id": 4}), 404, "not-found")
    problem(client.get(f"{trips}/schema", params={"id": 2**62}), 404, "not-found")
    problem(client.get(f"{trips}/schema", params={"id": 0}), 400, "invalid-request")
    problem(client.get(f"{trips}/schemas", params={"page_token": "x"}), 400, "invalid-request")


def test_schema_change_requires_a_matching_if_match(client, trips):
    body = {"changes": [{"kind": "drop", "name": "fare"}]}
    problem(client.patch(trips, json=body), 428, "precondition-required")
    problem(client.patch(trips, json=body, headers={"If-Match": "*"}), 428, "precondition-required")
    stale = problem(client.patch(trips, json=body, headers={"If-Match": '"3"'}), 412, "precondition-failed")
    assert stale["version"] == 0
    problem(client.patch(trips, json=body, headers={"If-Match": "nonsense"}), 412, "precondition-failed")
    assert client.patch(trips, json=body, headers={"If-Match": '"0"'}).status_code == 200
    problem(client.patch(trips, json=body, headers={"If-Match": '"0"'}), 412, "precondition-failed")
    problem(client.patch("/datasets/none", json=body, headers={"If-Match": '"0"'}), 404, "not-found")
    assert client.get(trips).json()["version"] == 1


def test_schema_change_requires_the_write_scope(new_client, service):
    reader = new_client(("read",))
    body = {"changes": [{"kind": "drop", "name": "fare"}]}
    problem(reader.patch("/datasets/trips", json=body, headers={"If-Match": '"0"'}), 403, "forbidden")


def test_schema_change_without_changes_is_refused(client, trips):
    refused = client.patch(trips, json={}, headers={"If-Match": '"0"'})
    assert problem(refused, 422, "schema-change-refused")["errors"][0]["pointer"] == "/changes"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"changes": [{"kind": "delete", "name": "x"}]}, "/changes/0/kind"),
        ({"changes": [{"name": "x"}]}, "/changes/0/kind"),
        ({"changes": [{"kind": "drop", "name": "x", "cascade": True}]}, "/changes/0/cascade"),
        ({"changes": [{"kind": "widen", "name": "x"}]}, "/changes/0/type"),
        ({"changes": "none"}, "/changes"),
        ({"schema": {}}, "/schema"),
    ],
)
def test_invalid_member_is_reported_with_its_pointer(client, trips, body, pointer):
    members = problem(client.patch(trips, json=body, headers={"If-Match": '"0"'}), 400, "invalid-request")
    assert [error["pointer"] for error in members["errors"]] == [pointer]


@pytest.mark.parametrize(
    ("changes", "pointer", "reason"),
    [
        ([], "/changes", "expected 1–2000 changes"),
        ([{"kind": "drop", "name": "id"}], "/changes/0/name", "part of the record key: it cannot be dropped"),
        ([{"kind": "drop", "name": "seen"}], "/changes/0/name", "the ordering field"),
        ([{"kind": "drop", "name": "day"}], "/changes/0/name", "the event time field"),
        ([{"kind": "rename", "name": "id", "to": "key"}], "/changes/0/name", "it keeps its name"),
        (
            [{"kind": "rename", "name": "city", "to": "FARE"}],
            "/changes/0/to",
            "there is a field 'fare' already",
        ),
        ([{"kind": "widen", "name": "id", "type": "string"}], "/changes/0/name", "it keeps its type"),
        (
            [{"kind": "widen", "name": "seats", "type": "int16"}],
            "/changes/0/type",
            "does not hold every value",
        ),
        (
            [{"kind": "widen", "name": "day", "type": "timestamp"}],
            "/changes/0/type",
            "with explicit_cast only",
        ),
        ([{"kind": "widen", "name": "city", "type": "nothing"}], "/changes/0/type", "unknown type 'nothing'"),
        ([{"kind": "relax", "name": "id"}], "/changes/0/name", "it stays required"),
        ([{"kind": "reorder", "names": ["id"]}], "/changes/0/names", "expected each field once"),
        (
            [{"kind": "add", "field": {"name": "new", "type": "date", "nullable": False}}],
            "/changes/0/field/nullable",
            "must be nullable",
        ),
        ([{"kind": "add", "field": {"name": "Id", "type": "date"}}], "/changes/0/field/name", "'id' already"),
    ],
)
def test_schema_change_that_would_lose_values_or_move_rows_is_refused(
    client, trips, changes, pointer, reason
):
    members = problem(change(client, trips, *changes), 422, "schema-change-refused")
    [error] = members["errors"]
    assert error["pointer"] == pointer
    assert reason in error["detail"]
    assert client.get(trips).json()["version"] == 0


def test_rows_are_read_under_the_schema_of_their_version(client, service, trips):
    write(client, service, trips, upsert(FIRST))
    change(
        client,
        trips,
        {"kind": "rename", "name": "city", "to": "town"},
        {"kind": "drop", "name": "fare"},
        {"kind": "widen", "name": "seats", "type": "int64"},
        {"kind": "widen", "name": "day", "type": "timestamp", "explicit_cast": True},
        {"kind": "add", "field": {"name": "city", "type": "list<string>"}},
    )
    second = {"id": 2, "seats": 2**40, "day": "2026-01-03T04:05:06Z", "town": None, "seen": 1, "city": ["a"]}
    write(client, service, trips, upsert(second))
    latest = client.get(f"{trips}/rows")
    assert latest.headers["headwater-schema-id"] == "2"
    moved = {"id": 1, "seats": 2, "day": "2026-01-02T00:00:00Z", "town": "Ulm", "seen": 1, "city": None}
    assert sorted(latest.json()["rows"], key=lambda row: row["id"]) == [moved, second]
    before = client.get(f"{trips}/rows", params={"version": 1}).json()
    assert (before["rows"], before["version"], before["schema_id"]) == ([FIRST], 1, 1)
    at_change = client.get(f"{trips}/rows", params={"version": 2}).json()
    assert (at_change["rows"], at_change["schema_id"]) == ([moved], 2)
    by_column = client.get(f"{trips}/rows", params={"version": 1, "columns": "city,fare"}).json()
    assert by_column["rows"] == [{"city": "Ulm", "fare": 1.5}]
    problem(client.get(f"{trips}/rows", params={"columns": "fare"}), 400, "invalid-request")
    # A later write merges with rows that were written under the first schema.
    write(client, service, trips, upsert({"id": 1, "seats": 3, "seen": 2, "town": "Bonn"}))
    merged = {row["id"]: row for row in client.get(f"{trips}/rows").json()["rows"]}
    assert merged[1] == {"id": 1, "seats": 3, "day": None, "town": "Bonn", "seen": 2, "city": None}
    changes = client.get(f"{trips}/changes").json()["changes"]
    assert [(each["op"], each["row"]["id"], each["row"]["town"]) for each in changes] == [
        ("+A", 1, "Ulm"),
        ("+A", 2, None),
        ("-C", 1, "Ulm"),
        ("+C", 1, "Bonn"),
    ]
    assert changes[0]["row"] == changes[2]["row"] == moved


def test_changes_name_the_schema_they_are_read_under(client, service, trips):
    write(client, service, trips, upsert(FIRST))
    change(
        client,
        trips,
        {"kind": "rename", "name": "city", "to": "town"},
        {"kind": "drop", "name": "fare"},
        {"kind": "widen", "name": "seats", "type": "int64"},
        {"kind": "add", "field": {"name": "tip", "type": "int8"}},
    )
    write(client, service, trips, upsert({"id": 2, "seats": 5, "seen": 1, "town": "Bonn", "tip": 1}))
    latest = client.get(f"{trips}/changes")
    assert latest.json()["schema_id"] == 2
    assert latest.headers["headwater-schema-id"] == "2"
    assert [each["row"] for each in latest.json()["changes"]] == [
        {"id": 1, "seats": 2, "day": "2026-01-02", "town": "Ulm", "seen": 1, "tip": None},
        {"id": 2, "seats": 5, "day": None, "town": "Bonn", "seen": 1, "tip": 1},
    ]
    assert client.get(f"{trips}/changes", params={"schema": 2}).json() == latest.json()
    first = client.get(f"{trips}/changes", params={"schema": 1})
    assert first.json()["schema_id"] == 1
    rows = [
        FIRST,
        {"id": 2, "seats": 5, "day": None, "fare": None, "city": "Bonn", "seen": 1},
    ]
    assert [each["row"] for each in first.json()["changes"]] == rows
    assert [each["event_time"] for each in first.json()["changes"]] == ["2026-01-02", None]
    as_lines = client.get(f"{trips}/changes", params={"schema": 1}, headers={"Accept": NDJSON})
    assert [json.loads(line)["row"] for line in as_lines.text.splitlines()] == rows
    assert as_lines.headers["headwater-schema-id"] == "1"
    as_arrow = client.get(
        f"{trips}/changes", params={"schema": 1, "columns": "city"}, headers={"Accept": ARROW}
    )
    assert as_arrow.headers["headwater-schema-id"] == "1"
    assert ipc.open_stream(io.BytesIO(as_arrow.content)).read_all()["city"].to_pylist() == ["Ulm", "Bonn"]
    events = client.get(f"{trips}/changes/events", params={"schema": 1, "until": 2})
    assert events.headers["headwater-schema-id"] == "1"
    assert [
        json.loads(line[6:])["row"] for line in events.text.splitlines() if line.startswith("data: ")
    ] == rows


def test_column_that_was_widened_before_it_was_dropped_is_read_under_the_first_schema(client, service, trips):
    write(client, service, trips, upsert({"id": 1, "seats": 2, "seen": 1}))
    change(client, trips, {"kind": "widen", "name": "seats", "type": "int64"})
    write(client, service, trips, upsert({"id": 2, "seats": 2**40, "seen": 1}))
    change(client, trips, {"kind": "drop", "name": "seats"})
    for since in ({}, {"since": "snapshot"}):
        page = client.get(
            f"{trips}/changes", params={"schema": 1, "where": "id = 1", "columns": "id", **since}
        )
        assert [each["row"] for each in page.json()["changes"]] == [{"id": 1}]
        problem(client.get(f"{trips}/changes", params={"schema": 1, **since}), 422, "schema-mismatch")


def test_value_outside_the_requested_schema_is_refused(client, service, trips):
    change(client, trips, {"kind": "widen", "name": "seats", "type": "int64"})
    write(client, service, trips, upsert({"id": 1, "seats": 2**40, "seen": 1}))
    for since in ({}, {"since": "snapshot"}):
        response = client.get(f"{trips}/changes", params={"schema": 1, **since})
        errors = problem(response, 422, "schema-mismatch")["errors"]
        assert errors == [{"pointer": "/schema", "detail": "expected `latest`, or an id from 2 on"}]
    without = client.get(f"{trips}/changes", params={"schema": 1, "columns": "id"}).json()
    assert [each["row"] for each in without["changes"]] == [{"id": 1}]


@pytest.mark.parametrize("schema", ["0", "2", "999999999", "-1", "first", ""])
def test_unknown_schema_is_refused(client, trips, schema):
    for path in (f"{trips}/changes", f"{trips}/changes/events"):
        members = problem(client.get(path, params={"schema": schema}), 400, "invalid-request")
        assert [error["pointer"] for error in members["errors"]] == ["/schema"]


def test_write_accepted_before_a_schema_change_is_merged_after_it(client, service, trips):
    staged = client.post(f"{trips}/writes", json=upsert(FIRST))
    raw = "\n".join(json.dumps({**FIRST, "id": number}) for number in (2, 3))
    large = client.post(
        f"{trips}/writes",
        params={"operation": "upsert"},
        content=raw,
        headers={"Content-Type": NDJSON},
    )
    change(
        client,
        trips,
        {"kind": "drop", "name": "fare"},
        {"kind": "rename", "name": "city", "to": "town"},
        {"kind": "widen", "name": "seats", "type": "int64"},
        {"kind": "add", "field": {"name": "city", "type": "int64"}},
        {"kind": "reorder", "names": ["city", "seats", "id", "seen", "town", "day"]},
    )
    service.work()
    for answer in (staged, large):
        job = client.get(answer.headers["location"]).json()
        assert job["state"] == "succeeded", job
    expected = {"city": None, "seats": 2, "id": 1, "seen": 1, "town": "Ulm", "day": "2026-01-02"}
    rows = sorted(client.get(f"{trips}/rows").json()["rows"], key=lambda row: row["id"])
    assert rows == [{**expected, "id": number} for number in (1, 2, 3)]


def test_write_is_checked_against_the_current_schema(client, service, trips):
    change(client, trips, {"kind": "drop", "name": "fare"})
    members = problem(client.post(f"{trips}/writes", json=upsert(FIRST)), 422, "schema-mismatch")
    assert members["errors"][0]["pointer"].endswith("/fare")
