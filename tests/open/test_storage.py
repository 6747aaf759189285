"""Engines read tables whose files are in a bucket: they get no access to it, and see no difference."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from app.infra.files.storage import create_bucket
from app.infra.runtime.valkey import EmbeddedValkey
from clients.cluster.programs import ProgramError, Programs
from tests.open.conftest import Readers
from tests.open.datasets import OpenDataset, Tenant
from tests.open.engines import ENGINES, ROOT, Engine
from tests.open.facade import VendedTable
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
