"""Registering, finding, listing and ending datasets."""

import pytest

from tests.support.http import EVENTS, ORDERS, problem


def test_registration_returns_the_dataset_its_location_and_its_version(client):
    answer = client.post("/datasets", json=ORDERS)
    assert answer.status_code == 201
    dataset = answer.json()
    assert answer.headers["location"] == f"/datasets/{dataset['id']}"
    assert answer.headers["etag"] == '"0"'
    assert dataset["name"] == "orders"
    assert dataset["schema"]["fields"] == [
        {"name": "id", "type": "int64", "nullable": False, "doc": None},
        {"name": "note", "type": "string", "nullable": True, "doc": None},
    ]
    assert dataset["bucket"] == {
        "mode": "fixed", "count": None, "key": [], "function": "hash", "target_rows": 2_000_000, "max_buckets": None,
        "fixed_now": False, "shuffle_by_partition": False,
    }  # fmt: skip
    assert (dataset["index"], dataset["target_bytes"]) == ({"type": "bucket"}, 256 * 2**20)
    assert dataset["compression"] == "zstd"
    assert (dataset["sequence_groups"], dataset["aggregates"], dataset["delete_marker"]) == ([], {}, None)
    assert (dataset["version"], dataset["next_offset"], dataset["committed_at"]) == (0, 0, None)
    for reference in ("orders", dataset["id"]):
        answer = client.get(f"/datasets/{reference}")
        document = answer.json()
        assert [each["engine"] for each in document.pop("read_with")][:2] == ["DuckDB", "PyIceberg"]
        assert document == dataset
        assert answer.headers["etag"] == '"0"'


def test_dataset_name_is_unique_until_the_dataset_is_deleted(client):
    assert client.post("/datasets", json=ORDERS).status_code == 201
    problem(client.post("/datasets", json=ORDERS), 409, "dataset-exists")
    assert client.delete("/datasets/orders").status_code == 204
    problem(client.get("/datasets/orders"), 404, "not-found")
    assert client.post("/datasets", json=ORDERS).status_code == 201


def test_delete_checks_if_match(client, orders):
    refused = problem(client.delete(orders, headers={"If-Match": '"7"'}), 412, "precondition-failed")
    assert refused["version"] == 0
    problem(client.delete(orders, headers={"If-Match": "W/nonsense"}), 412, "precondition-failed")
    assert client.delete(orders, headers={"If-Match": '"0"'}).status_code == 204


def test_dataset_list_is_paged_by_name(client):
    for name in ("b", "c", "a"):
        client.post("/datasets", json={**ORDERS, "name": name})
    first = client.get("/datasets", params={"page_size": 2}).json()
    assert [item["name"] for item in first["items"]] == ["a", "b"]
    second = client.get("/datasets", params={"page_size": 2, "page_token": first["next_page_token"]}).json()
    assert [item["name"] for item in second["items"]] == ["c"]
    assert second["next_page_token"] is None
    problem(client.get("/datasets", params={"page_token": "nonsense"}), 400, "invalid-request")


def test_schema_lists_the_ids_of_its_fields(client, orders):
    schema = client.get(f"{orders}/schema").json()
    assert schema["id"] == 1
    assert [(field["id"], field["name"]) for field in schema["fields"]] == [(1, "id"), (2, "note")]


def test_invalid_definition_reports_every_broken_rule(client):
    broken = {**ORDERS, "name": "0", "record_key": ["nothing"], "partition_by": ["note"]}
    members = problem(client.post("/datasets", json=broken), 422, "invalid-dataset")
    pointers = {error["pointer"] for error in members["errors"]}
    assert {"/name", "/record_key/0"} <= pointers
    first = members["errors"][0]
    assert members["detail"].startswith(f"{first['pointer']}: {first['detail']}; /")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({**ORDERS, "compaction": True}, "/compaction"),
        (
            {**ORDERS, "schema": {"fields": [{"name": "id", "type": "int64", "unit": "m"}]}},
            "/schema/fields/0/unit",
        ),
        ({**ORDERS, "schema": {"fields": [{"name": "id", "type": 64}]}}, "/schema/fields/0/type"),
        ({**ORDERS, "schema": {"fields": [{"name": "id"}]}}, "/schema/fields/0/type"),
        ({"schema": ORDERS["schema"]}, "/name"),
        ({**ORDERS, "merge_mode": "newest"}, "/merge_mode"),
        ({**ORDERS, "a/b~c": 1}, "/a~1b~0c"),
    ],
)
def test_invalid_member_is_reported_with_its_pointer(client, body, pointer):
    members = problem(client.post("/datasets", json=body), 400, "invalid-request")
    assert [error["pointer"] for error in members["errors"]] == [pointer]


