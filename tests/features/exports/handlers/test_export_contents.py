"""What exports write: the same as pages of the feed have, and the rows that tables have."""

import csv
import io
import json
import random
from collections import Counter
from itertools import combinations

import msgspec
import pytest

from app.features.exports import tasks
from app.features.exports import tasks as export
from app.kernel.changelog.delivery_forms import ChangeForm
from tests.support.exports import (
    ARROW,
    KEYED,
    NDJSON,
    arrow_table,
    changed_keys,
    contents,
    exported,
    feed_pages,
    keyed_history,
    row,
    table_rows,
    tables,
    write,
)
from tests.support.http import upsert
from tests.support.shares import share
from workers.engine.read import export_handle

FORMS = [form.value for form in ChangeForm]


@pytest.fixture(scope="module")
def sales(service):
    """A client, and the path of a dataset that was written to at random."""
    with service.client(service.new_key("exporter")) as client:
        yield client, keyed_history(client, service, seed=3)


@pytest.fixture
def small_steps(monkeypatch):
    """Tasks have few changes, and files fewer, so that all their ends occur."""
    monkeypatch.setattr(export, "_PART_ROWS", 9)
    monkeypatch.setattr(export_handle, "_STEP_CHANGES", 4)
    sink = export_handle._sink

    def of_small_files(part, storage, schema):
        spec = msgspec.structs.replace(part.spec, target_bytes=1)
        return sink(msgspec.structs.replace(part, spec=spec), storage, schema)

    monkeypatch.setattr(export_handle, "_sink", of_small_files)


def until(client, path):
    return client.get(path).json()["next_offset"]


def check_joined(run):
    """Files of changes lie one behind the other."""
    positions = [file["first_offset"] for file in run["files"]] + [run["offsets"]["next_since"]]
    assert positions[0] == run["offsets"]["since"]
    assert positions[1:] == [file["next_offset"] for file in run["files"]]
    assert positions == sorted(positions)
    assert run["rows"] == sum(file["rows"] for file in run["files"])


SOME = {"where": "id < 4", "columns": ["id", "note", "blob"], "partitions": ["region=eu"]}


@share(4)
@pytest.mark.parametrize(
    ("form", "since", "before_head", "more"),
    [("two_event", 0, 0, {}), *((form, 3, 2, SOME) for form in FORMS)],
)
def test_exported_changes_equal_feed_pages(sales, service, small_steps, form, since, before_head, more):
    client, path = sales
    end = until(client, path) - before_head
    definition = {"query": "changes", "form": form, "since": since, "until": end, **more}
    query = {"form": form, "since": since, "until": end, **more}
    run = exported(client, service, path, format="ndjson", **definition)
    assert b"".join(contents(client, run)) == b"".join(feed_pages(client, path, NDJSON, **query))
    check_joined(run)
    shown = arrow_table(feed_pages(client, path, ARROW, **query))
    for format_ in ("arrow", "parquet"):
        run = exported(client, service, path, format=format_, **definition)
        found = tables(format_, contents(client, run))
        assert [each for table in found for each in table.to_pylist()] == shown.to_pylist()
        assert all(table.schema.names == shown.schema.names for table in found)
        check_joined(run)


def test_pair_is_never_split_over_two_files(sales, service, small_steps):
    client, path = sales
    run = exported(client, service, path, query="changes", format="ndjson")
    assert len(run["files"]) > 5
    for file in contents(client, run):
        ops = [json.loads(line)["op"] for line in file.splitlines()]
        assert ops[0] != "+C"
        assert ops[-1] != "-C"


def test_changes_below_the_target_size_are_one_file(sales, service):
    client, path = sales
    run = exported(client, service, path, query="changes", format="ndjson")
    (content,) = contents(client, run)
    query = {"since": 0, "until": until(client, path)}
    assert content == b"".join(feed_pages(client, path, NDJSON, **query))


def test_range_that_ends_within_a_pair_ends_before_it(client, service, feed):
    # Two appends, then a correction.
    path = feed.removesuffix("/changes")
    run = exported(client, service, path, query="changes", format="ndjson", until=3)
    assert run["offsets"] == {"since": 0, "next_since": 2}
    assert run["rows"] == 2
    run = exported(client, service, path, query="incremental", format="ndjson", until=3)
    assert run["offsets"] == {"since": 0, "next_since": 2}
    lines = b"".join(contents(client, run)).splitlines()
    assert sorted(map(json.loads, lines), key=lambda row: row["id"]) == [
        {"id": 1, "note": "a"},
        {"id": 2, "note": "b"},
    ]


