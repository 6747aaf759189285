"""`headwater export`: all of a tenant's data in a folder."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pyarrow.parquet as pq
import pytest

from app.features.reads import tasks as read_tasks
from clients.export import dataset as exported_dataset
from clients.export import feed as exported_feed
from clients.export.folder import folder_name
from clients.export.tenant import TenantExport
from clients.export.values import ExportError
from headwater_client import Dataset, Headwater, NewDataset, NewField, NewView
from headwater_client.models import Grant
from tests.support.command_line import command_line, use_service
from tests.support.derived_views import LONG, long
from tests.support.service import Service
from tests.support.shares import share

SYSTEM_COLUMNS = {"offset", "op", "system_time", "event_time", "version", "corrects_offset"}
PUTS = {0: 1, 1: -1, 2: -1, 3: 1}
FIELDS = (NewField(name="id", type="int64"), NewField(name="note", type="string"))

Hook = Callable[[httpx2.Request, httpx2.Response], httpx2.Response]


class Observed(httpx2.HTTPTransport):
    """Records requests, and passes each response through a function."""

    def __init__(self, hook: Hook = lambda _, response: response) -> None:
        super().__init__()
        self.hook = hook
        self.requests: list[str] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(f"{request.method} {request.url.path.rpartition('/')[2]}")
        return self.hook(request, super().handle_request(request))


@pytest.fixture(autouse=True)
def worker(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # Several files of each kind.
    monkeypatch.setattr(read_tasks, "PART_BYTES", 1)
    monkeypatch.setattr(exported_feed, "PAGE_CHANGES", 2)
    monkeypatch.setattr(exported_feed, "FILE_BYTES", 1)
    with service.working():
        yield


@pytest.fixture
def filled(headwater: Headwater, orders: Dataset, service: Service) -> Headwater:
    """A tenant with a keyed dataset, a keyless one, an empty one, one without a feed, and a view."""
    service.derivation.queries["long"] = long
    view = headwater.create_view(NewView(name="long", sql=LONG))
    headwater.write_rows(orders, [{"id": n, "note": f"note {n}"} for n in range(6)], wait=30)
    headwater.write_rows(orders, [{"id": 1, "note": "changed"}], wait=30)
    headwater.write_rows(orders, [{"id": 2}], operation="delete", wait=30)
    headwater.create_consumer(orders, "billing")
    events = headwater.create_dataset(NewDataset(name="Events", fields=FIELDS))
    headwater.write_rows(events, [{"id": 1, "note": None}] * 2, operation="insert", wait=30)
    headwater.create_dataset(NewDataset(name="empty", fields=FIELDS, record_key=("id",)))
    quiet = NewDataset(name="quiet", fields=FIELDS, producer="none")
    headwater.write_rows(headwater.create_dataset(quiet), [{"id": 3}], operation="insert", wait=30)
    headwater.refresh_view(view, wait=30)
    return headwater


@pytest.fixture
def run(service: Service, api_key: str, tmp_path: Path) -> Callable[..., list[str]]:
    """Exports to a folder, and returns the requests that it took."""

    def export(*arguments: str, hook: Hook = lambda _, response: response) -> list[str]:
        transport = Observed(hook)
        with Headwater(service.url, api_key, transport=transport) as client:
            TenantExport(client=client, folder=tmp_path, progress=lambda _: None).run(*arguments)
        return transport.requests

    return export


def manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_bytes())
    return found


def rows_and_changes(found: dict[str, Any]) -> list[dict[str, Any]]:
    files = [file for each in found["datasets"] for file in each["files"]]
    return [file for file in files if file["path"].endswith(".parquet")]


def table(folder: Path) -> Counter[str]:
    files = sorted(folder.glob("*.parquet"))
    return Counter(repr(row) for file in files for row in pq.read_table(file).to_pylist())


def fold(folder: Path) -> Counter[str]:
    rows: Counter[str] = Counter()
    for file in sorted(folder.glob("*.parquet")):
        for change in pq.read_table(file).to_pylist():
            row = {name: value for name, value in change.items() if name not in SYSTEM_COLUMNS}
            rows[repr(row)] += PUTS[change["op"]]
    return +rows


def test_folder_has_rows_and_changes_of_every_dataset_and_nothing_of_other_tenants(
    filled: Headwater,
    service: Service,
    api_key: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Headwater(service.url, service.new_key("neighbour"), transport=httpx2.HTTPTransport()) as other:
        of_other = other.create_dataset(NewDataset(name="orders", fields=FIELDS, record_key=("id",)))
        other.write_rows(of_other, [{"id": 7, "note": "secret"}], wait=30)
    reader = filled.create_key("export", ["read"])
    use_service(monkeypatch, service.url, reader.api_key)
    assert "5 datasets and views of client-" in command_line(capsys)("export", tmp_path).out

    found = manifest(tmp_path)
    assert found["failed"] == []
    datasets = {each["name"]: each for each in found["datasets"]}
    assert set(datasets) == {"orders", "Events", "empty", "long", "quiet"}
    for name, each in datasets.items():
        folder = tmp_path / "datasets" / folder_name(name)
        dataset = filled.get_dataset(name)
        expected = Counter(repr(row) for row in filled.rows(dataset))
        assert table(folder / "rows") == expected
        assert (each["version"], each["rows"]) == (dataset.version, expected.total())
        if name == "quiet":
            assert each["changes"] is None
        else:
            assert fold(folder / "changes") == expected
            assert each["changes"] == {"since": 0, "next_since": dataset.next_offset}
        definition = json.loads((folder / "dataset.json").read_bytes())
        assert (definition["dataset"]["id"], len(definition["schemas"])) == (dataset.id, 1)
    consumers = json.loads((tmp_path / "datasets/orders/consumers.json").read_bytes())
    assert "billing" in [each["name"] for each in consumers]
    assert len(list((tmp_path / "datasets/orders/rows").iterdir())) == 3
    assert len(list((tmp_path / "datasets/orders/changes").iterdir())) > 2

    listed = [*found["files"], *(file for each in found["datasets"] for file in each["files"])]
    stored = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {file["path"] for file in listed} == {
        str(path.relative_to(tmp_path)) for path in stored if path.name not in {"manifest.json", "files.json"}
    }
    for file in listed:
        content = (tmp_path / file["path"]).read_bytes()
        assert (file["size_bytes"], file["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    assert not any(b"secret" in path.read_bytes() for path in stored)
    assert list(filled.exports("orders")) == []


@share(3)
def test_second_export_downloads_only_what_is_new_or_damaged(
    filled: Headwater, run: Callable[..., list[str]], tmp_path: Path
) -> None:
    run()
    before = manifest(tmp_path)
    assert not {"POST reads", "GET changes"} & set(run())
    assert rows_and_changes(manifest(tmp_path)) == rows_and_changes(before)
    filled.write_rows("Events", [{"id": 9, "note": "late"}], operation="insert", wait=30)
    [damaged, *_] = (tmp_path / "datasets/orders/rows").iterdir()
    damaged.write_bytes(b"#" + damaged.read_bytes()[1:])
    assert run("empty").count("POST reads") == 0
    assert run().count("POST reads") == 2
    versions = {each["name"]: each["version"] for each in manifest(tmp_path)["datasets"]}
    assert versions == {name: filled.get_dataset(name).version for name in versions}
    assert table(tmp_path / "datasets/orders/rows") == Counter(repr(row) for row in filled.rows("orders"))
    assert fold(tmp_path / "datasets" / folder_name("Events") / "changes").total() == 3


@share(3)
@pytest.mark.parametrize("number", [2, 5], ids=["rows", "changes"])
def test_interrupted_export_continues(
    filled: Headwater, run: Callable[..., list[str]], tmp_path: Path, number: int
) -> None:
    downloads: list[str] = []

    def interrupt(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        if request.url.path.endswith((".parquet", "/changes")):
            downloads.append(request.url.path)
            if len(downloads) == number:
                raise KeyboardInterrupt
        return response

    with pytest.raises(KeyboardInterrupt):
        run("orders", hook=interrupt)
    assert not (tmp_path / "manifest.json").exists()
    requests = run("orders")
    assert "POST reads" not in requests
    # Three files of rows, and nine changes in pages of two.
    assert sum(each.endswith((".parquet", " changes")) for each in requests) == 3 + 5 - (number - 1)
    orders = tmp_path / "datasets/orders"
    expected = Counter(repr(row) for row in filled.rows("orders"))
    assert table(orders / "rows") == fold(orders / "changes") == expected
    assert not (tmp_path / "partial").exists()


@share(3)
def test_damaged_download_fails_its_dataset_only_and_the_next_run_continues(
    filled: Headwater, run: Callable[..., list[str]], tmp_path: Path
) -> None:
    def damage(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        if not request.url.path.endswith("part-00002.parquet"):
            return response
        return httpx2.Response(206, content=b"#" + response.read()[1:])

    run(hook=damage)
    found = manifest(tmp_path)
    failed = {each["name"]: each["reason"] for each in found["failed"]}
    # The view has one file or several: a refresh takes the writes that it finds.
    assert {"orders"} <= set(failed) <= {"long", "orders"}
    assert all("checksum" in reason for reason in failed.values())
    assert {each["name"] for each in found["datasets"]} == {
        "orders",
        "Events",
        "empty",
        "long",
        "quiet",
    } - set(failed)
    assert "GET part-00001.parquet" not in run()
    assert manifest(tmp_path)["failed"] == []


@share(3)
def test_export_of_a_version_that_expires_starts_again_with_the_next(
    filled: Headwater, run: Callable[..., list[str]], tmp_path: Path
) -> None:
    expired = {"type": "/problems/offset-expired", "status": 410, "title": "expired", "detail": "gone"}
    refused: list[str] = []

    def expire(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        if request.url.path.endswith("/changes") and not refused:
            refused.append(request.url.path)
            headers = {"content-type": "application/problem+json"}
            return httpx2.Response(410, content=json.dumps(expired), headers=headers)
        return response

    assert run("orders", hook=expire).count("POST reads") == 2
    assert manifest(tmp_path)["failed"] == []


def test_command_refuses_keys_and_folders_that_do_not_fit_and_names_failed_datasets(
    filled: Headwater,
    run: Callable[..., list[str]],
    service: Service,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refusal(api_key: str, folder: Path) -> str:
        use_service(monkeypatch, service.url, api_key)
        return command_line(capsys)("export", folder, fails=1).err

    part = filled.create_key("part", ["read"], grants=[Grant(datasets="orders", scopes=("read",))])
    assert "grants" in refusal(part.api_key, tmp_path.with_name("unused"))
    assert "scope read" in refusal(
        filled.create_key("writer", ["write"]).api_key, tmp_path.with_name("unused")
    )
    monkeypatch.setattr(exported_dataset, "service_checksum", lambda _: "another")
    reader = filled.create_key("reader", ["read"]).api_key
    assert "not exported: Events, long, orders, quiet" in refusal(reader, tmp_path)
    assert "another tenant" in refusal(service.new_key("stranger"), tmp_path)
    used = tmp_path / "datasets"
    assert "is not an export" in refusal(reader, used)
    with pytest.raises(ExportError, match="no dataset"):
        run("nothing*")
    assert (tmp_path / "manifest.json").exists()


def test_names_of_folders_are_safe_and_distinct() -> None:
    names = ["orders", "Orders", "ORDERS", "con", "a.", "a.b", "nul.x", "_x", "../../x"]
    folders = [folder_name(name) for name in names]
    assert folders[0] == "orders"
    assert folders[5] == "a.b"
    assert folders[7] == "_x"
    assert len({folder.casefold() for folder in folders}) == len(names)
    assert not any("/" in folder or folder.startswith(".") for folder in folders)
