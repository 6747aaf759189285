"""Every way to write, over HTTP: what it leaves in the table, in the feed and in the counts of its job."""

from __future__ import annotations

import json
from itertools import count

import pytest

from tests.support.http import problem

_numbers = count(1)
FIELDS = [
    {"name": "day", "type": "string", "nullable": False},
    {"name": "id", "type": "int64", "nullable": False},
    {"name": "note", "type": "string"},
]
KEYED = {"record_key": ["day", "id"], "partition_by": ["day"], "bucket": {"count": 2}}
APPENDS = {"partition_by": ["day"]}
NDJSON = {"Content-Type": "application/x-ndjson"}


def row(day, number, note="old"):
    return {"day": day, "id": number, "note": note}


BEFORE = [row("a", 1), row("a", 2), row("b", 1), row("b", 2)]


class Written:
    """A dataset that tests write and read."""

    def __init__(self, client, service, settings):
        answer = client.post(
            "/datasets", json={"name": f"t{next(_numbers)}", "schema": {"fields": FIELDS}, **settings}
        )
        assert answer.status_code == 201, answer.text
        self.client, self.service, self.path = client, service, answer.headers["location"]
        self.keyed = bool(settings.get("record_key"))

    def send(self, operation, rows=None, **members):
        body = {"operation": operation, **members}
        if rows is not None:
            body["source"] = {"kind": "rows", "rows": rows}
        return self.client.post(f"{self.path}/writes", json=body)

    def write(self, operation, rows=None, **members):
        """The counts of a write that succeeds, without zeros."""
        answer = self.send(operation, rows, **members)
        assert answer.status_code == 202, answer.text
        self.service.work()
        job = self.client.get(answer.headers["location"]).json()
        assert job["state"] == "succeeded", job
        return {name: number for name, number in job["rows"].items() if number}

    def failed(self, operation, rows=None, **members):
        """The problem of a write that was accepted and failed."""
        answer = self.send(operation, rows, **members)
        assert answer.status_code == 202, answer.text
        self.service.work()
        job = self.client.get(answer.headers["location"]).json()
        assert job["state"] == "failed", job
        return job["error"]

    @property
    def rows(self):
        return _ordered(self.client.get(f"{self.path}/rows").json()["rows"])

    @property
    def version(self):
        return self.client.get(self.path).json()["version"]

    def files(self, partition):
        """The files of a partition with rows, in the order of their commits."""
        items = self.client.get(f"{self.path}/files").json()["items"]
        own = [file for file in items if file["partition"] == partition and file["kind"] != "tombstone"]
        return sorted(own, key=lambda file: file["written_version"])

    def changes(self, since=0):
        found = self.client.get(f"{self.path}/changes", params={"since": since}).json()["changes"]
        return [(change["op"], change["row"]["day"], change["row"]["id"]) for change in found]

    def folded(self):
        """The table that the feed makes."""
        table = []
        for change in self.client.get(f"{self.path}/changes").json()["changes"]:
            if change["op"] in ("+A", "+C"):
                table.append(change["row"])
            else:
                table.remove(change["row"])
        return _ordered(table)


def _ordered(rows):
    return sorted(rows, key=lambda each: (each["day"], each["id"], str(each["note"])))


SETTINGS = {
    "copy_on_write": {**KEYED, "table_type": "copy_on_write"},
    "merge_on_read": KEYED,
    "key_dynamic": {"record_key": ["day", "id"], "partition_by": ["day"], "bucket": {"mode": "key_dynamic"}},
    "appends": APPENDS,
}


def written(client, service, name):
    found = Written(client, service, SETTINGS[name])
    found.write("upsert" if found.keyed else "insert", BEFORE)
    return found


@pytest.fixture(params=SETTINGS)
def table(client, service, request):
    """Four rows in two partitions."""
    found = written(client, service, request.param)
    yield found
    assert found.folded() == found.rows


@pytest.fixture
def keyed(client, service):
    return written(client, service, "copy_on_write")


@pytest.fixture
def appends(client, service):
    return written(client, service, "appends")


def test_overwrite_replaces_the_table(table):
    rows = [row("a", 1, "new"), row("c", 1)]
    counts = table.write("overwrite", rows)
    assert table.rows == rows
    assert sum(counts.values()) - counts["deleted"] == 2
    # A row that comes again is updated where it has a key; without one, it is another row.
    expected = {"updated": 1, "inserted": 1, "deleted": 3} if table.keyed else {"inserted": 2, "deleted": 4}
    assert counts == expected


