"""Read jobs with a destination: their files are in its folder, whole, and with the manifest last."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx2
import pytest

from app.features.reads.repository import ReadResultStore
from app.infra.files.folders import destination as destinations
from tests.support.http import problem
from tests.support.service import Service
from tests.support.webhooks import tenant_of


@pytest.fixture
def folder(client: httpx2.Client, service: Service) -> Path:
    outgoing = service.settings.data_dir / "outgoing"
    outgoing.mkdir(exist_ok=True)
    return outgoing / tenant_of(client, service)


def read(client: httpx2.Client, orders: str, folder: Path, **members: Any) -> str:
    body = {"format": "csv", "order_by": [{"column": "id"}], "destination": folder.as_uri(), **members}
    answer = client.post(f"{orders}/reads", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.headers["location"])


def copies(uri: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(unquote(urlsplit(uri).path)).iterdir()}


def test_files_of_a_result_are_copied_with_a_manifest(
    client: httpx2.Client, orders: str, feed: str, service: Service, folder: Path
) -> None:
    job = read(client, orders, folder / "reports", disposition="files")
    service.work()
    result = client.get(f"{job}/result").json()
    assert result["destination"] == f"{(folder / 'reports').as_uri()}/{job.rpartition('/')[2]}"
    found = copies(result["destination"])
    manifest = json.loads(found.pop("manifest.json"))
    assert found == {"part-00001-00001.csv": b'"id","note"\n1,"c"\n2,"b"\n'}
    [file] = manifest["files"]
    assert client.get(result["files"][0]["links"]["self"]).content == found[file["name"]]
    assert hashlib.sha256(found[file["name"]]).hexdigest() == file["sha256"]
    assert (manifest["version"], manifest["rows"], manifest["dataset_name"]) == (2, 2, "orders")
    assert client.get(job).json()["result"]["destination"] == result["destination"]


def test_result_without_rows_has_a_manifest(
    client: httpx2.Client, orders: str, feed: str, service: Service, folder: Path
) -> None:
    job = read(client, orders, folder, where="id = 99")
    service.work()
    found = copies(client.get(job).json()["result"]["destination"])
    assert json.loads(found["manifest.json"])["rows"] == 0
    # What it was written from is no file of the service any more.
    storage = service.settings.data_dir / "storage"
    assert not list(storage.glob(f"*/{orders.rsplit('/', 1)[1]}/**/manifest.json"))


def test_attempt_after_one_that_had_copied_its_files_leaves_these_as_they_are(
    client: httpx2.Client,
    orders: str,
    feed: str,
    service: Service,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = read(client, orders, folder)

    def dies(*args: Any) -> bool:
        raise RuntimeError("the worker is gone")

    monkeypatch.setattr(ReadResultStore, "finish", dies)
    with pytest.raises(RuntimeError, match="the worker is gone"):
        service.work()
    monkeypatch.undo()
    before = copies(f"{folder.as_uri()}/{job.rpartition('/')[2]}")
    service.work()
    after = copies(client.get(job).json()["result"]["destination"])
    assert before["part-00001-00001.csv"] == after["part-00001-00001.csv"]
    [file] = json.loads(after["manifest.json"])["files"]
    assert file["name"] != "part-00001-00001.csv"
    assert hashlib.sha256(after[file["name"]]).hexdigest() == file["sha256"]


def test_destination_that_takes_no_files_fails_the_job(
    client: httpx2.Client, orders: str, feed: str, service: Service, folder: Path
) -> None:
    folder.write_text("")
    job = read(client, orders, folder / "reports")
    service.work()
    failed = client.get(job).json()
    assert (failed["state"], failed["error"]["type"]) == ("failed", "/problems/destination-failed")


def test_folder_that_is_not_admitted_is_refused(
    client: httpx2.Client, orders: str, feed: str, service: Service, folder: Path
) -> None:
    storage = (service.settings.data_dir / "storage").as_uri()
    for uri in ("file:///etc", "s3://elsewhere/x", storage, "nowhere"):
        refused = client.post(f"{orders}/reads", json={"destination": uri})
        assert problem(refused, 400, "invalid-request")["errors"][0]["pointer"] == "/destination"


def test_request_without_a_destination_is_the_same_as_before(
    client: httpx2.Client, orders: str, feed: str, service: Service
) -> None:
    key = {"Idempotency-Key": "one"}
    first, again = (client.post(f"{orders}/reads", json={"format": "csv"}, headers=key) for _ in range(2))
    assert again.headers["idempotency-replayed"] == "true"
    other = client.post(f"{orders}/reads", json={"format": "csv", "destination": "file:///x"}, headers=key)
    assert first.headers["location"] == again.headers["location"]
    assert other.status_code in (400, 422)


def test_manifest_comes_after_all_other_files(
    client: httpx2.Client,
    orders: str,
    feed: str,
    service: Service,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names: list[str] = []
    original = destinations._Folder.put

    def noted(self: Any, name: str, chunks: Any) -> None:
        names.append(name)
        original(self, name, chunks)

    monkeypatch.setattr(destinations._Folder, "put", noted)
    read(client, orders, folder)
    service.work()
    assert names == ["part-00001-00001.csv", "manifest.json"]
