"""Listings of the storage are for cleaning and checking only: no write or read needs one."""

from __future__ import annotations

from typing import NoReturn

import httpx2
import pytest

from app.infra.errors import StorageUnavailable
from app.infra.files.storage import LocalStorage
from tests.support.http import ORDERS, upsert
from tests.support.service import Service

ROWS = [{"id": number, "note": f"{number:0100d}"} for number in range(1_000)]


@pytest.fixture
def unlisted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A storage that refuses to list. What was to be listed."""
    refused: list[str] = []

    def refuse(storage: LocalStorage, prefix: str) -> NoReturn:
        refused.append(prefix)
        raise StorageUnavailable("listing is forbidden")

    monkeypatch.setattr(LocalStorage, "list", refuse)
    return refused


def run(service: Service, answer: httpx2.Response) -> dict[str, object]:
    """The job that a request has started, once it has succeeded."""
    assert answer.status_code in {200, 202}, answer.text
    service.work()
    client = httpx2.Client(
        headers={"Authorization": answer.request.headers["authorization"]}, trust_env=False
    )
    with client:
        job: dict[str, object] = client.get(answer.request.url.join(answer.json()["links"]["self"])).json()
    assert job["state"] == "succeeded", job
    return job


def test_writes_services_and_reads_need_no_listing(service: Service, unlisted: list[str]) -> None:
    with service.client(service.new_key("unlisted")) as client:
        path = client.post("/datasets", json={**ORDERS, "table_type": "merge_on_read"}).headers["location"]
        body = "\n".join(f'{{"id": {row["id"]}, "note": "{row["note"]}"}}' for row in ROWS)
        ndjson = {"Content-Type": "application/x-ndjson"}
        run(service, client.post(f"{path}/writes", content=body, headers=ndjson))
        upload = client.post(
            f"{path}/uploads", content=body, headers={"Content-Type": "application/octet-stream"}
        ).json()
        source = {"kind": "uploads", "upload_ids": [upload["id"]], "format": "ndjson"}
        run(service, client.post(f"{path}/writes", json={"operation": "upsert", "source": source}))
        run(service, client.post(f"{path}/writes", json=upsert({"id": 1, "note": "new"})))
        delete = {"operation": "delete", "source": {"kind": "rows", "rows": [{"id": 2}]}}
        run(service, client.post(f"{path}/writes", json=delete))
        run(service, client.post(f"{path}/compactions"))
        run(service, client.post(f"{path}/verifications"))
        read = run(
            service,
            client.post(f"{path}/reads", json={"query": "snapshot", "format": "csv", "disposition": "files"}),
        )
        [file] = client.get(f"/jobs/{read['id']}/result").json()["files"]
        assert len(client.get(f"/jobs/{read['id']}/result/files/{file['name']}").text.splitlines()) == 1_000
        run(service, client.post(f"{path}/restores", json={"version": 1}))

        rows = client.get(f"{path}/rows", params={"limit": 10_000}).json()["rows"]
        assert sorted(row["id"] for row in rows) == list(range(1_000))
        changes = client.get(f"{path}/changes", params={"limit": 10_000}).json()
        assert not changes["pending"]
        # The rows, an update, a deletion, and what took both back.
        assert len(changes["changes"]) == 1_000 + 2 + 1 + 3
    assert unlisted == []
