"""Engines read one version whatever is committed, compacted and cleaned meanwhile, also where a key ends in a scan."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from app.infra.runtime.valkey import EmbeddedValkey
from tests.open.conftest import Readers
from tests.open.datasets import OpenDataset, Tenant
from tests.open.engines import ENGINES, PYICEBERG, Engine, Reader
from tests.open.facade import VendedTable
from tests.support.left_out import left_out
from tests.support.postgres import TestServer
from tests.support.service import Service, running_service, settings_for

_ROWS: Final = 30
_COMMITS: Final = 25
_SCHEMA: Final = {
    "fields": [
        {"name": "id", "type": "int64"},
        {"name": "n", "type": "int32"},
        {"name": "note", "type": "string"},
    ]
}


@pytest.fixture(scope="module")
def service(postgres: TestServer, redis: EmbeddedValkey) -> Iterator[Service]:
    """A service whose files outlive their versions by the time that a deployment has."""
    with TemporaryDirectory(prefix="headwater-tests-") as directory, postgres.fresh_database() as name:
        urls = (postgres.application_url(name), postgres.admin_url(name), redis.url)
        settings = replace(settings_for(*urls, Path(directory)), unused_file_seconds=3_600.0)
        with running_service(settings) as running:
            yield running


@pytest.fixture
def own(service: Service) -> Iterator[Tenant]:
    found = Tenant.new(service)
    yield found
    found.client.close()


def _commit(dataset: OpenDataset, number: int) -> None:
    """All rows get the number of the commit: a reader that mixes versions sees several."""
    dataset.upsert(*({"id": each, "n": number, "note": f"{number} {each}"} for each in range(_ROWS)))


def _churn(dataset: OpenDataset, faults: list[BaseException]) -> None:
    try:
        for number in range(2, _COMMITS):
            _commit(dataset, number)
            if number % 5 == 0:
                dataset.succeed("compactions")
            if number % 6 == 0:
                dataset.succeed("cleans", versions=10)
    except BaseException as fault:
        faults.append(fault)


@left_out("OPEN", "test-open")
@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_each_read_is_of_one_version_while_others_are_committed(
    reader: Readers, own: Tenant, engine: Engine
) -> None:
    dataset = own.dataset("churn", schema=_SCHEMA, record_key=["id"])
    _commit(dataset, 1)
    faults: list[BaseException] = []
    writer = threading.Thread(target=_churn, args=(dataset, faults))
    writer.start()
    reads = 0
    running = reader(engine)
    try:
        while writer.is_alive() or not reads:
            warehouse = engine.warehouses[reads % len(engine.warehouses)]
            rows = running.read(dataset.address, warehouse=warehouse).to_pydict()
            assert sorted(rows["id"]) == list(range(_ROWS))
            assert len(set(rows["n"])) == 1
            reads += 1
    finally:
        writer.join()
    assert not faults, faults


def _held(
    running: Reader, dataset: OpenDataset, folder: Path, meanwhile: Callable[[], None]
) -> list[dict[str, list[object]] | BaseException]:
    """What a reader gets that has loaded the table before something happens, and reads the rows after it."""
    found: list[dict[str, list[object]] | BaseException] = []
    gate = folder / "gate"

    def read() -> None:
        try:
            found.append(running.read(dataset.address, until=str(gate), planning="client").to_pydict())
        except BaseException as fault:
            found.append(fault)

    reading = threading.Thread(target=read)
    reading.start()
    while not gate.with_suffix(".loaded").exists():
        assert reading.is_alive(), found
        time.sleep(0.01)
    meanwhile()
    gate.touch()
    reading.join()
    return found


@left_out("OPEN", "test-open")
def test_version_that_expires_while_it_is_read_is_read_to_its_end(
    reader: Readers, own: Tenant, tmp_path: Path
) -> None:
    dataset = own.dataset("expires", schema=_SCHEMA, record_key=["id"])
    _commit(dataset, 1)
    dataset.delete({"id": 3})

    def expire() -> None:
        _commit(dataset, 2)
        dataset.succeed("compactions")
        dataset.succeed("cleans", versions=1)
        assert dataset.kept_versions() == [dataset.version]

    [rows] = _held(reader(PYICEBERG), dataset, tmp_path, expire)
    assert isinstance(rows, dict), rows
    assert (len(rows["id"]), set(rows["n"])) == (_ROWS - 1, {1})


def test_objects_of_a_version_that_expires_are_there_as_long_as_a_key(own: Tenant) -> None:
    dataset = own.dataset("stays", schema=_SCHEMA, record_key=["id"])
    _commit(dataset, 1)
    dataset.delete({"id": 3})
    table = VendedTable.loaded(own.client, dataset.address)
    _commit(dataset, 2)
    dataset.succeed("compactions")
    dataset.succeed("cleans", versions=1)
    assert table.content(table.document["metadata-location"])
    for snapshot in table.snapshots():
        for entry in table.entries(snapshot):
            assert table.content(entry["data_file"]["file_path"])
    later = VendedTable.loaded(own.client, dataset.address)
    assert [each["snapshot-id"] for each in later.snapshots()] == [dataset.version]