def test_csv_of_changes_has_the_flat_form(sales, service, small_steps):
    client, path = sales
    run = exported(client, service, path, query="changes", format="csv", columns=["id", "note", "tags"])
    feed_changes = client.get(f"{path}/changes", params={"limit": 10_000}).json()["changes"]
    found = []
    for file in contents(client, run):
        found += csv.DictReader(io.StringIO(file.decode(), newline=""))
    assert len(found) == len(feed_changes)
    for record, change in zip(found, feed_changes, strict=True):
        assert int(record["offset"]) == change["offset"]
        assert record["op"] == change["op"]
        assert record["system_time"] == change["system_time"]
        assert record["event_time"] == (change["event_time"] or "")
        assert int(record["id"]) == change["row"]["id"]
        assert record["note"] == (change["row"]["note"] or "")
        tags = change["row"]["tags"]
        assert record["tags"] == ("" if tags is None else json.dumps(tags, separators=(",", ":")))


def by_key(rows):
    rows = list(rows)
    found = {(row["region"], row["id"]): row for row in rows}
    assert len(found) == len(rows), "a key comes twice"
    return found


@share(2)
@pytest.mark.parametrize("where", [None, "note = 'a' OR price < 0"])
def test_incremental_rows_are_the_current_rows_of_changed_keys(sales, service, small_steps, where):
    client, path = sales
    head = until(client, path)
    query = {} if where is None else {"where": where}
    for since in (0, head // 2, head):
        keys = changed_keys(client, path, since, head)
        expected = {key: row for key, row in by_key(table_rows(client, path, **query)).items() if key in keys}
        run = exported(client, service, path, query="incremental", format="ndjson", since=since, **query)
        lines = b"".join(contents(client, run)).splitlines()
        assert by_key([json.loads(line) for line in lines]) == expected
        assert run["rows"] == len(expected)
        shown = {"columns": ["id", "region"], "partitions": ["region=us"], **query}
        run = exported(client, service, path, query="incremental", format="parquet", since=since, **shown)
        found = [row for table in tables("parquet", contents(client, run)) for row in table.to_pylist()]
        assert by_key(found) == {key: {"id": key[1], "region": key[0]} for key in expected if key[0] == "us"}


KINDS = {
    "marked": {"table_type": "merge_on_read"},
    "dynamic": {"bucket": {"mode": "dynamic", "count": 2}},
    "moving": {"record_key": ["id"], "bucket": {"mode": "key_dynamic", "count": 2}},
}


@pytest.mark.parametrize("kind", KINDS)
def test_incremental_rows_of_every_kind_equal_the_last_of_the_feed(client, service, kind, monkeypatch):
    path = keyed_history(client, service, seed=8, writes=4, **KINDS[kind])
    client.post(f"{path}/compactions")
    service.work()
    feed_changes = client.get(f"{path}/changes", params={"limit": 10_000}).json()["changes"]
    assert feed_changes
    key = KINDS[kind].get("record_key", ["region", "id"])
    # Then with a task for each share of the buckets.
    for since, part_bytes in ((0, 2**24), (len(feed_changes) // 2, 2**24), (0, 1)):
        monkeypatch.setattr(tasks, "_PART_BYTES", part_bytes)
        last = {tuple(each["row"][name] for name in key): each for each in feed_changes[since:]}
        rows = [each["row"] for each in last.values() if each["op"] != "-R"]
        for region in (None, "us"):
            more = {} if region is None else {"partitions": [f"region={region}"]}
            run = exported(client, service, path, query="incremental", format="ndjson", since=since, **more)
            lines = b"".join(contents(client, run)).splitlines()
            expected = [row for row in rows if region in (None, row["region"])]
            assert sorted(map(json.loads, lines), key=repr) == sorted(expected, key=repr)


@share(2)
@pytest.mark.parametrize(
    ("producer", "table_type"),
    [("input", "copy_on_write"), ("input", "merge_on_read"), ("deferred", "merge_on_read")],
)
def test_incremental_rows_are_those_of_the_table_whatever_the_feed_has(client, service, producer, table_type):
    """Late rows lose and nulls keep what was there: rows as they were sent are not the rows of the table."""
    changelog = {"producer": producer}
    body = {
        **KEYED,
        "merge_mode": "partial",
        "ordering_field": "at",
        "table_type": table_type,
        "changelog": changelog,
    }
    path = client.post("/datasets", json=body).headers["location"]
    random_ = random.Random(4)
    compacts = table_type == "merge_on_read"
    ends = [(0, 0)]
    for number in range(4):
        rows = [
            row(random_, "eu", number + at) | {"at": f"2026-03-0{random_.randint(1, 9)}T10:00:00Z"}
            for at in range(4)
        ]
        write(client, service, path, upsert(*rows))
        if compacts and number % 2:
            client.post(f"{path}/compactions")
            service.work()
        if producer == "input" or number % 2:
            # Here the feed has the changes up to this version.
            dataset = client.get(path).json()
            ends.append((dataset["next_offset"], dataset["version"]))
    sent = {json.dumps(each["row"]) for each in client.get(f"{path}/changes").json()["changes"]}
    assert producer == "deferred" or any(json.dumps(each) not in sent for each in table_rows(client, path))
    for (since, begin), (end, version) in combinations(ends, 2):
        rows = table_rows(client, path, version=version, meta=True)
        expected = [
            {name: each[name] for name in each if not name.startswith("_hw_")}
            for each in rows
            if int(each["_hw_commit_seqno"].split("-")[0]) > begin
        ]
        run = exported(client, service, path, query="incremental", format="ndjson", since=since, until=end)
        lines = b"".join(contents(client, run)).splitlines()
        assert by_key(map(json.loads, lines)) == by_key(expected)


def test_export_of_an_expired_version_has_the_rows_of_the_next_that_is_kept(client, service):
    path = client.post("/datasets", json={**KEYED, "changelog": {"producer": "input"}}).headers["location"]
    for number in (1, 2, 3):
        write(client, service, path, upsert(*[row(random.Random(number), "eu", at) for at in range(number)]))
    assert client.post(f"{path}/cleans", json={"versions": 1}).status_code == 202
    service.work()
    assert client.get(f"{path}/rows", params={"version": 2}).status_code == 410
    run = exported(client, service, path, query="incremental", format="ndjson", since=1, until=3)
    lines = b"".join(contents(client, run)).splitlines()
    assert by_key(map(json.loads, lines)) == by_key(table_rows(client, path))


@pytest.mark.parametrize(
    ("format_", "media_type"),
    [("parquet", "application/vnd.apache.parquet"), ("csv", "text/csv"), ("ndjson", NDJSON)],
)
def test_exported_rows_can_be_written_to_another_dataset(sales, service, format_, media_type):
    client, path = sales
    run = exported(client, service, path, query="incremental", format=format_)
    twin = client.post("/datasets", json={**KEYED, "name": f"twin_{format_}"}).headers["location"]
    for file in contents(client, run):
        answer = client.post(
            f"{twin}/writes?operation=upsert", content=file, headers={"Content-Type": media_type}
        )
        assert answer.status_code == 202, answer.text
        service.work()
        job = client.get(answer.headers["location"]).json()
        assert job["state"] == "succeeded", job
    assert by_key(table_rows(client, twin)) == by_key(table_rows(client, path))


def test_keyless_incremental_rows_are_those_not_retracted(client, service, small_steps):
    fields = [{"name": "n", "type": "int64"}, {"name": "what", "type": "string"}]
    path = client.post("/datasets", json={"name": "log", "schema": {"fields": fields}}).headers["location"]
    positions = [0]
    for first in (0, 10):
        rows = [{"n": first + at, "what": "xy"[at % 2]} for at in range(6)]
        write(client, service, path, {"operation": "insert", "source": {"kind": "rows", "rows": rows}})
        where = f"what = 'x' AND n >= {first - 8} AND n < {first + 3}"
        write(client, service, path, {"operation": "delete", "where": where})
        positions.append(until(client, path))
    feed_changes = client.get(f"{path}/changes", params={"limit": 10_000}).json()["changes"]
    for since in positions:
        for end in positions:
            if end < since:
                continue
            gone = Counter(
                each["row"]["n"]
                for each in feed_changes
                if since <= each["offset"] < end and each["op"] == "-R"
            )
            expected = [
                each["row"]
                for each in feed_changes
                if since <= each["offset"] < end and each["op"] == "+A" and not gone[each["row"]["n"]]
            ]
            run = exported(
                client, service, path, query="incremental", format="ndjson", since=since, until=end
            )
            lines = b"".join(contents(client, run)).splitlines()
            assert sorted(map(json.loads, lines), key=repr) == sorted(expected, key=repr)


def test_rows_of_earlier_schemas_are_exported_under_the_latest(client, service, orders):
    write(client, service, orders, upsert({"id": 1, "note": "a"}))
    change = {"changes": [{"kind": "add", "field": {"name": "more", "type": "int32"}}]}
    headers = {"If-Match": client.get(orders).headers["etag"]}
    answer = client.patch(orders, json=change, headers=headers)
    assert answer.status_code == 200, answer.text
    write(client, service, orders, upsert({"id": 2, "note": "b", "more": 5}))
    run = exported(client, service, orders, query="incremental", format="ndjson")
    lines = b"".join(contents(client, run)).splitlines()
    assert sorted(map(json.loads, lines), key=lambda row: row["id"]) == [
        {"id": 1, "note": "a", "more": None},
        {"id": 2, "note": "b", "more": 5},
    ]
    assert [field["name"] for field in run["schema"]["fields"]] == ["id", "note", "more"]
    assert (run["schema"]["id"], run["versions"]) == (2, {"first": 1, "last": 3})


def test_changed_keys_beyond_memory_are_spilled(sales, service, monkeypatch):
    client, path = sales
    gatherings = []
    gathering = export_handle.SpillBuffer

    def with_little_memory(hashes, **more):
        gatherings.append(gathering(hashes, **{**more, "memory_bytes": 64}))
        return gatherings[-1]

    monkeypatch.setattr(export_handle, "SpillBuffer", with_little_memory)
    run = exported(client, service, path, query="incremental", format="ndjson")
    assert any(each.spilled for each in gatherings)
    lines = b"".join(contents(client, run)).splitlines()
    assert by_key([json.loads(line) for line in lines]) == by_key(table_rows(client, path))
