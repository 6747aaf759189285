"""Tables over HTTP: their metadata, snapshots, keys, entity tags, and who may load them."""

from __future__ import annotations

import dataclasses
import gzip
import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from sqlalchemy import event

from app.access.errors import NotFound
from app.access.tenants.values import Grant, KeyScope
from app.features.iceberg.values import SnapshotSelection
from app.features.objects.ports import ServedTable
from app.infra.sharing.byte_cache import ByteCache
from app.kernel.sql.conditions.row_access import EVERYTHING
from tests.features.iceberg.handlers.test_catalogue import TABLES, Tenant, failure, tenant
from tests.support.http import ORDERS, upsert
from tests.support.iceberg_tables import served
from tests.support.schema_changes import change
from tests.support.service import Service
from tests.support.tables_in_s3 import principal_of

__all__ = ["tenant"]

ORDERS_TABLE = f"{TABLES}/orders"
Document = dict[str, Any]


def loaded(client: httpx2.Client, path: str = ORDERS_TABLE, **query: str) -> Document:
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    document: Document = answer.json()
    return document


@pytest.fixture
def write(client: httpx2.Client, orders: str, service: Service) -> Callable[..., None]:
    """Writes a version of `orders`."""

    def commit(*rows: dict[str, Any]) -> None:
        answer = client.post(f"{orders}/writes", json=upsert(*rows))
        assert answer.status_code == 202, answer.text
        service.work()

    return commit


def test_head_says_whether_there_is_a_table(client: httpx2.Client, orders: str):
    assert orders
    answer = client.head(ORDERS_TABLE)
    assert (answer.status_code, answer.content, answer.headers.get("content-length")) == (204, b"", None)
    # The connection goes on.
    assert client.head(f"{TABLES}/missing").status_code == 404
    assert client.head(f"{ORDERS_TABLE}/missing").status_code == 404
    assert client.get(ORDERS_TABLE).status_code == 200


def test_each_version_is_a_snapshot(client: httpx2.Client, orders: str, write: Callable[..., None]):
    for number in (1, 2, 3):
        write({"id": number, "note": "a"})
    table = loaded(client)
    metadata = table["metadata"]
    dataset_id = client.get(orders).json()["id"]
    assert metadata["format-version"] == 3
    assert metadata["table-uuid"] == dataset_id
    assert metadata["location"] == f"s3://hw-tables/{dataset_id}/v3"
    assert table["metadata-location"].startswith(f"{metadata['location']}/metadata/v3-")
    assert metadata["current-snapshot-id"] == metadata["last-sequence-number"] == 3
    assert [each["snapshot-id"] for each in metadata["snapshots"]] == [1, 2, 3]
    assert [each.get("parent-snapshot-id") for each in metadata["snapshots"]] == [None, 1, 2]
    assert metadata["refs"] == {"main": {"snapshot-id": 3, "type": "branch"}}
    assert metadata["properties"] == {"headwater.dataset": "orders"}
    lists = [each["manifest-list"] for each in metadata["snapshots"]]
    assert len(set(lists)) == 3
    assert all(each.startswith(f"{metadata['location']}/metadata/snap-") for each in lists)
    write({"id": 4})
    assert [each["manifest-list"] for each in loaded(client)["metadata"]["snapshots"]][:3] == lists


def test_table_without_a_commit_has_no_snapshot(client: httpx2.Client, orders: str):
    assert orders
    metadata = loaded(client)["metadata"]
    assert metadata["snapshots"] == []
    assert metadata.get("current-snapshot-id") is None
    assert metadata["refs"] == {}
    assert loaded(client, ORDERS_TABLE.replace("v3", "v2"))["metadata"]["current-snapshot-id"] == -1


