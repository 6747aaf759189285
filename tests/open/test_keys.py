"""Keys for files that end while an engine reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from app.infra.runtime.valkey import EmbeddedValkey
from tests.open.conftest import Readers
from tests.open.datasets import OpenDataset, Tenant
from tests.open.engines import PYICEBERG, SPARK, EngineError
from tests.support.left_out import left_out
from tests.support.postgres import TestServer
from tests.support.service import Service, running_service, settings_for

pytestmark = left_out("OPEN", "test-open")
_KEY_SECONDS: Final = 8.0


@pytest.fixture(scope="module")
def service(postgres: TestServer, redis: EmbeddedValkey) -> Iterator[Service]:
    """A service whose keys live for a few seconds."""
    with TemporaryDirectory(prefix="headwater-tests-") as directory, postgres.fresh_database() as name:
        urls = (postgres.application_url(name), postgres.admin_url(name), redis.url)
        settings = replace(settings_for(*urls, Path(directory)), table_key_seconds=_KEY_SECONDS)
        with running_service(settings) as running:
            yield running


@pytest.fixture
def dataset(service: Service) -> Iterator[OpenDataset]:
    tenant = Tenant.new(service)
    fields = [{"name": "id", "type": "int64"}]
    found = tenant.dataset("brief", schema={"fields": fields}, record_key=["id"])
    found.upsert(*({"id": number} for number in range(20)))
    found.delete({"id": 3})
    yield found
    tenant.client.close()


def test_spark_gets_another_key_for_a_scan_that_is_longer_than_a_key_lives(
    reader: Readers, dataset: OpenDataset
) -> None:
    found = reader(SPARK).read(dataset.address, planning="client", pause_seconds=_KEY_SECONDS + 2)
    assert found.num_rows == 19


def test_pyiceberg_says_that_its_key_has_ended(reader: Readers, dataset: OpenDataset) -> None:
    running = reader(PYICEBERG)
    with pytest.raises(EngineError, match="ACCESS_DENIED"):
        running.read(dataset.address, planning="client", pause_seconds=_KEY_SECONDS + 2)
    assert running.read(dataset.address).num_rows == 19
