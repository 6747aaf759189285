"""Scans over HTTP: plans, parts as files or as rows, links to the storage, and how long a version is kept."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
import xxhash
from sqlalchemy import func, select, update

from app.access.tenants.values import Grant, KeyScope
from app.core.timeline.tables import read_leases
from app.features.reads.service.scans import SCANS
from app.infra.runtime.valkey import EmbeddedValkey
from tests.support.exports import keyed_history, table_rows
from tests.support.http import ORDERS, problem, upsert
from tests.support.linking import linking_service
from tests.support.postgres import TestServer
from tests.support.service import Service

Row = dict[str, Any]
LOGS = {"table_type": "merge_on_read", "changelog": {"producer": "input"}}


def scanned(client: httpx2.Client, path: str, **body: Any) -> Row:
    answer = client.post(f"{path}/scans", json=body)
    assert answer.status_code == 200, answer.text
    found: Row = answer.json()
    return found


def content_of(client: httpx2.Client, part: Row) -> pa.Table:
    """The rows of a part, of the form that the plan says."""
    answer = client.get(part["links"]["self"])
    assert answer.status_code == 200, answer.text
    if part["format"] == "arrow":
        assert answer.headers["content-type"] == "application/vnd.apache.arrow.stream"
        return ipc.open_stream(io.BytesIO(answer.content)).read_all()
    assert answer.headers["content-type"] == "application/vnd.apache.parquet"
    assert part["checksum"] == f"xxh3-128:{xxhash.xxh3_128(answer.content).hexdigest()}"
    assert part["size_bytes"] == len(answer.content)
    return pq.read_table(io.BytesIO(answer.content))


def rows_of(client: httpx2.Client, scan: Row) -> list[str]:
    names = [field["name"] for field in scan["schema"]["fields"]]
    tables = [content_of(client, part) for part in scan["parts"]]
    return sorted(repr(row) for table in tables for row in table.select(names).to_pylist())


def page_rows(client: httpx2.Client, path: str, **query: Any) -> list[str]:
    headers = {"Accept": "application/vnd.apache.arrow.stream"}
    answer = client.get(f"{path}/rows", params={"limit": 1_000, **query}, headers=headers)
    return sorted(repr(row) for row in ipc.open_stream(io.BytesIO(answer.content)).read_all().to_pylist())


@pytest.mark.parametrize(
    "more", [{}, LOGS, {"table_type": "copy_on_write"}], ids=["vectors", "logs", "files"]
)
def test_scan_has_the_rows_of_the_pages(service: Service, more: Row) -> None:
    with service.client(service.new_key(f"scans of {sorted(more)} {len(more)}")) as client:
        path = keyed_history(client, service, 7, **more)
        for version in (0, 2, client.get(path).json()["version"]):
            assert rows_of(client, scanned(client, path, version=version)) == page_rows(
                client, path, version=version
            )
        chosen = {"columns": ["note", "id"], "partitions": ["region=eu"]}
        found = scanned(client, path, **chosen)
        assert [field["name"] for field in found["schema"]["fields"]] == ["note", "id"]
        assert rows_of(client, found) == page_rows(client, path, **chosen)
        assert len(table_rows(client, path)) > 0


def test_parts_are_downloaded_in_ranges(client: httpx2.Client, orders: str, service: Service) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"}))
    service.work()
    [part] = scanned(client, orders)["parts"]
    assert (part["format"], part["rows"]) == ("parquet", 1)
    link = part["links"]["self"]
    whole = client.get(link).content
    piece = client.get(link, headers={"Range": "bytes=-4"})
    assert (piece.status_code, piece.content) == (206, b"PAR1")
    tag = client.head(link).headers["etag"]
    assert tag == f'"{part["checksum"].removeprefix("xxh3-128:")}"'
    headers = {"Range": "bytes=2-5", "If-Range": tag}
    assert client.get(link, headers=headers).content == whole[2:6]
    problem(client.get(link, headers={"Range": f"bytes={len(whole)}-"}), 416, "range-not-satisfiable")


def test_scan_keeps_its_version_for_a_bounded_time(
    client: httpx2.Client, orders: str, service: Service
) -> None:
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"}))
    service.work()
    dataset = client.get(orders).json()["id"]
    tenant = client.get("/me").json()["tenant"]["id"]

    def leases() -> Row:
        with service.database.tenant(tenant) as connection:
            query = select(read_leases.c.version, read_leases.c.lease_until - func.now()).where(
                read_leases.c.dataset_id == dataset, read_leases.c.reader == SCANS
            )
            return {row[0]: row[1].total_seconds() for row in connection.execute(query)}

    before = datetime.now(UTC)
    scan = scanned(client, orders, keep_seconds=120)
    kept = datetime.fromisoformat(scan["kept_until"])
    assert before + timedelta(seconds=119) <= kept <= datetime.now(UTC) + timedelta(seconds=121)
    assert 100 < leases()[1] <= 120
    # A request for a part extends it, and a shorter plan does not end it earlier. All share one lease.
    client.get(scan["parts"][0]["links"]["self"])
    assert 580 < leases()[1] <= 600
    scanned(client, orders, version=1, keep_seconds=60)
    assert list(leases()) == [1]
    assert leases()[1] > 580
    scanned(client, orders)
    assert leases()[1] > 3_500

    for note in "bc":
        client.post(f"{orders}/writes", json=upsert({"id": 1, "note": note}))
        service.work()

    def clean() -> None:
        client.post(f"{orders}/cleans", json={"versions": 1})
        service.work()

    clean()
    assert rows_of(client, scan) == ["{'id': 1, 'note': 'a'}"]
    with service.database.tenant(tenant) as connection:
        ended = update(read_leases).where(read_leases.c.dataset_id == dataset)
        connection.execute(ended.values(lease_until=func.now()))
    clean()
    problem(client.get(scan["parts"][0]["links"]["self"]), 410, "version-expired")
    problem(client.post(f"{orders}/scans", json={"version": 1}), 410, "version-expired")
    assert rows_of(client, scanned(client, orders)) == ["{'id': 1, 'note': 'c'}"]


def test_scan_is_unchanged_by_compactions_and_writes(client: httpx2.Client, service: Service) -> None:
    path = client.post("/datasets", json={**ORDERS, **LOGS}).headers["location"]
    for note in "ab":
        client.post(f"{path}/writes", json=upsert({"id": 1, "note": note}, {"id": ord(note), "note": note}))
        service.work()
    scan = scanned(client, path)
    before = page_rows(client, path)
    assert {part["format"] for part in scan["parts"]} == {"arrow"}
    client.post(f"{path}/compactions")
    service.work()
    client.post(f"{path}/writes", json=upsert({"id": 9, "note": "later"}))
    service.work()
    assert rows_of(client, scan) == before


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"version": 4}, "/version"),
        ({"version": 0, "tag": "x"}, "/tag"),
        ({"columns": ["nope"]}, "/columns"),
        ({"columns": []}, "/columns"),
        ({"partitions": ["day=1"]}, "/partitions"),
        ({"keep_seconds": 59}, "/keep_seconds"),
        ({"keep_seconds": 86_401}, "/keep_seconds"),
        ({"query": "incremental"}, "/query"),
        ({"where": "id = 1"}, "/where"),
    ],
    ids=json.dumps,
)
def test_invalid_member_is_named(client: httpx2.Client, orders: str, body: Row, pointer: str) -> None:
    members = problem(client.post(f"{orders}/scans", json=body), 400, "invalid-request")
    assert members["errors"][0]["pointer"] == pointer


@pytest.mark.parametrize("more", [{}, LOGS], ids=["vectors", "logs"])
def test_key_that_sees_a_part_scans_what_its_pages_have(service: Service, more: Row) -> None:
    tenant = service.tenants.add_tenant(f"scans in part {len(more)}")

    def key(**restriction: Any) -> str:
        grants = (Grant(datasets="*", scopes=(KeyScope.READ,), **restriction),)
        return service.tenants.make_key(tenant, (KeyScope.READ,), grants=grants).api_key

    owner = service.tenants.make_key(tenant, (KeyScope.READ, KeyScope.WRITE, KeyScope.MANAGE)).api_key
    with service.client(owner) as client:
        path = keyed_history(client, service, 7, **more)
        versions = (0, 2, client.get(path).json()["version"])
        links = [part["links"]["self"] for part in scanned(client, path)["parts"]]
    with service.client(key()) as client:
        assert rows_of(client, scanned(client, path)) == page_rows(client, path)
    for restriction in ({"where": "id > 5"}, {"mask": ("note",)}, {"where": "id > 5", "mask": ("region",)}):
        with service.client(key(**restriction)) as client:
            for version in versions:
                found = scanned(client, path, version=version)
                assert rows_of(client, found) == page_rows(client, path, version=version)
            for link in links:
                problem(client.get(link), 404, "not-found")
                assert client.head(link).status_code == 404
    with service.client(key(mask=("region",))) as client:
        refused = client.post(f"{path}/scans", json={"partitions": ["region=eu"]})
        problem(refused, 403, "masked-column")
    with service.client(service.new_key(f"stranger to scans {len(more)}")) as client:
        problem(client.get(links[0]), 404, "not-found")


@pytest.fixture(scope="module")
def linking(
    postgres: TestServer, redis: EmbeddedValkey, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    with linking_service(postgres, redis, tmp_path_factory.mktemp("linking"), prefix="lake") as service:
        yield service


@pytest.fixture
def linked(linking: Service) -> Iterator[Callable[[Row], Row]]:
    with linking.client(linking.new_key("scans by links")) as client:
        client.post("/datasets", json=ORDERS)

        def scan(row: Row) -> Row:
            client.post("/datasets/orders/writes", json=upsert(row))
            linking.work()
            [part] = scanned(client, "/datasets/orders")["parts"]
            return {
                "part": part,
                "answer": client.get(part["links"]["self"], headers={"Prefer": "redirect"}),
            }

        yield scan


def test_files_are_linked_in_the_storage_on_request(linking: Service, linked: Callable[[Row], Row]) -> None:
    first = linked({"id": 1, "note": "a"})
    assert (first["part"]["format"], first["answer"].status_code) == ("parquet", 307)
    link = urlsplit(first["answer"].headers["location"])
    assert link.netloc == "s3.example.com"
    assert link.path.startswith("/bucket/lake/")
    assert link.path.endswith(".parquet")
    assert parse_qs(link.query)["X-Amz-Expires"] == ["60"]
    # Rows that are merged are in no file, so there is no link to them.
    with linking.client(linking.new_key("rows without links")) as client:
        path = client.post("/datasets", json={**ORDERS, **LOGS}).headers["location"]
        for note in "ab":
            client.post(f"{path}/writes", json=upsert({"id": 1, "note": note}))
            linking.work()
        [part] = scanned(client, path)["parts"]
        answer = client.get(part["links"]["self"], headers={"Prefer": "redirect"})
        assert (part["format"], answer.status_code) == ("arrow", 200)