def test_names_of_versions_are_refs(
    client: httpx2.Client, orders: str, write: Callable[..., None], service: Service
):
    for number in (1, 2, 3):
        write({"id": number})
    client.post(f"{orders}/tags", json={"name": "first", "version": 1})
    client.post(f"{orders}/savepoints", json={"name": "second", "version": 2})
    service.work()
    refs = loaded(client)["metadata"]["refs"]
    assert {name: ref["snapshot-id"] for name, ref in refs.items()} == {"main": 3, "first": 1, "second": 2}
    few = loaded(client, snapshots="refs")["metadata"]
    assert [each["snapshot-id"] for each in few["snapshots"]] == [1, 2, 3]
    client.delete(f"{orders}/tags/first")
    few = loaded(client, snapshots="refs")["metadata"]
    assert [each["snapshot-id"] for each in few["snapshots"]] == [2, 3]
    assert [each["snapshot-id"] for each in loaded(client, snapshots="all")["metadata"]["snapshots"]] == [
        1,
        2,
        3,
    ]


def test_schemas_of_snapshots_are_listed(client: httpx2.Client, orders: str, write: Callable[..., None]):
    write({"id": 1, "note": "a"})
    answer = change(client, orders, {"kind": "rename", "name": "note", "to": "remark"})
    assert answer.status_code == 200, answer.text
    metadata = loaded(client)["metadata"]
    assert metadata["current-schema-id"] == 2
    names = {each["schema-id"]: [field["name"] for field in each["fields"]] for each in metadata["schemas"]}
    assert names == {1: ["id", "note"], 2: ["id", "remark"]}
    assert [each["schema-id"] for each in metadata["snapshots"]] == [1, 2]
    ids = [[field["id"] for field in each["fields"]] for each in metadata["schemas"]]
    assert ids[0] == ids[1]


def test_table_comes_with_a_key_for_its_files(client: httpx2.Client, service: Service, orders: str):
    assert orders
    table = loaded(client)
    config = table["config"]
    assert config["s3.endpoint"] == f"{service.url}/"
    assert config["s3.path-style-access"] == "true"
    assert config["s3.region"] == config["client.region"] == "us-east-1"
    assert (
        config["client.refresh-credentials-endpoint"]
        == "v1/v3/namespaces/headwater/tables/orders/credentials"
    )
    # Java's client puts the address of the catalogue before it.
    assert client.get(f"/iceberg/{config['client.refresh-credentials-endpoint']}").status_code == 200
    [credential] = table["storage-credentials"]
    assert credential["prefix"] == table["metadata"]["location"]
    assert credential["config"].items() <= config.items()
    seconds = int(config["s3.session-token-expires-at-ms"]) / 1_000 - datetime.now(UTC).timestamp()
    assert 3_000 < seconds <= 3_600
    answer = client.get(f"{ORDERS_TABLE}/credentials?planId=1")
    assert answer.status_code == 200, answer.text
    [renewed] = answer.json()["storage-credentials"]
    assert renewed["prefix"] == credential["prefix"]
    assert set(renewed["config"]) == set(credential["config"])


def test_address_of_files_is_that_of_the_request(service: Service, client: httpx2.Client, orders: str):
    assert orders
    answer = client.get(ORDERS_TABLE, headers={"Host": "data.example.com", "X-Forwarded-Proto": "https"})
    assert answer.json()["config"]["s3.endpoint"] == "https://data.example.com/"


@pytest.mark.parametrize("host", ["data.example.com:99999999", "data.example.com:80,other"])
def test_host_that_is_no_address_is_refused(client: httpx2.Client, orders: str, host: str):
    assert orders
    assert failure(client.get(ORDERS_TABLE, headers={"Host": host}), 400, "BadRequestException")


