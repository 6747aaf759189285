"""A schema that changes under writes and readers that are under way."""

import json

import pytest

from app.kernel.commit.merge_bundle import MergeBundle
from tests.support.http import problem, upsert
from tests.support.schema_changes import FIRST, TRIPS, change, merge_write, write


@pytest.fixture
def meanwhile(client, service, monkeypatch):
    """Does something, once, after the next write was decoded and merged and before it is committed."""

    def arrange(action):
        engine, run = service.run_writes.engine, service.run_writes.engine.run
        left = [action]

        def interrupted(tasks, tag):
            results = run(tasks, tag)
            if left and isinstance(tasks[0], MergeBundle):
                left.pop()()
            return results

        monkeypatch.setattr(engine, "run", interrupted)

    return arrange


def test_running_write_is_merged_under_a_schema_changed_meanwhile(client, service, trips, meanwhile):
    write(client, service, trips, upsert(FIRST))
    meanwhile(
        lambda: change(
            client,
            trips,
            {"kind": "drop", "name": "fare"},
            {"kind": "rename", "name": "city", "to": "fare"},
            {"kind": "widen", "name": "seats", "type": "double"},
        )
    )
    write(
        client, service, trips, upsert({**FIRST, "seats": 7, "seen": 2}, {**FIRST, "id": 2, "city": "Bonn"})
    )
    rows = sorted(client.get(f"{trips}/rows").json()["rows"], key=lambda row: row["id"])
    plain = {"day": "2026-01-02", "seen": 2}
    assert rows == [
        {"id": 1, "seats": 7.0, "fare": "Ulm", **plain},
        {"id": 2, "seats": 2.0, "fare": "Bonn", **plain, "seen": 1},
    ]
    items = client.get(f"{trips}/timeline").json()["items"]
    assert sorted((item["version"], item["action"]) for item in items) == [
        (1, "commit"),
        (2, "schema"),
        (3, "commit"),
    ]
    changes = client.get(f"{trips}/changes").json()["changes"]
    assert [each["op"] for each in changes if each["row"]["id"] == 1] == ["+A", "-C", "+C"]


def test_schema_merging_write_reads_its_rows_again_after_a_schema_change(client, service, trips, meanwhile):
    meanwhile(lambda: change(client, trips, {"kind": "add", "field": {"name": "tip", "type": "string"}}))
    job = merge_write(client, service, trips, [{"id": 1, "seats": 1, "tip": "x", "more": 5}])
    assert (job["state"], job["committed_version"]) == ("succeeded", 2)
    schema = client.get(f"{trips}/schema").json()
    assert (schema["id"], [(each["id"], each["name"], each["type"]) for each in schema["fields"][-2:]]) == (
        3,
        [(7, "tip", "string"), (8, "more", "int64")],
    )
    rows = client.get(f"{trips}/rows", params={"columns": "id,tip,more"}).json()["rows"]
    assert rows == [{"id": 1, "tip": "x", "more": 5}]


def test_schema_merging_write_fails_if_its_column_was_added_with_another_type(
    client, service, trips, meanwhile
):
    meanwhile(lambda: change(client, trips, {"kind": "add", "field": {"name": "tip", "type": "date"}}))
    job = merge_write(client, service, trips, [{"id": 1, "seats": 1, "tip": 5}])
    assert job["error"]["type"] == "/problems/schema-mismatch"
    assert client.get(f"{trips}/rows").json()["rows"] == []


def test_stream_sends_an_event_when_the_schema_changes(client, service, trips):
    write(client, service, trips, upsert(FIRST))
    with client.stream("GET", f"{trips}/changes/events", params={"until": 2}) as stream:
        assert stream.headers["headwater-schema-id"] == "1"
        lines = stream.iter_lines()
        seen = [next(lines) for _ in range(4)]
        change(client, trips, {"kind": "add", "field": {"name": "tip", "type": "int8"}})
        write(client, service, trips, upsert({"id": 2, "seats": 1, "tip": 5}))
        seen += list(lines)
    sent = [line for line in seen if line.startswith(("event:", "data:"))]
    assert sent[0] == sent[4] == "event: change"
    assert sent[2:4] == ["event: schema", 'data: {"schema_id":2}']
    assert json.loads(sent[5][6:])["row"]["tip"] == 5


def test_stream_of_dropped_columns_ends(client, service, trips):
    write(client, service, trips, upsert(FIRST))
    with client.stream("GET", f"{trips}/changes/events", params={"columns": "city"}) as stream:
        lines = stream.iter_lines()
        assert [next(lines) for _ in range(4)][1] == "event: change"
        change(client, trips, {"kind": "drop", "name": "city"})
        write(client, service, trips, upsert({"id": 2, "seats": 1}))
        assert list(lines) == []
    problem(client.get(f"{trips}/changes/events", params={"columns": "city"}), 400, "invalid-request")


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_table_contains_rows_of_every_schema(client, service, table_type):
    """Writes that touch a few rows each, of a table whose files are of many schemas."""
    body = {**TRIPS, "table_type": table_type, "bucket": {"count": 2}}
    path = client.post("/datasets", json=body).headers["location"]
    expected = {}
    for number in range(6):
        row = {"id": number, "seats": number, "seen": 1, f"extra{number}": number}
        job = merge_write(client, service, path, [row])
        assert job["state"] == "succeeded", job
        expected[number] = row
        if number % 2:
            expected[number - 1] = {**expected[number - 1], "seats": 2**40, "seen": 2}
            assert merge_write(client, service, path, [expected[number - 1]])["state"] == "succeeded"
            change(client, path, {"kind": "rename", "name": f"extra{number}", "to": f"late{number}"})
            expected[number][f"late{number}"] = expected[number].pop(f"extra{number}")
    rows = client.get(f"{path}/rows").json()["rows"]
    found = {row["id"]: {name: value for name, value in row.items() if value is not None} for row in rows}
    assert found == expected
    folded = {}
    for each in client.get(f"{path}/changes").json()["changes"]:
        if each["op"] in ("+A", "+C"):
            folded[each["row"]["id"]] = each["row"]
        else:
            assert folded.pop(each["row"]["id"]) == each["row"]
    assert folded == {row["id"]: row for row in rows}