@pytest.mark.parametrize(
    "body",
    [b"", b'{"name":', b"\xff\xfe"],
    ids=["empty", "truncated", "not UTF-8"],
)
def test_body_that_is_not_json_is_malformed(client, body):
    answer = client.post("/datasets", content=body, headers={"Content-Type": "application/json"})
    problem(answer, 400, "malformed-body")


def test_registration_accepts_json_only(client):
    answer = client.post("/datasets", content=b"name: x", headers={"Content-Type": "application/yaml"})
    assert problem(answer, 415, "unsupported-media-type")["accepted"] == ["application/json"]


def test_dataset_without_a_key_is_append_only(client):
    dataset = client.post("/datasets", json=EVENTS).json()
    assert (dataset["bucket"]["mode"], dataset["bucket"]["count"]) == ("unaware", 1)
    assert dataset["index"] is None
    assert dataset["record_key"] == []


def test_dataset_document_contains_the_whole_definition(client):
    definition = {
        "name": "totals",
        "schema": {
            "fields": [
                {"name": "id", "type": "int64"},
                {"name": "country", "type": "string"},
                {"name": "total", "type": "decimal(12, 2)"},
                {"name": "gone", "type": "boolean"},
            ]
        },
        "record_key": ["id"],
        "partition_by": ["country"],
        "table_type": "merge_on_read",
        "bucket": {"mode": "key_dynamic", "count": 2, "target_rows": 1_000, "max_buckets": 8},
        "index": {"type": "bloom"},
        "merge_mode": "aggregate",
        "aggregates": {"total": "max"},
        "delete_marker": "gone",
        "changelog": {
            "producer": "deferred",
            "retention": {"seconds": 3_600, "changes": None},
            "vocabulary": {
                "offset": "nr",
                "op": "operation",
                "system_time": "at",
                "event_time": "happened",
                "version": "in_version",
                "corrects_offset": "corrects",
            },
        },
        "target_bytes": 1_000_000,
        "compression": "lz4",
    }
    dataset = client.post("/datasets", json=definition).json()
    for member in (
        "table_type",
        "index",
        "merge_mode",
        "aggregates",
        "delete_marker",
        "changelog",
        "target_bytes",
        "compression",
    ):
        assert dataset[member] == definition[member]
    assert dataset["bucket"] == {**dataset["bucket"], **definition["bucket"]}
    groups = [{"ordering_field": "seen", "fields": ["place"]}]
    partial = {
        "name": "pieces",
        "schema": {
            "fields": [
                {"name": "id", "type": "int64"},
                {"name": "place", "type": "string"},
                {"name": "seen", "type": "int32"},
            ]
        },
        "record_key": ["id"],
        "merge_mode": "partial",
        "sequence_groups": groups,
    }
    assert client.post("/datasets", json=partial).json()["sequence_groups"] == groups


def test_time_of_tombstones_is_changed_by_a_version(client):
    fields = [{"name": "id", "type": "int64"}, {"name": "at", "type": "int64"}]
    new = {"name": "orders", "schema": {"fields": fields}, "record_key": ["id"], "ordering_field": "at"}
    dataset = client.post("/datasets", json=new).json()
    assert dataset["deletes"] == {"keep_seconds": 604_800}
    path = f"/datasets/{dataset['id']}"

    def change(seconds, version):
        return client.patch(
            path, json={"deletes": {"keep_seconds": seconds}}, headers={"If-Match": f'"{version}"'}
        )

    changed = change(0, 0).json()
    assert (changed["version"], changed["deletes"]) == (1, {"keep_seconds": 0})
    refused = change(316_224_001, 1)
    assert refused.status_code == 400
    assert refused.json()["errors"][0]["pointer"] == "/deletes/keep_seconds"
    plain = client.post("/datasets", json={**new, "name": "plain", "ordering_field": None}).json()
    assert plain["deletes"] == {"keep_seconds": 0}
    path = f"/datasets/{plain['id']}"
    refused = change(1, 0)
    assert (refused.status_code, refused.json()["type"].rpartition("/")[2]) == (422, "invalid-dataset")
    assert refused.json()["errors"][0]["pointer"] == "/deletes/keep_seconds"
