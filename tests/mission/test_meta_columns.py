"""Read jobs and exports return the five meta columns of rows, as pages of rows do, in every format and for every kind
of table.
"""

from __future__ import annotations

import io
import json
from itertools import count

import pyarrow.parquet as pq
import pytest

from tests.support.exports import contents, exported, tables
from tests.support.http import problem

_numbers = count(1)
META = ["_hw_commit_time", "_hw_commit_seqno", "_hw_record_key", "_hw_partition_path", "_hw_file_name"]
FIELDS = [
    {"name": "day", "type": "string", "nullable": False},
    {"name": "id", "type": "int64", "nullable": False},
    {"name": "note", "type": "string"},
]
KEYED = {"record_key": ["day", "id"], "partition_by": ["day"]}
KINDS = {
    "copy_on_write": {**KEYED, "table_type": "copy_on_write"},
    "merge_on_read": {**KEYED, "table_type": "merge_on_read"},
    "logs": {**KEYED, "table_type": "merge_on_read", "changelog": {"producer": "input"}},
    "key_dynamic": {"record_key": ["id"], "partition_by": ["day"], "bucket": {"mode": "key_dynamic"}},
    "appends": {"partition_by": ["day"]},
}
HISTORY = [
    [("a", 1, "x"), ("a", 2, "x"), ("b", 3, "x")],
    [("a", 1, "y"), ("c", 4, "x")],
    [("a", 5, "x"), ("b", 3, "y")],
]


@pytest.fixture(params=KINDS)
def table(client, service, request):
    """A dataset with three versions."""
    definition = {"name": f"t{next(_numbers)}", "schema": {"fields": FIELDS}, **KINDS[request.param]}
    answer = client.post("/datasets", json=definition)
    assert answer.status_code == 201, answer.text
    path = answer.headers["location"]
    operation = "upsert" if "record_key" in definition else "insert"
    for write in HISTORY:
        rows = [dict(zip(("day", "id", "note"), row, strict=True)) for row in write]
        body = {"operation": operation, "source": {"kind": "rows", "rows": rows}}
        assert client.post(f"{path}/writes", json=body).status_code == 202
        service.work()
    return path


@pytest.fixture
def read(client, service, table):
    def run(**query):
        answer = client.post(f"{table}/reads", json=query)
        assert answer.status_code == 202, answer.text
        service.work()
        job = client.get(answer.headers["location"]).json()
        assert job["state"] == "succeeded", job
        result = client.get(f"{answer.headers['location']}/result")
        assert result.status_code == 200, result.text
        return result

    return run


def ordered(rows):
    return sorted(rows, key=lambda row: json.dumps(row, default=str))


def pages(client, table, **query):
    return ordered(client.get(f"{table}/rows", params={"meta": "true", **query}).json()["rows"])


def test_read_job_has_the_meta_columns_of_pages(client, table, read):
    expected = pages(client, table)
    assert list(expected[0]) == ["day", "id", "note", *META]
    result = read(meta=True).json()
    assert ordered(result["rows"]) == expected
    assert [field["name"] for field in result["schema"]["fields"]][3:] == META
    parquet = pq.read_table(io.BytesIO(read(meta=True, format="parquet").content))
    assert parquet.column_names == ["day", "id", "note", *META]
    assert parquet.column("_hw_commit_time").null_count == 0
    assert sorted(parquet.column("_hw_commit_seqno").to_pylist()) == sorted(
        row["_hw_commit_seqno"] for row in expected
    )
    csv = read(meta=True, format="csv").text.splitlines()
    assert (csv[0].replace('"', "").split(",")[3:], len(csv)) == (META, len(expected) + 1)
    assert ordered(read(version=1, meta=True).json()["rows"]) == pages(client, table, version=1)


def test_meta_columns_follow_the_selected_columns_and_the_order(client, table, read):
    wanted = {"columns": ["note"], "where": "id > 1", "order_by": [{"column": "id", "descending": True}]}
    result = read(meta=True, **wanted).json()
    expected = pages(client, table, columns="id,note", where="id > 1")
    assert [list(row) for row in result["rows"]] == [["note", *META]] * len(expected)
    by_id = sorted(expected, key=lambda row: -row["id"])
    assert sorted(row["_hw_commit_seqno"] for row in result["rows"]) == sorted(
        row["_hw_commit_seqno"] for row in by_id
    )
    if len({row["id"] for row in by_id}) == len(by_id):
        assert [row["_hw_commit_seqno"] for row in result["rows"]] == [
            row["_hw_commit_seqno"] for row in by_id
        ]


def test_incremental_read_has_the_meta_columns_of_the_rows_that_changed(client, table, read):
    since = [row for row in pages(client, table) if int(row["_hw_commit_seqno"].partition("-")[0]) > 1]
    result = read(query="incremental", begin=1, meta=True).json()
    assert ordered(result["rows"]) == since
    plain = read(query="incremental", begin=1).json()["rows"]
    assert ordered(plain) == ordered({name: row[name] for name in ("day", "id", "note")} for row in since)


@pytest.fixture
def export(client, service, table):
    """Exports rows; returns its only run and the contents of the files."""

    def run(**definition):
        found = exported(client, service, table, query="incremental", meta=True, **definition)
        assert client.get(found["links"]["export"]).json()["meta"] is True
        return found, contents(client, found)

    return run


def test_export_has_the_meta_columns_of_pages(client, table, export):
    expected = pages(client, table)
    run, files = export(format="ndjson")
    assert ordered(json.loads(line) for file in files for line in file.splitlines()) == expected
    assert [field["name"] for field in run["schema"]["fields"]][3:] == META
    sequence = sorted(row["_hw_commit_seqno"] for row in expected)
    for format_ in ("parquet", "arrow"):
        parts = tables(format_, export(format=format_)[1])
        for part in parts:
            assert part.column_names == ["day", "id", "note", *META]
            assert part.column("_hw_commit_time").null_count == 0
        rows = [row for part in parts for row in part.to_pylist()]
        assert sorted(row["_hw_commit_seqno"] for row in rows) == sequence
    lines = [line for file in export(format="csv")[1] for line in file.decode().splitlines()]
    headers = [line for line in lines if "_hw_commit_time" in line]
    assert headers[0].replace('"', "").split(",")[3:] == META
    assert len(lines) - len(headers) == len(expected)


def test_export_of_a_range_has_the_meta_columns_of_the_rows_that_changed(client, table, export):
    changed = [row for row in pages(client, table) if int(row["_hw_commit_seqno"].partition("-")[0]) > 1]
    _, files = export(format="ndjson", since_version=2, columns=["note"], where="id > 1")
    rows = [json.loads(line) for file in files for line in file.splitlines()]
    assert all(list(row) == ["note", *META] for row in rows)
    assert sorted(row["_hw_commit_seqno"] for row in rows) == sorted(
        row["_hw_commit_seqno"] for row in changed if row["id"] > 1
    )


def test_export_of_changes_has_no_meta_columns(client, orders):
    body = {"query": "changes", "format": "ndjson", "meta": True}
    refused = problem(client.post(f"{orders}/exports", json=body), 400, "invalid-request")
    assert [each["pointer"] for each in refused["errors"]] == ["/meta"]
