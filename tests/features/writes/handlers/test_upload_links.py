"""Uploads that are sent to the storage by a link."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2
import pytest

from app.infra.runtime.valkey import EmbeddedValkey
from tests.support.http import ORDERS, problem, upsert
from tests.support.linking import linking_service
from tests.support.postgres import TestServer
from tests.support.service import Service

ROWS = b'{"id": 1, "note": "a"}\n{"id": 2, "note": "b"}\n'


@pytest.fixture(scope="module")
def linking(
    postgres: TestServer, redis: EmbeddedValkey, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A service whose links are those of a bucket. Its files are in a folder: tests put the bytes there."""
    with linking_service(postgres, redis, tmp_path_factory.mktemp("linking"), prefix="") as service:
        yield service


@pytest.fixture
def owner(linking: Service) -> Iterator[httpx2.Client]:
    with linking.client(linking.new_key(uuid4().hex)) as client:
        client.post("/datasets", json=ORDERS)
        yield client


def link(client: httpx2.Client, content: bytes, **headers: str) -> dict[str, Any]:
    body = {"size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    answer = client.post("/datasets/orders/upload-links", json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    assert answer.headers["cache-control"] == "no-store"
    found: dict[str, Any] = answer.json()
    return found


def put(service: Service, made: dict[str, Any], content: bytes) -> None:
    """What the storage does with a PUT."""
    assert made["method"] == "PUT"
    path = Path(urlsplit(service.settings.storage_uri).path) / urlsplit(made["url"]).path.removeprefix(
        "/bucket/"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def write(client: httpx2.Client, *ids: str) -> httpx2.Response:
    source = {"kind": "uploads", "upload_ids": list(ids), "format": "ndjson"}
    return client.post("/datasets/orders/writes", json={"operation": "upsert", "source": source})


def test_rows_that_were_sent_to_a_link_are_written(owner: httpx2.Client, linking: Service) -> None:
    made = link(owner, ROWS)
    assert made["headers"]["Content-Length"] == str(len(ROWS))
    put(linking, made, ROWS)
    more = owner.post(
        "/datasets/orders/uploads",
        content=b'{"id": 3, "note": "c"}',
        headers={"Content-Type": "application/octet-stream"},
    )
    job = write(owner, made["id"], more.json()["id"]).json()
    linking.work()
    assert owner.get(f"/jobs/{job['id']}").json()["state"] == "succeeded"
    rows = owner.get("/datasets/orders/rows").json()["rows"]
    assert sorted(row["id"] for row in rows) == [1, 2, 3]


@pytest.mark.parametrize("content", [None, ROWS[:-1]], ids=["nothing", "fewer_bytes"])
def test_write_of_an_upload_that_is_not_there_is_refused(
    owner: httpx2.Client, linking: Service, content: bytes | None
) -> None:
    made = link(owner, ROWS)
    if content is not None:
        put(linking, made, content)
    refused = problem(write(owner, made["id"]), 409, "upload-incomplete")
    assert (refused["upload_id"], refused["size_bytes"]) == (made["id"], len(ROWS))
    put(linking, made, ROWS)
    assert write(owner, made["id"]).status_code == 202


def test_other_bytes_than_announced_fail_the_write_and_change_nothing(
    owner: httpx2.Client, linking: Service
) -> None:
    made = link(owner, ROWS)
    put(linking, made, ROWS.replace(b"a", b"z"))
    job = write(owner, made["id"]).json()
    linking.work()
    failed = owner.get(f"/jobs/{job['id']}").json()
    assert (failed["state"], failed["error"]["type"]) == ("failed", "/problems/corrupt-file")
    assert owner.get("/datasets/orders/rows").json()["rows"] == []


def test_link_is_replayed_to_its_key(owner: httpx2.Client) -> None:
    first, second = (link(owner, ROWS, **{"Idempotency-Key": "once"}) for _ in range(2))
    assert first == second


def test_links_are_bounded_and_need_the_scope(owner: httpx2.Client, linking: Service) -> None:
    path, digest = "/datasets/orders/upload-links", "ab" * 32
    most = linking.settings.upload_bytes_max
    refused = problem(
        owner.post(path, json={"size_bytes": most + 1, "sha256": digest}), 413, "body-too-large"
    )
    assert refused["limit_bytes"] == most
    for body in (
        {"size_bytes": 0, "sha256": digest},
        {"size_bytes": 1},
    ):
        problem(owner.post(path, json=body), 400, "invalid-request")
    upper = owner.post(path, json={"size_bytes": 1, "sha256": digest.upper()})
    [error] = problem(upper, 400, "invalid-request")["errors"]
    assert error["pointer"] == "/sha256"
    assert error["detail"].startswith("expected 64 hexadecimal digits in lower case")
    problem(
        owner.post("/datasets/none/upload-links", json={"size_bytes": 1, "sha256": digest}), 404, "not-found"
    )


def test_storage_without_links_says_so(client: httpx2.Client, orders: str) -> None:
    body = {"size_bytes": 1, "sha256": "ab" * 32}
    detail = problem(client.post(f"{orders}/upload-links", json=body), 409, "links-unavailable")["detail"]
    assert "/uploads" in detail
    assert client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"})).status_code == 202