def test_body_is_compressed_if_the_client_takes_it(
    client: httpx2.Client, orders: str, write: Callable[..., None]
):
    assert orders
    write({"id": 1})
    with client.stream("GET", ORDERS_TABLE, headers={"Accept-Encoding": "gzip"}) as answer:
        assert answer.headers["content-encoding"] == "gzip"
        compressed = b"".join(answer.iter_raw())
    plain = client.get(ORDERS_TABLE, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    document = json.loads(gzip.decompress(compressed))
    assert document["metadata"] == plain.json()["metadata"]
    assert set(document) == {"metadata-location", "metadata", "config", "storage-credentials"}


def test_table_that_the_client_has_is_not_sent_again(
    client: httpx2.Client, orders: str, write: Callable[..., None]
):
    assert orders
    write({"id": 1})
    write({"id": 1, "note": "a"})
    tag = client.get(ORDERS_TABLE).headers["etag"]
    again = client.get(ORDERS_TABLE, headers={"If-None-Match": tag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    state, ends = tag.strip('"').split("-")
    # The key of that answer has less than half of its time left.
    late = f'"{state}-{int(ends) - 2_000}"'
    assert client.get(ORDERS_TABLE, headers={"If-None-Match": late}).status_code == 200
    for other in (f"{ORDERS_TABLE}?snapshots=refs", ORDERS_TABLE.replace("v3", "v2")):
        assert client.get(other, headers={"If-None-Match": tag}).status_code == 200
    elsewhere = {"If-None-Match": tag, "Host": "data.example.com"}
    assert client.get(ORDERS_TABLE, headers=elsewhere).status_code == 200
    write({"id": 2})
    assert client.get(ORDERS_TABLE, headers={"If-None-Match": tag}).status_code == 200


def test_tag_of_another_key_is_another_one(tenant: Tenant):
    tenant.add("orders")
    with tenant.client() as one, tenant.client(Grant(datasets="*")) as other:
        tag = one.get(ORDERS_TABLE).headers["etag"]
        assert one.get(ORDERS_TABLE, headers={"If-None-Match": tag}).status_code == 304
        assert other.get(ORDERS_TABLE, headers={"If-None-Match": tag}).status_code == 200


def test_table_is_loaded_by_keys_that_may_read_it(tenant: Tenant, service: Service):
    tenant.add("orders")
    for path in (ORDERS_TABLE, f"{ORDERS_TABLE}/credentials"):
        with tenant.client(Grant(datasets="orders")) as client:
            assert client.get(path).status_code == 200
            assert client.head(path).is_success
        with tenant.client(Grant(datasets="elsewhere")) as client:
            failure(client.get(path), 404, "NoSuchTableException")
        for part in ({"where": "id > 1"}, {"mask": ("note",)}):
            with tenant.client(Grant(datasets="orders", scopes=(KeyScope.READ,), **part)) as client:
                assert client.get(path).status_code == 200
                assert client.head(path).is_success
        with tenant.client(scopes=(KeyScope.WRITE,)) as client:
            failure(client.get(path), 403, "ForbiddenException")
    with service.client(service.new_key("another")) as client:
        failure(client.get(ORDERS_TABLE), 404, "NoSuchTableException")
    with tenant.client() as client:
        failure(client.get(f"{TABLES}/Orders"), 404, "NoSuchTableException")


def test_reports_of_scans_are_taken(client: httpx2.Client, orders: str):
    assert orders
    report = {"report-type": "scan-report", "table-name": "orders", "metrics": {}}
    assert client.post(f"{ORDERS_TABLE}/metrics", json=report).status_code == 204
    failure(client.post(f"{TABLES}/missing/metrics", json=report), 404, "NoSuchTableException")
    failure(
        client.post(f"{ORDERS_TABLE}/metrics", content=b"x" * 1_100_000),
        413,
        "RequestEntityTooLargeException",
    )


WAITING = "headwater.read", "headwater.compacted-version"


def waiting(client: httpx2.Client) -> tuple[list[str | None], list[tuple[str | None, ...]]]:
    """What `logs` says of writes that wait: its properties, and each of its snapshots."""
    metadata = loaded(client, f"{TABLES}/logs")["metadata"]
    of_snapshots = [tuple(each["summary"].get(name) for name in WAITING) for each in metadata["snapshots"]]
    return [metadata["properties"].get(name) for name in WAITING], of_snapshots


def test_writes_that_wait_are_named_by_properties_and_snapshots(client: httpx2.Client, service: Service):
    logs = {"name": "logs", "table_type": "merge_on_read", "changelog": {"producer": "input"}}
    assert client.post("/datasets", json=ORDERS | logs).status_code == 201

    def write(number: int) -> None:
        client.post("/datasets/logs/writes", json=upsert({"id": number}))
        service.work()

    write(1)
    write(2)
    since_start, none = ("read_optimized", "0"), (None, None)
    assert waiting(client) == ([*since_start], [since_start] * 2)
    client.post("/datasets/logs/compactions", json={})
    service.work()
    assert waiting(client) == ([*none], [since_start, since_start, none])
    assert loaded(client, f"{TABLES}/logs")["metadata"]["properties"] == {"headwater.dataset": "logs"}
    write(3)
    since_compaction = ("read_optimized", "3")
    every = [since_start, since_start, none, since_compaction]
    assert waiting(client) == ([*since_compaction], every)
    # Also where all snapshots are rendered at once.
    cold = loaded(client, f"{TABLES.replace('v3', 'v2')}/logs")["metadata"]["snapshots"]
    assert [tuple(each["summary"].get(name) for name in WAITING) for each in cold] == every


def test_widening_that_the_format_does_not_know_is_refused_until_files_are_rewritten(
    client: httpx2.Client, service: Service
):
    dataset = ORDERS | {
        "schema": {"fields": [{"name": "id", "type": "int64"}, {"name": "size", "type": "int16"}]}
    }
    path = client.post("/datasets", json=dataset).headers["location"]
    client.post(f"{path}/writes", json=upsert({"id": 1, "size": 2}))
    service.work()
    assert change(client, path, {"kind": "widen", "name": "size", "type": "double"}).status_code == 200
    message = failure(client.get(ORDERS_TABLE), 422, "UnprocessableEntityException")
    assert "'size'" in message
    assert "POST /datasets/{dataset}/clusterings" in message
    client.post(f"{path}/clusterings", json={"columns": ["id"]})
    service.work()
    fields = loaded(client)["metadata"]["schemas"][-1]["fields"]
    assert [each["type"] for each in fields] == ["long", "double"]


def test_table_whose_state_is_known_takes_one_query_and_a_commit_adds_one(
    client: httpx2.Client, service: Service, orders: str, write: Callable[..., None]
):
    tables: Any = service.api.dependencies["loaded_tables"]
    engine = tables.tables.versions._database._engine
    tenant_id = principal_of(service, client.headers["authorization"].removeprefix("Bearer ")).tenant_id
    mine, texts = threading.get_ident(), list[str]()

    def note(_connection: Any, _cursor: Any, text: str, *_: Any) -> None:
        if threading.get_ident() == mine and " FROM " in text.replace("\n", " "):
            texts.append(text)

    def queries() -> int:
        dataset = service.platform.stores.catalog.get(tenant_id, "orders")
        texts.clear()
        tables.tables.render(served(dataset), SnapshotSelection.LATEST)
        return len(texts)

    write({"id": 1})
    assert change(client, orders, {"kind": "rename", "name": "note", "to": "remark"}).status_code == 200
    event.listen(engine, "before_cursor_execute", note)
    try:
        queries()
        assert queries() == 1
        write({"id": 2})
        assert (queries(), queries()) == (2, 1)
    finally:
        event.remove(engine, "before_cursor_execute", note)


def test_forged_name_of_a_document_renders_nothing(
    client: httpx2.Client, orders: str, write: Callable[..., None], service: Service
):
    for number in (1, 2):
        write({"id": number, "note": "a"})
    location = loaded(client)["metadata-location"]
    trees: Any = service.api.dependencies["object_trees"]
    tree, path = trees["metadata"], location.partition("/metadata/")[2]
    tenant_id = principal_of(service, client.headers["authorization"].removeprefix("Bearer ")).tenant_id
    dataset = service.platform.stores.catalog.get(tenant_id, "orders")
    table = ServedTable(dataset=dataset, variant="v3", access=EVERYTHING)
    assert tree.find(table, path).size_bytes
    documents = tree.tables.documents
    count = len(documents)
    version, earliest, digests = path.split("-")
    for forged in (
        f"v1-{earliest}-{digests}",
        f"{version}-{int(earliest) + 1}-{digests}",
        f"{version}-{earliest}-{'0' * 32}.metadata.json",
        f"{version}-{earliest}-{'0' * 16}{digests[16:]}",
    ):
        for variant in ("v3", "v2"):
            with pytest.raises(NotFound):
                tree.find(ServedTable(dataset=dataset, variant=variant, access=EVERYTHING), forged)
    assert len(documents) == count
    # Another process, which has nothing rendered, finds the document by its name.
    fresh = dataclasses.replace(tree, tables=dataclasses.replace(tree.tables, documents=ByteCache(2**20)))
    assert fresh.find(table, path).etag == digests.removesuffix(".metadata.json")[16:]