@pytest.mark.parametrize("operation", ["overwrite", "snapshot"])
def test_keyless_replacement_removes_rows_from_files_of_earlier_writes(client, service, operation):
    table = Written(client, service, {**APPENDS, "table_type": "merge_on_read"})
    table.write("insert", BEFORE)
    table.write("insert", [row("a", 3)])
    table.write(operation, [row("a", 1), row("b", 3, "new")])
    assert table.rows == [row("a", 1), row("b", 3, "new")]
    assert table.folded() == table.rows


def test_overwrite_without_rows_empties_the_table(table):
    assert table.write("overwrite", []) == {"deleted": 4}
    assert table.rows == []
    assert table.write("overwrite", []) == {}
    assert table.version == 2


def test_mode_overwrite_replaces_the_table(table):
    table.write("insert", [row("c", 1)], mode="overwrite")
    assert table.rows == [row("c", 1)]


def test_overwrite_by_partitions_replaces_the_partitions_of_its_rows(table):
    table.write("overwrite", [row("a", 3), row("c", 1)], overwrite={"scope": "partitions"})
    assert table.rows == [row("a", 3), row("b", 1), row("b", 2), row("c", 1)]


def test_key_moved_by_an_overwrite_by_partitions_leaves_its_old_partition(client, service):
    settings = {"record_key": ["id"], "partition_by": ["day"], "bucket": {"mode": "key_dynamic"}}
    table = Written(client, service, settings)
    table.write("upsert", [row("a", 1), row("a", 2), row("b", 3), row("b", 4)])
    table.write("overwrite", [row("a", 3, "moved")], overwrite={"scope": "partitions"})
    assert table.rows == [row("a", 3, "moved"), row("b", 4)]
    assert table.folded() == table.rows


def test_overwrite_by_filter_replaces_the_matching_rows(table):
    where = {"scope": "filter", "where": "id = 1"}
    table.write("overwrite", [row("a", 1, "new"), row("c", 1)], overwrite=where)
    assert table.rows == _ordered([row("a", 1, "new"), row("a", 2), row("b", 2), row("c", 1)])


def test_rows_of_an_overwrite_by_filter_must_match_it(table):
    where = {"scope": "filter", "where": "id = 1"}
    error = table.failed("overwrite", [row("a", 1), row("c", 2)], overwrite=where)
    assert error["type"] == "/problems/invalid-request"
    assert [each["pointer"] for each in error["errors"]] == ["/source/rows/1"]
    assert table.rows == BEFORE


def test_snapshot_emits_only_the_difference(table):
    since = len(table.changes())
    counts = table.write("snapshot", [row("a", 1), row("a", 2, "new"), row("c", 1)])
    assert table.rows == [row("a", 1), row("a", 2, "new"), row("c", 1)]
    changes = sorted(table.changes(since))
    if table.keyed:
        assert counts == {"unchanged": 1, "updated": 1, "inserted": 1, "deleted": 2}
        appended, corrected = [("+A", "c", 1)], [("+C", "a", 2), ("-C", "a", 2)]
        assert changes == [*appended, *corrected, ("-R", "b", 1), ("-R", "b", 2)]
    else:
        assert counts == {"unchanged": 1, "inserted": 2, "deleted": 3}
        assert [op for op, _, _ in changes] == ["+A", "+A", "-R", "-R", "-R"]
    assert table.write("snapshot", [row("a", 1), row("a", 2, "new"), row("c", 1)]) == {"unchanged": 3}
    assert table.version == 2


def test_keyless_snapshot_counts_equal_rows(appends):
    appends.write("snapshot", [row("a", 1), row("a", 1), row("a", 1)])
    assert appends.rows == [row("a", 1)] * 3
    appends.write("snapshot", [row("a", 1)])
    assert appends.rows == [row("a", 1)]
    assert appends.folded() == appends.rows


def test_delete_by_filter_deletes_the_matching_rows(table):
    assert table.write("delete", where="id = 2") == {"deleted": 2}
    assert table.rows == [row("a", 1), row("b", 1)]
    assert table.write("delete", where="id = 2") == {}
    assert table.version == 2
    assert sorted(table.changes(4)) == [("-R", "a", 2), ("-R", "b", 2)]


def test_delete_partition_deletes_the_matching_partitions(table):
    table.write("upsert" if table.keyed else "insert", [row("bc", 1)])
    assert table.write("delete_partition", partitions=["day=b*"]) == {"deleted": 3}
    assert table.rows == [row("a", 1), row("a", 2)]
    assert table.write("delete_partition", partitions=["day=nowhere"]) == {}


