"""Exports with a destination: the files of each run are in its folder, whole, and with the manifest last."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx2
import pytest

from app.infra.files.folders import destination as destinations
from tests.support.exports import EVERY_MINUTE, ONCE, pass_time, write
from tests.support.http import problem, upsert
from tests.support.service import Service
from tests.support.webhooks import tenant_of


@pytest.fixture
def folder(client: httpx2.Client, service: Service) -> Path:
    """That of the tenant, whose parent the operator has made."""
    outgoing = service.settings.data_dir / "outgoing"
    outgoing.mkdir(exist_ok=True)
    return outgoing / tenant_of(client, service)


def created(client: httpx2.Client, orders: str, folder: Path, **members: Any) -> str:
    answer = client.post(f"{orders}/exports", json={**ONCE, "destination": folder.as_uri(), **members})
    assert answer.status_code in (201, 202), answer.text
    return str(answer.headers["location"])


def copies(run: dict[str, Any]) -> dict[str, bytes]:
    folder = Path(unquote(urlsplit(run["destination"]).path))
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def check(client: httpx2.Client, path: str, number: int) -> dict[str, Any]:
    """The run, whose files are in its destination as they are over HTTP."""
    run: dict[str, Any] = client.get(f"{path}/runs/{number}").json()
    found = copies(run)
    assert set(found) == {*(file["name"] for file in run["files"]), "manifest.json"}
    for file in run["files"]:
        assert found[file["name"]] == client.get(file["links"]["self"]).content
        assert hashlib.sha256(found[file["name"]]).hexdigest() == file["sha256"]
    assert found["manifest.json"] == client.get(run["links"]["manifest"]).content
    assert json.loads(found["manifest.json"])["offsets"] == run["offsets"]
    return run


def test_files_of_a_run_are_copied(
    client: httpx2.Client, orders: str, feed: str, service: Service, folder: Path
) -> None:
    path = created(client, orders, folder / "warehouse")
    service.work()
    run = check(client, path, 1)
    assert run["destination"] == f"{(folder / 'warehouse').as_uri()}/{path.rpartition('/')[2]}/run-000001"
    assert run["rows"] == 4
    assert client.get(path).json()["destination"] == (folder / "warehouse").as_uri()


def test_each_run_of_a_schedule_has_a_folder(
    client: httpx2.Client, orders: str, feed: str, service: Service, folder: Path
) -> None:
    path = created(client, orders, folder, schedule=EVERY_MINUTE["schedule"])
    service.work()
    write(client, service, orders, upsert({"id": 9}))
    pass_time(service, path)
    service.work()
    one, other = check(client, path, 1), check(client, path, 2)
    assert one["destination"] != other["destination"]
    assert client.delete(path).status_code == 204
    # What is in the folder of a tenant is not the service's to delete.
    assert copies(one)
    assert copies(other)


def test_run_that_was_killed_while_it_copied_goes_on_with_the_same_files(
    client: httpx2.Client,
    orders: str,
    feed: str,
    service: Service,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = created(client, orders, folder)

    put = destinations._Folder.put

    def dying(self: Any, name: str, chunks: Any) -> None:
        if name == "manifest.json":
            raise RuntimeError("the worker is gone")
        put(self, name, chunks)

    monkeypatch.setattr(destinations._Folder, "put", dying)
    with pytest.raises(RuntimeError, match="the worker is gone"):
        service.work()
    monkeypatch.undo()
    [run_folder] = folder.glob("*/*")
    [part] = [each.name for each in run_folder.iterdir()]
    before = (run_folder / part).read_bytes()
    assert client.get(f"{path}/runs/1").json()["files"] == []
    # What is written meanwhile belongs to a later run.
    client.post(f"{orders}/writes", json=upsert({"id": 77}))
    service.work()
    run = check(client, path, 1)
    assert copies(run)[part] == before
    assert run["offsets"] == {"since": 0, "next_since": 4}


def test_destination_that_takes_no_files_fails_the_run_until_it_does(
    client: httpx2.Client, orders: str, feed: str, service: Service, folder: Path
) -> None:
    folder.mkdir()
    (folder / "here").write_bytes(b"a file")
    path = created(client, orders, folder / "here")
    service.work()
    state = client.get(path).json()
    assert (state["state"], state["offset"], state["runs"][0]["state"]) == ("active", 0, "failed")
    assert state["error"]["type"] == "/problems/destination-failed"
    assert "Not a directory" in state["error"]["detail"]
    assert client.get(f"{path}/runs/1").json()["files"] == []
    (folder / "here").unlink()
    client.post(f"{path}/runs")
    service.work()
    check(client, path, 1)
    assert client.get(path).json()["state"] == "ended"


@pytest.mark.parametrize(
    "uri",
    [
        "file:///etc",
        "{folder}/../other",
        "{folder}x",
        "{folder}/%2E%2E/x",
        "{parent}",
        "s3://outgoing/other",
        "s3://outgoing/exportsx",
        "gs://outgoing/exports",
        "outgoing",
        "{folder}/x#y",
    ],
)
def test_destinations_that_the_operator_has_not_named_are_refused(
    client: httpx2.Client, orders: str, feed: str, folder: Path, uri: str
) -> None:
    wanted = uri.format(folder=folder.as_uri(), parent=folder.parent.as_uri())
    answer = client.post(f"{orders}/exports", json={**ONCE, "destination": wanted})
    found = problem(answer, 400, "invalid-request")
    assert [error["pointer"] for error in found["errors"]] == ["/destination"]
