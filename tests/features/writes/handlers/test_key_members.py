"""Record keys with members of structs: a dataset with such a key behaves as one whose key has columns instead."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import httpx2
import pyarrow as pa
import pytest

from tests.support.http import problem
from tests.support.service import Service
from tests.support.shares import share

Row = dict[str, Any]
FIELDS = [{"name": "note", "type": "string"}, {"name": "ts", "type": "int64"}]
FLAT = {
    "record_key": ["id", "region"],
    "schema": {
        "fields": [
            {"name": "id", "type": "int64"},
            {"name": "region", "type": "string"},
            {"name": "other", "type": "int64"},
            *FIELDS,
        ]
    },
}
NESTED = {
    "record_key": ["id", "meta.place.region"],
    "schema": {
        "fields": [
            {"name": "id", "type": "int64"},
            {"name": "meta", "type": "struct<other: int64, place: struct<region: string>>"},
            *FIELDS,
        ]
    },
}
WAYS = [
    {"table_type": "copy_on_write"},
    {"table_type": "merge_on_read"},
    {"table_type": "copy_on_write", "index": {"type": "record"}},
    {"table_type": "merge_on_read", "index": {"type": "bloom"}},
    {"table_type": "copy_on_write", "index": {"type": "simple"}},
    {"table_type": "merge_on_read", "changelog": {"producer": "deferred"}},
    {"table_type": "copy_on_write", "merge_mode": "event_time", "ordering_field": "ts"},
    {"table_type": "merge_on_read", "merge_mode": "first"},
    {"table_type": "copy_on_write", "bucket": {"count": 3}},
    {
        "table_type": "merge_on_read",
        "bucket": {"mode": "dynamic", "target_rows": 10},
        "index": {"type": "record"},
    },
    {"table_type": "merge_on_read", "bucket": {"mode": "postpone"}},
]


def nested(row: Row) -> Row:
    """The row of the flat dataset as one of the nested dataset."""
    found = {name: value for name, value in row.items() if name not in ("region", "other")}
    meta: Row = {"place": {"region": row["region"]}}
    if "other" in row:
        meta["other"] = row["other"]
    return {**found, "meta": meta}


def flat(row: Row) -> Row:
    """The other way round."""
    meta = row["meta"]
    found = {name: value for name, value in row.items() if name != "meta"}
    return {**found, "other": meta["other"], "region": meta["place"]["region"]}


def by_key(row: Row) -> tuple[int, str]:
    return row["id"], row["region"]


class Pair:
    """Two datasets that receive the same writes, one with each key."""

    def __init__(self, client: httpx2.Client, service: Service, way: Row) -> None:
        self.client, self.service = client, service
        self.paths = []
        for name, shape in (("flat", FLAT), ("nested", NESTED)):
            made = client.post("/datasets", json={"name": name, **shape, **way})
            assert made.status_code == 201, made.text
            self.paths.append(f"/datasets/{name}")

    def write(self, operation: str, rows: list[Row], **options: Any) -> tuple[Row, Row]:
        """The jobs of a write to both."""
        found = []
        for path, given in zip(self.paths, (rows, list(map(nested, rows))), strict=True):
            body = {"operation": operation, "source": {"kind": "rows", "rows": given}, **options}
            answer = self.client.post(f"{path}/writes", json=body)
            assert answer.status_code == 202, answer.text
            self.service.work()
            found.append(self.client.get(f"/jobs/{answer.json()['id']}").json())
        return found[0], found[1]

    def check(self) -> None:
        """Both have the same rows and the same feed."""
        one, other = (self.client.get(f"{path}/rows?limit=1000").json()["rows"] for path in self.paths)
        assert sorted(one, key=by_key) == sorted(map(flat, other), key=by_key)
        one, other = (self.client.get(f"{path}/changes?limit=1000").json()["changes"] for path in self.paths)
        plain = [{**change, "row": flat(change["row"])} for change in other]
        for changes in (one, plain):
            for change in changes:
                del change["system_time"], change["offset"]
        # Changes of different keys have no particular order within a commit.
        assert list(in_order(one)) == list(in_order(plain))

    def check_jobs(self) -> None:
        """The feed of each adds up to its table, and both have the same rows that changed since version 1."""
        found = []
        for path in self.paths:
            verified = self.finished(self.client.post(f"{path}/verifications"))
            assert verified["result"]["differences"] == 0, verified
            read = self.client.post(f"{path}/reads", json={"query": "incremental", "begin": 1, "meta": True})
            job = self.finished(read)
            found.append(self.client.get(f"/jobs/{job['id']}/result").json()["rows"])
        one, other = found
        for rows in found:
            for row in rows:
                # Times, names of files and offsets within a commit differ.
                del row["_hw_commit_time"], row["_hw_file_name"], row["_hw_commit_seqno"]
                row["_hw_record_key"] = row["_hw_record_key"].replace("meta.place.region", "region")
        assert sorted(one, key=by_key) == sorted(map(flat, other), key=by_key)

    def finished(self, answer: httpx2.Response) -> Row:
        assert answer.status_code == 202, answer.text
        self.service.work()
        job: Row = self.client.get(f"/jobs/{answer.json()['id']}").json()
        assert job["state"] == "succeeded", job
        return job

    def compact(self) -> None:
        for path in self.paths:
            assert self.client.post(f"{path}/compactions").status_code in (202, 422)
        self.service.work()


def in_order(changes: list[Row]) -> Iterator[Row]:
    return iter(sorted(changes, key=lambda change: (change["version"], by_key(change["row"]))))


@share(3)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(json.dumps(value) for value in way.values()))
def test_every_way_to_write_gives_the_same_table_and_feed(
    client: httpx2.Client, service: Service, way: Row
) -> None:
    pair, chance = Pair(client, service, way), random.Random(7)

    def some(count: int) -> list[Row]:
        keys = {(chance.randrange(12), chance.choice(("eu", "us", ""))) for _ in range(count)}
        return [
            {
                "id": number,
                "region": region,
                "other": chance.randrange(5),
                "note": chance.choice(("a", None)),
                "ts": chance.randrange(9),
            }
            for number, region in sorted(keys)
        ]

    for operation in ("insert", "upsert", "upsert", "delete", "insert", "upsert", "delete", "upsert"):
        if operation == "insert" and way.get("bucket", {}).get("mode") == "postpone":
            continue
        options: Row = {"drop_duplicates": True} if operation == "insert" else {}
        one, other = pair.write(operation, some(10), **options)
        assert (one["state"], one["rows"], one["error"]) == (other["state"], other["rows"], other["error"])
    pair.check()
    pair.compact()
    one, other = pair.write("upsert", some(5))
    assert one["rows"] == other["rows"]
    pair.compact()
    pair.check()
    pair.check_jobs()


def test_snapshot_overwrite_changelog_and_filters_use_the_member(
    client: httpx2.Client, service: Service
) -> None:
    pair = Pair(client, service, {"table_type": "merge_on_read"})
    rows = [{"id": n, "region": "eu", "other": n, "note": "a", "ts": 1} for n in range(6)]
    pair.write("snapshot", rows)
    pair.write("snapshot", [{**row, "note": "b"} for row in rows[2:]])
    pair.check()
    for path, filter_ in zip(
        pair.paths, ("region = 'eu' AND id > 3", "meta.place.region = 'eu' AND id > 3"), strict=True
    ):
        answer = client.post(f"{path}/writes", json={"operation": "delete", "where": filter_})
        assert answer.status_code == 202, answer.text
    service.work()
    pair.check()
    changes = [
        {"op": "-C", "row": {**rows[2], "note": "b"}},
        {"op": "+C", "row": {**rows[2], "note": "c"}},
        {"op": "+A", "row": {**rows[2], "region": "us"}},
    ]
    for path, form in zip(pair.paths, (lambda row: row, nested), strict=True):
        given = [{**change, "row": form(change["row"])} for change in changes]
        body = {"operation": "changelog", "source": {"kind": "rows", "rows": given}}
        assert client.post(f"{path}/writes", json=body).status_code == 202
    service.work()
    pair.check()
    assert (
        client.get("/datasets/nested/rows", params={"where": "id = 2 AND meta.place.region = 'eu'"}).json()[
            "rows"
        ][0]["note"]
        == "c"
    )


def test_lookup_finds_rows_by_the_member(client: httpx2.Client, service: Service) -> None:
    pair = Pair(client, service, {"table_type": "merge_on_read"})
    rows = [{"id": n, "region": r, "other": n, "note": "a", "ts": 1} for n in range(4) for r in ("eu", "u,s")]
    pair.write("upsert", rows)
    pair.write("upsert", [{**rows[3], "note": "b"}])
    found = client.get("/datasets/nested/rows/1,u%2Cs", params={"history": "true"}).json()
    assert flat(found["row"]) == {**rows[3], "note": "b"}
    assert [change["op"] for change in found["changes"]] == ["+A", "-C", "+C"]
    keys = [{"id": 1, "meta": {"place": {"region": "eu"}}}, {"id": 9, "meta": {"place": {"region": "eu"}}}]
    answer = client.post("/datasets/nested/rows/lookup", json={"keys": keys}).json()
    assert [each["row"] and flat(each["row"]) for each in answer["items"]] == [rows[2], None]
    assert [each["key"] for each in answer["items"]] == keys
    explained = client.get("/datasets/nested/explanations", params={"key": json.dumps(keys[0])})
    assert explained.status_code == 200, explained.text
    shown = client.get(
        "/datasets/nested/rows", params={"meta": "true", "where": "id = 1 AND note = 'b'"}
    ).json()
    assert shown["rows"][0]["_hw_record_key"] == "id:1,meta.place.region:u,s"
    refused = client.get("/datasets/nested/rows/1")
    assert "meta.place.region" in problem(refused, 400, "invalid-request")["detail"]
    lacking = client.post("/datasets/nested/rows/lookup", json={"keys": [{"id": 1, "meta": {}}]})
    assert lacking.status_code == 422, lacking.text


BAD = {"id": 1, "meta": {"other": 1, "place": {"region": None}}, "note": "x", "ts": 1}


@pytest.mark.parametrize(
    "bad",
    [
        BAD,
        {**BAD, "meta": {"other": 1, "place": None}},
        {**BAD, "meta": {"other": 1}},
        {**BAD, "meta": None},
        {"id": 1},
    ],
)
@pytest.mark.parametrize("operation", ["upsert", "insert", "delete"])
def test_record_without_the_member_is_bad(
    client: httpx2.Client, service: Service, bad: Row, operation: str
) -> None:
    Pair(client, service, {})
    good = {"id": 2, "meta": {"place": {"region": "eu"}}}
    body = {"operation": operation, "source": {"kind": "rows", "rows": [good, bad]}}
    found = problem(client.post("/datasets/nested/writes", json=body), 422, "schema-mismatch")
    assert "/source/rows/1" in found["errors"][0]["pointer"]
    answer = client.post("/datasets/nested/writes", json={**body, "on_error": "quarantine"})
    assert answer.status_code == 202, answer.text
    service.work()
    job = client.get(f"/jobs/{answer.json()['id']}").json()
    assert (job["state"], job["rows"]["quarantined"]) == ("succeeded", 1)


def test_record_without_the_member_is_bad_in_every_format(client: httpx2.Client, service: Service) -> None:
    Pair(client, service, {})
    place = pa.struct([("region", pa.string())])
    kind = pa.struct([("other", pa.int64()), ("place", place)])
    table = pa.table(
        {
            "id": pa.array([1, 2, 3]),
            "meta": pa.array(
                [{"place": {"region": "eu"}}, {"place": {"region": None}}, {"place": None}], kind
            ),
        }
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    bodies = {
        "application/vnd.apache.arrow.stream": sink.getvalue().to_pybytes(),
        "text/csv": b'id,meta\n1,"{""place"": {""region"": ""eu""}}"\n2,"{""place"": {""region"": null}}"\n3,{}\n',
        "application/x-ndjson": b"".join(
            json.dumps({"id": n, "meta": {"place": {"region": r}}}).encode() + b"\n"
            for n, r in ((1, "eu"), (2, None), (3, None))
        ),
    }
    for media_type, body in bodies.items():
        headers = {"Content-Type": media_type}
        refused = client.post("/datasets/nested/writes?operation=upsert", content=body, headers=headers)
        service.work()
        if refused.status_code == 202:
            job = client.get(f"/jobs/{refused.json()['id']}").json()
            assert job["state"] == "failed", media_type
            assert job["error"]["type"].endswith("schema-mismatch"), job["error"]
        else:
            problem(refused, 422, "schema-mismatch")
        taken = client.post(
            "/datasets/nested/writes?operation=upsert&on_error=quarantine", content=body, headers=headers
        )
        assert taken.status_code == 202, taken.text
        service.work()
        job = client.get(f"/jobs/{taken.json()['id']}").json()
        assert (job["state"], job["rows"]["quarantined"]) == ("succeeded", 2), media_type


@pytest.mark.parametrize(
    ("members", "pointer"),
    [
        ({"record_key": ["id", "meta.nothing"]}, "/record_key/1"),
        ({"record_key": ["id", "meta"]}, "/record_key/1"),
        ({"record_key": ["id", "id.x"]}, "/record_key/1"),
        ({"record_key": ["id", "year(ts)"]}, "/record_key/1"),
        ({"record_key": ["id", "meta.place.region"], "merge_mode": "partial"}, "/record_key/1"),
        ({"record_key": ["id", "meta.place.region", "meta.place.region"]}, "/record_key"),
        (
            {"record_key": ["meta.place.region"], "ordering_field": "meta.place.region"},
            "/ordering_field",
        ),
    ],
)
def test_key_that_cannot_be_is_refused(client: httpx2.Client, members: Row, pointer: str) -> None:
    answer = client.post("/datasets", json={"name": "bad", **NESTED, **members})
    errors = problem(answer, 422, "invalid-dataset")["errors"]
    assert pointer in [error["pointer"] for error in errors]


def test_struct_of_the_key_can_be_neither_dropped_nor_renamed_nor_widened(
    client: httpx2.Client, service: Service
) -> None:
    Pair(client, service, {})
    wider = "struct<other: int64, place: struct<region: string>, more: string>"
    for change in (
        {"kind": "drop", "name": "meta"},
        {"kind": "rename", "name": "meta", "to": "facts"},
        {"kind": "widen", "name": "meta", "type": wider},
        {"kind": "add", "field": {"name": "meta.place.region", "type": "string"}},
    ):
        etag = client.get("/datasets/nested").headers["etag"]
        answer = client.patch("/datasets/nested", json={"changes": [change]}, headers={"If-Match": etag})
        assert answer.status_code == 422, answer.text


def test_dataset_is_partitioned_by_a_member_of_its_key(client: httpx2.Client, service: Service) -> None:
    way = {"partition_by": ["meta.place.region"]}
    made = client.post("/datasets", json={"name": "parts", **NESTED, **way})
    assert made.status_code == 201, made.text
    rows = [
        nested({"id": n, "region": r, "other": 1, "note": "a", "ts": 1}) for n in (1, 2) for r in ("eu", "us")
    ]
    for _ in range(2):
        body = {"operation": "upsert", "source": {"kind": "rows", "rows": rows}}
        client.post("/datasets/parts/writes", json=body)
        service.work()
    assert len(client.get("/datasets/parts/rows").json()["rows"]) == 4
    paths = [each["path"] for each in client.get("/datasets/parts/partitions").json()["items"]]
    assert sorted(paths) == ["meta.place.region=eu", "meta.place.region=us"]
