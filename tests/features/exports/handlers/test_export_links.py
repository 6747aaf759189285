"""Links to files in the storage: who gets one, and who gets the file."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2
import pytest

from app.access.tenants.values import KeyScope
from app.infra.runtime.valkey import EmbeddedValkey
from tests.support.exports import exported
from tests.support.http import ORDERS, TLS, problem, upsert
from tests.support.linking import linking_service
from tests.support.postgres import TestServer
from tests.support.service import Service

REDIRECT = {"Prefer": "redirect"}


@pytest.fixture(scope="module")
def linking(
    postgres: TestServer, redis: EmbeddedValkey, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A service whose links are those of a bucket. Its files are in a folder: no link is opened."""
    with linking_service(postgres, redis, tmp_path_factory.mktemp("linking"), prefix="tables") as service:
        yield service


@pytest.fixture(scope="module")
def owner(linking: Service) -> Iterator[httpx2.Client]:
    with linking.client(linking.new_key("owner")) as client:
        dataset = client.post("/datasets", json=ORDERS).headers["location"]
        client.post(f"{dataset}/writes", json=upsert({"id": 1, "note": "a"}))
        linking.work()
        yield client


@pytest.fixture(scope="module")
def files(owner: httpx2.Client, linking: Service) -> list[str]:
    """A file of an export, and one of a read job."""
    run = exported(owner, linking, "/datasets/orders", query="changes", format="ndjson")
    read = owner.post("/datasets/orders/reads", json={"disposition": "files", "format": "ndjson"})
    linking.work()
    listed = owner.get(f"{read.headers['location']}/result").json()["files"]
    return [run["files"][0]["links"]["self"], listed[0]["links"]["self"]]


def test_client_that_prefers_it_is_sent_to_the_storage(owner: httpx2.Client, files: list[str]) -> None:
    for file in files:
        answer = owner.get(file, headers=REDIRECT)
        assert (answer.status_code, answer.content) == (307, b"")
        assert answer.headers["preference-applied"] == "redirect"
        # The link is a credential.
        assert answer.headers["cache-control"] == "no-store"
        place = urlsplit(answer.headers["location"])
        assert (place.scheme, place.netloc) == ("https", "s3.example.com")
        assert place.path.startswith("/bucket/tables/")
        assert "X-Amz-Expires=60" in place.query
        # A range is requested from the storage.
        ranged = owner.get(file, headers=REDIRECT | {"Range": "bytes=0-0"})
        assert ranged.status_code == 307


def test_browser_that_prefers_it_is_sent_to_the_storage(
    linking: Service, owner: httpx2.Client, files: list[str]
) -> None:
    key = owner.headers["authorization"].removeprefix("Bearer ")
    with httpx2.Client(base_url=linking.url, trust_env=False, verify=TLS) as browser:
        assert browser.post("/console/session", data={"api_key": key}).status_code == 303
        answer = browser.get(f"/console{files[0]}", headers=REDIRECT)
        assert (answer.status_code, answer.content) == (307, b"")
        assert answer.headers["preference-applied"] == "redirect"
        assert urlsplit(answer.headers["location"]).netloc == "s3.example.com"
        assert answer.headers["cache-control"] == "private, no-store"
        assert browser.get(f"/console{files[0]}").status_code == 200


def test_other_clients_get_the_file(owner: httpx2.Client, files: list[str]) -> None:
    for file in files:
        for headers in ({}, {"Prefer": "wait=1"}):
            answer = owner.get(file, headers=headers)
            assert answer.status_code == 200
            assert answer.content
            assert "location" not in answer.headers
        assert owner.head(file).status_code == 200


def test_link_needs_the_access_that_the_file_needs(
    linking: Service, owner: httpx2.Client, files: list[str]
) -> None:
    with (
        linking.client(linking.new_key("other tenant")) as other,
        linking.client(linking.new_key("writer", [KeyScope.WRITE])) as writer,
    ):
        for file in files:
            problem(other.get(file, headers=REDIRECT), 404, "not-found")
            assert writer.get(file, headers=REDIRECT).status_code == 403
    for file in files:
        problem(owner.get(f"{file}x", headers=REDIRECT), 404, "not-found")


def test_service_without_links_sends_the_file(service: Service) -> None:
    with service.client(service.new_key("without links")) as client:
        dataset = client.post("/datasets", json=ORDERS).headers["location"]
        client.post(f"{dataset}/writes", json=upsert({"id": 1, "note": "a"}))
        service.work()
        run = exported(client, service, dataset, query="changes", format="ndjson")
        answer = client.get(run["files"][0]["links"]["self"], headers=REDIRECT)
        assert answer.status_code == 200
        assert "preference-applied" not in answer.headers