def test_invalid_filter_is_refused_immediately(table):
    members = problem(table.send("delete", where="nope = 1"), 400, "invalid-filter")
    assert members["position"] == 0
    where = {"scope": "filter", "where": "id = 'x'"}
    problem(table.send("overwrite", [], overwrite=where), 400, "invalid-filter")


def test_error_if_exists_refuses_a_table_with_rows(table):
    error = table.failed("insert", [row("c", 1)], mode="error_if_exists")
    assert (error["type"], error["version"]) == ("/problems/data-exists", 1)
    table.write("overwrite", [])
    assert table.write("insert", [row("c", 1)], mode="error_if_exists") == {"inserted": 1}


def test_ignore_leaves_a_table_with_rows_unchanged(table):
    assert table.write("insert", [row("c", 1), row("c", 2)], mode="ignore") == {"unchanged": 2}
    assert (table.rows, table.version) == (BEFORE, 1)
    table.write("overwrite", [])
    assert table.write("insert", [row("c", 1)], mode="ignore") == {"inserted": 1}


def test_drop_duplicates_drops_inserts_of_live_keys(keyed):
    rows = [row("a", 1, "new"), row("c", 1)]
    assert keyed.failed("insert", rows)["type"] == "/problems/duplicate-key"
    assert keyed.write("insert", rows, drop_duplicates=True) == {"inserted": 1, "unchanged": 1}
    assert keyed.rows == [*BEFORE, row("c", 1)]


@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_write_that_does_not_combine_stores_every_row_as_sent(appends, operation):
    rows = [row("a", 1), row("a", 1), row("c", 1, None), row("c", 1, None)]
    assert appends.write(operation, rows, combine=False) == {"inserted": 4}
    assert appends.rows == appends.folded() == _ordered([*BEFORE, *rows])
    assert appends.changes(since=len(BEFORE)) == [("+A", each["day"], each["id"]) for each in rows]


@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_write_to_a_record_key_always_combines(keyed, operation):
    rows = [row("c", 1, "first"), row("c", 1, "second")]
    refused = problem(keyed.send(operation, rows, combine=False), 400, "invalid-request")
    [error] = refused["errors"]
    assert error["pointer"] == "/combine"
    assert "one row of each key" in error["detail"]
    assert keyed.write(operation, rows, combine=True) == {"inserted": 1, "unchanged": 1}
    assert keyed.rows == [*BEFORE, row("c", 1, "second")]


def test_bulk_insert_sorts_its_files_by_columns(table):
    rows = [row("c", number, note) for number, note in enumerate("zay", start=1)]
    assert table.write("bulk_insert", rows, sort_by=["note", "id"]) == {"inserted": 3}
    assert table.rows == table.folded() == _ordered([*BEFORE, *rows])
    files = table.files("day=c")
    assert {file["clustered"] for file in files} == {"linear"}
    assert sum(file["rows"] for file in files) == 3
    if len(files) == 1:
        stored = table.client.get(f"{table.path}/rows", params={"where": "day = 'c'"}).json()["rows"]
        assert [each["note"] for each in stored] == ["a", "y", "z"]
    assert sorted(table.changes(since=len(BEFORE))) == [("+A", "c", number) for number in (1, 2, 3)]


def test_raw_bulk_inserts_with_several_orders_commit_by_themselves(appends):
    for columns in ([], [], ["note", "id"], ["id"]):
        answer = appends.client.post(
            f"{appends.path}/writes",
            params={"operation": "bulk_insert", "sort_by": columns},
            content=json.dumps(row("c", 1)).encode(),
            headers=NDJSON,
        )
        assert answer.status_code == 202, answer.text
    appends.service.work()
    assert appends.version == 4
    assert [file["clustered"] for file in appends.files("day=c")] == [None, "linear", "linear"]
    assert appends.folded() == appends.rows


def test_bulk_insert_sorts_by_no_unknown_or_nested_column(client, service):
    fields = [*FIELDS, {"name": "tags", "type": "list<string>"}]
    table = Written(client, service, {"schema": {"fields": fields}})
    answer = table.send("bulk_insert", [row("a", 1)], sort_by=["note", "tags", "none", "note"])
    errors = problem(answer, 400, "invalid-request")["errors"]
    assert {error["pointer"]: error["detail"] for error in errors} == {
        "/sort_by/1": "'tags' is list<string>: lists, maps and structs have no order",
        "/sort_by/2": "there is no column 'none'",
        "/sort_by/3": "'note' is listed more than once",
    }


