"""Files, partitions and numbers of a table over HTTP, from Postgres alone."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from typing import Any

import httpx2
import pytest
from sqlalchemy import text

from app.access.tenants.repository.credentials import CredentialStore
from app.kernel.commit import small_files
from tests.support.http import ORDERS, problem
from tests.support.service import Service

Client = httpx2.Client
VISITS = {
    "name": "visits",
    "schema": {
        "fields": [
            {"name": "id", "type": "int64"},
            {"name": "day", "type": "date"},
            {"name": "who", "type": "string"},
        ]
    },
    "record_key": ["id", "day"],
    "partition_by": ["day"],
    "table_type": "merge_on_read",
    "target_bytes": 64 * 1024,
    "bucket": {"mode": "fixed", "count": 1},
    "services": {"compaction": None},
}


def write(
    client: Client, service: Service, path: str, *rows: dict[str, Any], operation: str = "upsert"
) -> None:
    body = {"operation": operation, "source": {"kind": "rows", "rows": list(rows)}}
    assert client.post(f"{path}/writes", json=body).status_code == 202
    service.work()


@pytest.fixture(autouse=True)
def files_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """No write rewrites small files."""
    monkeypatch.setattr(small_files, "_ROWS_MAX", 0)


@pytest.fixture
def visits(client: Client, service: Service) -> str:
    """The path of a table at version 3: two partitions, of which one has lost a row to a deletion vector."""
    answer = client.post("/datasets", json=VISITS)
    assert answer.status_code == 201, answer.text
    path: str = answer.headers["location"]
    first = [{"id": number, "day": "2026-11-20", "who": f"w{number}"} for number in range(4)]
    write(client, service, path, *first, {"id": 9, "day": "2026-11-21", "who": None})
    write(client, service, path, {"id": 5, "day": "2026-11-20", "who": "a\0b"})
    write(client, service, path, {"id": 0, "day": "2026-11-20"}, operation="delete")
    return path


def walk(client: Client, path: str, **params: Any) -> tuple[list[dict[str, Any]], set[int]]:
    """All items of a listing in pages of one, and the versions that its pages are of."""
    items, versions = [], set()
    while True:
        answer = client.get(path, params={"page_size": 1, **params})
        assert answer.status_code == 200, answer.text
        page = answer.json()
        items += page["items"]
        versions.add(page["version"])
        if page["next_page_token"] is None:
            return items, versions
        params["page_token"] = page["next_page_token"]


def test_files_partitions_and_statistics_have_equal_sums(client: Client, visits: str) -> None:
    files, versions = walk(client, f"{visits}/files")
    partitions, _ = walk(client, f"{visits}/partitions")
    found = client.get(f"{visits}/statistics").json()
    assert versions == {found["version"]} == {3}
    assert sum(file["live_rows"] for file in files) == sum(each["rows"] for each in partitions)
    assert found["rows"] == {
        "live": len(client.get(f"{visits}/rows").json()["rows"]),
        "exact": True,
        "deleted": 1,
        "deleted_ratio": pytest.approx(1 / 6),
        "in_logs": 0,
        "postponed": 0,
    }
    assert found["rows"]["live"] == sum(each["rows"] for each in partitions) == 5
    assert len(files) == found["files"]["base"] == sum(each["base_files"] for each in partitions) == 3
    sizes = sum(file["size_bytes"] for file in files)
    assert sizes == found["size_bytes"]["base"] == sum(each["size_bytes"] for each in partitions)
    assert sizes == sum(each["size_bytes"] for each in found["files"]["sizes"])
    assert (found["partitions"], found["file_groups"], found["files"]["small"]) == (2, 2, 3)


def test_file_listing_has_deletes_statistics_and_kinds(client: Client, visits: str) -> None:
    files, _ = walk(client, f"{visits}/files", statistics=True, partition="day=2026-11-20")
    assert {file["partition"] for file in files} == {"day=2026-11-20"}
    marked, whole = sorted(files, key=lambda file: file["live_rows"] == file["rows"])
    assert (marked["rows"], marked["live_rows"], marked["added_version"], marked["written_version"]) == (
        4,
        3,
        3,
        1,
    )
    assert (whole["rows"], whole["added_version"], whole["kind"], whole["index"]) == (1, 2, "base", None)
    assert marked["statistics"]["id"] == {"minimum": 0, "maximum": 3, "null_count": 0}
    assert whole["statistics"]["who"] == {"minimum": "a\0b", "maximum": "a\0b", "null_count": 0}
    named = client.get(f"{visits}/rows", params={"meta": True}).json()["rows"]
    assert {row["_hw_file_name"] for row in named} >= {marked["name"], whole["name"]}
    assert walk(client, f"{visits}/files", kind="log") == ([], {3})
    assert client.get(f"{visits}/files").json()["items"][0]["statistics"] is None


@pytest.mark.parametrize(
    ("where", "read"),
    [
        ("id = 2", {(4, True), (1, False), (1, False)}),
        ("day = DATE '2026-11-21'", {(4, False), (1, False), (1, True)}),
        ("who IS NULL", {(4, False), (1, False), (1, True)}),
        ("id < 0", {(4, False), (1, False)}),
        ("id >= 0", {(4, True), (1, True)}),
    ],
)
def test_files_that_a_filter_would_read_are_marked(
    client: Client, visits: str, where: str, read: set[tuple[int, bool]]
) -> None:
    files, _ = walk(client, f"{visits}/files", where=where)
    assert {(file["rows"], file["read"]) for file in files} == read
    assert {file["read"] for file in walk(client, f"{visits}/files")[0]} == {None}


def test_a_file_with_logs_is_read_if_its_partition_may_match(
    client: Client, service: Service, visits: str
) -> None:
    """What a log changes is known after the merge, so statistics of base files decide nothing."""
    path = client.post(
        "/datasets", json=VISITS | {"name": "logged", "changelog": {"producer": "deferred"}}
    ).headers["location"]
    write(client, service, path, {"id": 1, "day": "2026-11-20", "who": "a"})
    write(client, service, path, {"id": 1, "day": "2026-11-20", "who": "b"})
    files, _ = walk(client, f"{path}/files", where="who = 'b'")
    kinds = sorted((file["kind"], file["read"]) for file in files)
    assert ("log", True) in kinds
    assert all(read for _, read in kinds)
    other, _ = walk(client, f"{path}/files", where="day = DATE '2026-11-21'")
    assert {file["read"] for file in other} == {False}


def test_filter_of_files_is_checked(client: Client, visits: str) -> None:
    problem(client.get(f"{visits}/files", params={"where": "none = 1"}), 400, "invalid-filter")


def test_partition_listing_has_values_and_sums(client: Client, visits: str) -> None:
    partitions, _ = walk(client, f"{visits}/partitions")
    assert [(each["path"], each["values"], each["rows"]) for each in partitions] == [
        ("day=2026-11-20", {"day": "2026-11-20"}, 4),
        ("day=2026-11-21", {"day": "2026-11-21"}, 1),
    ]
    assert [(each["written_version"], each["exact"], each["done_at"]) for each in partitions] == [
        (3, True, None),
        (1, True, None),
    ]
    commits = client.get(f"{visits}/timeline").json()["items"]
    assert [each["written_at"] for each in partitions] == [
        commits[0]["completed_at"],
        commits[2]["completed_at"],
    ]


def test_listing_keeps_its_version_and_earlier_versions_are_listed(
    client: Client, visits: str, service: Service
) -> None:
    before, _ = walk(client, f"{visits}/files")
    first = client.get(f"{visits}/files", params={"page_size": 1}).json()
    write(client, service, visits, {"id": 1, "day": "2026-11-22", "who": "new"})
    rest, versions = walk(client, f"{visits}/files", page_token=first["next_page_token"])
    assert (first["items"] + rest, versions) == (before, {3})
    assert walk(client, f"{visits}/files", version=3) == (before, {3})
    assert walk(client, f"{visits}/files", version=0) == ([], {0})
    assert walk(client, f"{visits}/partitions", version=2)[0][0]["rows"] == 5
    time = client.get(f"{visits}/timeline").json()["items"][-1]["completed_at"]
    assert walk(client, f"{visits}/files", as_of=time)[1] == {1}
    token = {"version": 2, "page_token": first["next_page_token"]}
    assert problem(client.get(f"{visits}/files", params=token), 400, "invalid-request")["errors"] == [
        {
            "pointer": "/page_token",
            "detail": "expected next_page_token of the page before, with the same version",
        }
    ]
    other = {"kind": "base", "page_token": first["next_page_token"]}
    problem(client.get(f"{visits}/files", params=other), 400, "invalid-request")
    assert "parquet" not in str(urlsafe_b64decode(first["next_page_token"] + "=="))
    for bad in ({"version": 99}, {"page_token": "bm9uZQ"}, {"kind": "other"}, {"tag": "a", "version": 1}):
        problem(client.get(f"{visits}/files", params=bad), 400, "invalid-request")
    problem(client.get(f"{visits}/partitions", params={"tag": "none"}), 404, "not-found")


def test_expired_versions_are_not_listed(client: Client, visits: str, service: Service) -> None:
    first = client.get(f"{visits}/files", params={"version": 1, "page_size": 1}).json()
    principal = CredentialStore(service.database).authenticate(client.headers["authorization"].split()[1])
    assert principal is not None
    with service.database.tenant(principal.tenant_id) as connection:
        connection.execute(text("UPDATE heads SET earliest_version = 2"))
    for params in ({"version": 1}, {"page_token": first["next_page_token"]}):
        members = problem(client.get(f"{visits}/files", params=params), 410, "version-expired")
        assert members["earliest"] == 2
    problem(client.get(f"{visits}/partitions", params={"version": 0}), 410, "version-expired")
    assert walk(client, f"{visits}/files", version=2)[1] == {2}
    assert client.get(f"{visits}/statistics").json()["versions"]["earliest"] == 2


def test_column_statistics_are_returned_on_request(client: Client, visits: str) -> None:
    assert client.get(f"{visits}/statistics").json()["columns"] == []
    found = client.get(f"{visits}/statistics", params={"columns": "who,day"}).json()["columns"]
    never = {"distinct_count": None, "analyzed_version": None}
    assert found == [
        {"name": "who", "minimum": "a\0b", "maximum": "w3", "null_count": 1, **never},
        {"name": "day", "minimum": "2026-11-20", "maximum": "2026-11-21", "null_count": 0, **never},
    ]
    members = problem(client.get(f"{visits}/statistics", params={"columns": "wh"}), 400, "invalid-request")
    assert members["errors"][0]["pointer"] == "/columns"


def test_statistics_include_written_bytes_and_consumer_lag(
    client: Client, visits: str, service: Service
) -> None:
    made = client.put(f"{visits}/consumers/slow", json={"offset": 2}, headers={"If-None-Match": "*"})
    assert made.status_code == 201, made.text
    client.post(f"{visits}/writes", json={"operation": "delete_partition", "partitions": ["day=2026-11-21"]})
    found = client.get(f"{visits}/statistics").json()
    assert found["jobs"] == {"queued": 1, "running": 0}
    assert found["consumers"] == {"count": 1, "lag": 5}
    assert found["changelog"] == {"changes": 7, "earliest_offset": 0, "next_offset": 7, "files": 4}
    assert found["versions"] == {"earliest": 0, "latest": 3, "commits": {"commit": 3}}
    assert found["served_at"] == {"compaction": None, "clustering": None, "clean": None}
    timeline = client.get(f"{visits}/timeline").json()["items"]
    assert found["size_bytes"]["written"] == sum(each["bytes_added"] for each in timeline)
    assert found["size_bytes"]["write_amplification"] == 1.0
    assert found["size_bytes"]["deletion_vectors"] > 0
    service.work()
    after = client.get(f"{visits}/statistics").json()
    assert after["size_bytes"]["write_amplification"] > 1.0
    assert (after["partitions"], after["rows"]["live"], after["committed_at"] > found["committed_at"]) == (
        1,
        4,
        True,
    )


def test_empty_table_has_empty_listings(client: Client, orders: str) -> None:
    assert walk(client, f"{orders}/files") == walk(client, f"{orders}/partitions") == ([], {0})
    found = client.get(f"{orders}/statistics", params={"columns": "id"}).json()
    assert (found["rows"]["live"], found["rows"]["deleted_ratio"], found["consumers"]["lag"]) == (
        0,
        0.0,
        None,
    )
    assert (found["size_bytes"]["write_amplification"], found["committed_at"]) == (None, None)
    [column] = found["columns"]
    assert (column["name"], column["minimum"], column["maximum"], column["null_count"]) == (
        "id",
        None,
        None,
        0,
    )


def test_timeline_is_filtered_by_time_action_and_state(client: Client, visits: str) -> None:
    items = client.get(f"{visits}/timeline").json()["items"]
    middle = items[1]["requested_at"]
    for params, places in (
        ({"since_time": middle}, [0, 1]),
        ({"until_time": middle}, [2]),
        ({"action": "compaction"}, []),
        ({"action": ["commit", "clean"], "state": "completed"}, [0, 1, 2]),
        ({"state": ["requested", "inflight"]}, []),
    ):
        found = client.get(f"{visits}/timeline", params=params).json()["items"]
        assert found == [items[place] for place in places]
    for bad in ({"action": "write"}, {"state": "done"}, {"since_time": "yesterday"}, {"since": middle}):
        problem(client.get(f"{visits}/timeline", params=bad), 400, "invalid-request")


def test_timeline_entries_have_metadata_and_lineage(client: Client, visits: str, service: Service) -> None:
    """Of each attempt: what it did, who requested it and with what, when, what it brought, and where that came from."""
    client.post("/datasets", json=ORDERS)
    row = {"id": 7, "day": "2026-11-21", "who": "batch"}
    source = {"source": {"kind": "rows", "rows": [row]}}
    batch = {"operation": "upsert", **source, "on_error": "quarantine", "writer_id": "spark-1", "batch_id": 3}
    job = client.post(f"{visits}/writes", json=batch).json()
    writes = [
        {"dataset": "visits", "operation": "delete", **source},
        {"dataset": "orders", "operation": "upsert", "source": {"kind": "rows", "rows": [{"id": 1}]}},
    ]
    transaction = client.post("/transactions", json={"writes": writes}).json()
    client.post(f"{visits}/writes", json={"operation": "upsert", **source, "expected_version": 3})
    [waiting, *_] = client.get(f"{visits}/timeline", params={"state": "requested"}).json()["items"]
    assert (waiting["started_at"], waiting["completed_at"], waiting["version"]) == (None, None, None)
    service.work()
    failed, deleted, written = client.get(client.get(visits).json()["links"]["timeline"]).json()["items"][:3]
    assert (written["action"], written["operation"], written["state"]) == ("commit", "upsert", "completed")
    assert (written["job_id"], written["actor"]) == (job["id"], job["actor"])
    assert (written["writer_id"], written["batch_id"]) == ("spark-1", 3)
    assert written["parameters"] == {"on_error": "quarantine"}
    assert written["requested_at"] < written["started_at"] < written["completed_at"]
    assert (written["version"], written["schema_id"], written["rows"]["inserted"]) == (4, 1, 1)
    assert (written["files_added"], written["files_removed"], written["bytes_removed"]) == (1, 0, 0)
    files = client.get(f"{visits}/files", params={"version": 4}).json()["items"]
    [new] = [each for each in files if each["written_version"] == 4]
    assert (new["size_bytes"], new["schema_id"]) == (written["bytes_added"], written["schema_id"])
    assert (written["first_offset"], written["last_offset"], written["transaction_id"]) == (7, 7, None)
    assert (deleted["transaction_id"], deleted["version"]) == (transaction["id"], 5)
    assert (failed["state"], failed["version"], failed["error"]["type"]) == (
        "rolled_back",
        None,
        "/problems/commit-conflict",
    )


def test_failed_instant_has_its_error(client: Client, orders: str, service: Service) -> None:
    body = {"operation": "insert", "source": {"kind": "rows", "rows": [{"id": 1}]}, "expected_version": 1}
    client.post(f"{orders}/writes", json=body)
    service.work()
    [entry] = client.get(f"{orders}/timeline").json()["items"]
    assert (entry["state"], entry["error"]["type"]) == ("rolled_back", "/problems/commit-conflict")
    assert entry["parameters"] == {"expected_version": 1}
    assert (entry["bytes_removed"], entry["writer_id"], entry["transaction_id"]) == (0, None, None)


@pytest.mark.parametrize("part", ["timeline", "files", "partitions", "statistics"])
def test_overview_of_another_tenant_is_not_found(new_client: Any, visits: str, part: str) -> None:
    stranger = new_client()
    assert stranger.post("/datasets", json=ORDERS).status_code == 201
    problem(stranger.get(f"{visits}/{part}"), 404, "not-found")
