"""Engines read tables whose files are in a bucket: they get no access to it, and see no difference."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from app.features.rendered_files.repository.evictions import EvictionStore
from app.features.rendered_files.service.eviction import EvictRenderings
from app.features.retention.compose import reaper
from app.infra.files.storage import create_bucket
from app.infra.runtime.valkey import EmbeddedValkey
from app.kernel.format.paths import dataset_prefix
from clients.cluster.programs import ProgramError, Programs
from tests.open.conftest import Readers
from tests.open.datasets import OpenDataset, Tenant, answered
from tests.open.engines import DUCKDB, ENGINES, ROOT, Engine, started
from tests.open.facade import VendedTable
from tests.open.grants import NarrowDataset, Restriction
from tests.open.tables import TABLES
from tests.open.test_tables import check_versions
from tests.support.left_out import left_out
from tests.support.postgres import TestServer
from tests.support.s3_server import S3Server
from tests.support.service import Service, running_service, settings_for

pytestmark = left_out("OPEN", "test-open")
_URI = "s3://headwater/some tables"


@pytest.fixture(scope="module")
def service(postgres: TestServer, redis: EmbeddedValkey) -> Iterator[Service]:
    """A service whose storage is a bucket."""
    try:
        programs = Programs.found(os.pathsep.join([str(ROOT / ".venv-cluster" / "bin"), os.environ["PATH"]]))
    except ProgramError as error:
        pytest.skip(str(error))
    with (
        S3Server.running(programs.versitygw),
        TemporaryDirectory(prefix="headwater-tests-") as directory,
        postgres.fresh_database() as name,
    ):
        create_bucket(_URI)
        urls = (postgres.application_url(name), postgres.admin_url(name), redis.url)
        with running_service(settings_for(*urls, Path(directory), storage_uri=_URI)) as running:
            yield running


@pytest.fixture(scope="module")
def dataset(service: Service) -> Iterator[OpenDataset]:
    tenant = Tenant.new(service)
    yield TABLES["compacted"](tenant)
    tenant.client.close()


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_engines_read_tables_in_a_bucket(reader: Readers, dataset: OpenDataset, engine: Engine) -> None:
    check_versions(reader(engine), dataset)
    table = VendedTable.loaded(dataset.client, dataset.address)
    assert "some tables" not in str(table.document)
    assert len(table.objects()) > 3


def test_keys_that_see_a_part_read_tables_in_a_bucket(
    service: Service, dataset: OpenDataset, tmp_path: Path
) -> None:
    narrow = NarrowDataset.of(dataset, Restriction(where="id < 30", mask=("name",)))
    storage, place = service.platform.storage, _rendered_place(service, dataset)

    def read() -> list[str]:
        """Reads each version with a process of its own, which has no file yet. Returns the objects."""
        duckdb = started(DUCKDB, tmp_path)
        try:
            check_versions(duckdb, narrow)
        finally:
            duckdb.stop()
        return [path for path, _ in storage.list(place)]

    objects = read()
    assert objects
    # It was deleted to make room, or is missing in the bucket.
    _evict(service)
    assert not list(storage.list(place))
    later = read()
    assert len(later) == len(objects)
    storage.delete(later)
    assert len(read()) == len(objects)
    narrow.client.close()


def test_rendered_files_in_a_bucket_end_with_their_dataset(service: Service) -> None:
    tenant = Tenant.new(service)
    dataset = tenant.dataset("ends", schema={"fields": [{"name": "id", "type": "int64"}]}, record_key=["id"])
    dataset.upsert(*({"id": number} for number in range(20)))
    narrow = NarrowDataset.of(dataset, Restriction(where="id < 3"))
    VendedTable.loaded(narrow.client, narrow.address)
    place = _rendered_place(service, dataset)
    assert list(service.platform.storage.list(place))
    answered(dataset.client.delete(dataset.path), 204)
    replace(reaper(service.platform), grace_seconds=0.0).run()
    assert not list(service.platform.storage.list(place))
    for each in (narrow, dataset):
        each.client.close()


def _rendered_place(service: Service, dataset: OpenDataset) -> str:
    """The folder of the rendered files of a dataset, below the root of the storage."""
    found = answered(dataset.client.get(dataset.path)).json()
    tenant_id = answered(dataset.client.get("/me")).json()["tenant"]["id"]
    return f"{dataset_prefix(tenant_id, found['id'])}/rendered"


def _evict(service: Service) -> None:
    EvictRenderings(
        store=EvictionStore(service.platform.database),
        storage=service.platform.storage,
        bytes_max=0,
        tenant_bytes_max=0,
    ).run()