def test_bulk_insert_fails_if_its_column_is_dropped_before_it_runs(client, service):
    table = Written(client, service, APPENDS)
    answer = table.send("bulk_insert", [row("a", 1)], sort_by=["note"])
    assert answer.status_code == 202, answer.text
    changes = [{"kind": "drop", "name": "note"}]
    etag = {"If-Match": client.get(table.path).headers["etag"]}
    changed = client.patch(table.path, json={"changes": changes}, headers=etag)
    assert changed.status_code == 200, changed.text
    service.work()
    error = client.get(answer.headers["location"]).json()["error"]
    assert (error["type"], error["errors"][0]["pointer"]) == ("/problems/invalid-request", "/sort_by/0")
    assert table.rows == []


def test_write_may_expect_a_version(table):
    at = "upsert" if table.keyed else "insert"
    assert table.write(at, [row("c", 1)], expected_version=1) == {"inserted": 1}
    members = problem(table.send(at, [row("c", 2)], expected_version=1), 409, "commit-conflict")
    assert (members["expected_version"], members["head_version"], members["retryable"]) == (1, 2, False)
    # What is still ahead may yet be reached by writes that wait: it is judged at the commit.
    first, second = (table.send(at, [row("d", n)], expected_version=n) for n in (2, 3))
    third = table.send(at, [row("d", 9)], expected_version=9)
    table.service.work()
    states = [table.client.get(each.headers["location"]).json() for each in (first, second, third)]
    assert [(job["state"], job["committed_version"]) for job in states] == [
        ("succeeded", 3),
        ("succeeded", 4),
        ("failed", None),
    ]
    assert states[2]["error"]["type"] == "/problems/commit-conflict"


def test_writer_batch_commits_once(table):
    at = "upsert" if table.keyed else "insert"
    first = table.send(at, [row("c", 1)], writer_id="w", batch_id=5)
    again = table.send(at, [row("c", 1)], writer_id="w", batch_id=5)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json()["id"] == first.json()["id"]
    table.service.work()
    assert table.send(at, [row("c", 1)], writer_id="w", batch_id=5).json()["state"] == "succeeded"
    members = problem(table.send(at, [row("c", 2)], writer_id="w", batch_id=4), 409, "batch-out-of-order")
    assert members["last_batch_id"] == 5
    assert table.send(at, [row("c", 2)], writer_id="other", batch_id=4).status_code == 202
    assert table.send(at, [row("c", 3)], writer_id="w", batch_id=7).status_code == 202
    table.service.work()
    assert table.rows == [*BEFORE, row("c", 1), row("c", 2), row("c", 3)]


def test_writer_batch_with_other_rows_is_refused(table):
    at = "upsert" if table.keyed else "insert"
    first = table.send(at, [row("c", 1)], writer_id="w", batch_id=5)
    members = problem(table.send(at, [row("c", 2)], writer_id="w", batch_id=5), 422, "batch-mismatch")
    assert members["job_id"] == first.json()["id"]
    assert "next batch_id" in members["detail"]
    parameters = {"operation": at, "writer_id": "raw", "batch_id": 1}
    lines = [json.dumps(row("d", number)).encode() + b"\n" for number in (1, 2)]
    answers = [
        table.client.post(f"{table.path}/writes", params=parameters, content=line, headers=NDJSON)
        for line in (lines[0], lines[0], lines[1])
    ]
    assert answers[0].json()["id"] == answers[1].json()["id"]
    problem(answers[2], 422, "batch-mismatch")
    table.service.work()
    assert table.rows == [*BEFORE, row("c", 1), row("d", 1)]


def test_writer_batch_that_leaves_no_tombstones_is_another_one(keyed):
    keys = [{"day": "a", "id": 1}]
    assert keyed.send("delete", keys, writer_id="w", batch_id=5).status_code == 202
    problem(keyed.send("delete", keys, writer_id="w", batch_id=5, tombstone=False), 422, "batch-mismatch")
    keyed.service.work()


def test_bad_records_are_quarantined_on_request(table):
    at = "upsert" if table.keyed else "insert"
    rows = [row("c", 1), {"day": "c", "id": "x"}, row("c", 2)]
    assert table.write(at, rows, on_error="quarantine") == {"inserted": 2, "quarantined": 1}
    assert table.write(at, [{"day": "c"}], on_error="quarantine") == {"quarantined": 1}
    assert table.version == 2


def test_options_of_a_raw_body_are_query_parameters(table):
    parameters = {"operation": "overwrite", "overwrite_scope": "filter", "overwrite_where": "id = 2"}
    body = b'{"day": "c", "id": 2, "note": "raw"}\n'
    answer = table.client.post(f"{table.path}/writes", params=parameters, content=body, headers=NDJSON)
    assert answer.status_code == 202, answer.text
    table.service.work()
    assert table.rows == [row("a", 1), row("b", 1), row("c", 2, "raw")]
