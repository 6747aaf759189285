"""Read jobs and exports of an earlier version mark the rows that were corrected since, as pages of rows do."""

from __future__ import annotations

import io
import json

import pyarrow.parquet as pq
import pytest

from app.features.retention.repository.feed import RetentionStore
from tests.support.exports import contents, exported, tables
from tests.support.http import ORDERS, problem, upsert

MARKS = ["_hw_corrected_by", "_hw_corrected_version"]


def write(client, service, path, body):
    answer = client.post(f"{path}/writes", json=body)
    assert answer.status_code == 202, answer.text
    service.work()


@pytest.fixture(params=["copy_on_write", "merge_on_read"])
def table(client, service, request):
    """Version 1 has four rows. Version 2 corrects the first and the second, version 3 the first again, and version 4
    deletes the third.
    """
    answer = client.post("/datasets", json={**ORDERS, "table_type": request.param})
    assert answer.status_code == 201, answer.text
    path = answer.headers["location"]
    write(client, service, path, upsert(*({"id": number, "note": "a"} for number in range(1, 5))))
    write(client, service, path, upsert({"id": 1, "note": "b"}, {"id": 2, "note": "b"}))
    write(client, service, path, upsert({"id": 1, "note": "c"}))
    rows = {"kind": "rows", "rows": [{"id": 3}]}
    write(client, service, path, {"operation": "delete", "source": rows})
    return path


@pytest.fixture
def read(client, service, table):
    def run(**query):
        answer = client.post(f"{table}/reads", json={"corrected_since": True, **query})
        assert answer.status_code == 202, answer.text
        service.work()
        result = client.get(f"{answer.headers['location']}/result")
        assert result.status_code == 200, result.text
        return result

    return run


def ordered(rows):
    return sorted(rows, key=json.dumps)


def pages(client, table, **query):
    found = client.get(f"{table}/rows", params={"corrected_since": "true", **query}).json()["rows"]
    return ordered(found)


def versions(rows):
    return {row["id"]: row["_hw_corrected_version"] for row in rows}


def test_read_job_marks_the_rows_that_pages_mark(client, table, read):
    result = read(version=1).json()
    assert versions(result["rows"]) == {1: 2, 2: 2, 3: 4, 4: None}
    for version in (1, 2, 3, 4):
        assert ordered(read(version=version).json()["rows"]) == pages(client, table, version=version)
    both = ordered(read(version=1, meta=True).json()["rows"])
    assert both == pages(client, table, version=1, meta="true")
    assert [field["name"] for field in result["schema"]["fields"]][-2:] == MARKS
    assert [field["type"] for field in result["schema"]["fields"]][-2:] == ["int64", "int64"]
    parquet = pq.read_table(io.BytesIO(read(version=1, format="parquet").content))
    assert parquet.column_names[-2:] == MARKS
    assert versions(parquet.to_pylist()) == {1: 2, 2: 2, 3: 4, 4: None}
    header = read(version=1, format="csv").text.splitlines()[0]
    assert header.replace('"', "").split(",")[-2:] == MARKS


def test_marks_follow_the_selected_columns_and_the_order(table, read):
    order = [{"column": "id", "descending": True}]
    rows = read(version=1, columns=["note"], where="id > 1", order_by=order).json()["rows"]
    assert [list(row) for row in rows] == [["note", *MARKS]] * 3
    assert [row["_hw_corrected_version"] for row in rows] == [None, 4, 2]


def test_incremental_read_marks_the_rows_that_changed(table, read):
    rows = read(query="incremental", begin=1, end=2).json()["rows"]
    assert versions(rows) == {1: 3, 2: None}


def test_waiting_read_keeps_the_changes_that_correct_its_rows(client, service, table):
    expected = pages(client, table, version=1)
    waiting = client.post(f"{table}/reads", json={"version": 1, "corrected_since": True})
    assert waiting.status_code == 202, waiting.text
    etag = client.get(table).headers["etag"]
    body = {"changelog": {"retention": {"changes": 1}}}
    assert client.patch(table, json=body, headers={"If-Match": etag}).status_code == 200
    store, dataset = RetentionStore(service.database), client.get(table).json()
    tenant_id = client.get("/me").json()["tenant"]["id"]
    store.cut(tenant_id, dataset["id"], follower_lag_seconds=3600)
    store.expire_files(tenant_id, dataset["id"], 1_000)
    service.work()
    result = client.get(f"{waiting.headers['location']}/result").json()
    assert ordered(result["rows"]) == expected
    store.cut(tenant_id, dataset["id"], follower_lag_seconds=3600)
    refused = client.post(f"{table}/reads", json={"version": 1, "corrected_since": True})
    problem(refused, 410, "offset-expired")


def test_export_marks_the_rows_that_pages_mark(client, service, table):
    # The feed has four changes at version 1.
    wanted = {"query": "incremental", "corrected_since": True, "until": 4}
    run = exported(client, service, table, format="ndjson", **wanted)
    rows = [json.loads(line) for file in contents(client, run) for line in file.splitlines()]
    assert ordered(rows) == pages(client, table, version=1)
    assert [field["name"] for field in run["schema"]["fields"]][-2:] == MARKS
    for format_ in ("parquet", "arrow"):
        run = exported(client, service, table, format=format_, meta=True, **wanted)
        found = [row for part in tables(format_, contents(client, run)) for row in part.to_pylist()]
        assert versions(found) == {1: 2, 2: 2, 3: 4, 4: None}
        assert all(list(row)[-2:] == MARKS for row in found)


def test_feed_without_corrections_is_refused(client, service):
    definition = {**ORDERS, "name": "inputs", "changelog": {"producer": "input"}}
    path = client.post("/datasets", json=definition).headers["location"]
    write(client, service, path, upsert({"id": 1, "note": "a"}))
    refused = problem(client.post(f"{path}/reads", json={"corrected_since": True}), 400, "invalid-request")
    assert "expected full" in refused["detail"]
    body = {"query": "incremental", "format": "csv", "corrected_since": True}
    problem(client.post(f"{path}/exports", json=body), 400, "invalid-request")


def test_export_of_changes_has_no_marks(client, orders):
    body = {"query": "changes", "format": "ndjson", "corrected_since": True}
    refused = problem(client.post(f"{orders}/exports", json=body), 400, "invalid-request")
    assert [each["pointer"] for each in refused["errors"]] == ["/corrected_since"]
