"""A service whose tables have one tree of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx2
import pytest

import app.process.api
from app.core.feature.api import FeatureApi
from app.infra.identifiers import new_id
from app.infra.runtime.valkey import EmbeddedValkey
from tests.support.http import ORDERS
from tests.support.postgres import TestServer
from tests.support.service import SCOPES, Service, running_service, settings_for
from tests.support.tables_in_s3 import KnownTree, TableClient, table_client

PUBLIC_HOST = "tables.example.com"
TREE = KnownTree("notes")


@pytest.fixture(scope="module")
def service(postgres: TestServer, redis: EmbeddedValkey) -> Iterator[Service]:
    with (
        pytest.MonkeyPatch.context() as patch,
        TemporaryDirectory(prefix="headwater-tests-") as directory,
        postgres.fresh_database() as name,
    ):
        trees = FeatureApi(name="trees of tests", routes=(), object_trees=lambda _: {TREE.segment: TREE})
        patch.setattr(app.process.api, "APIS", (*app.process.api.APIS, trees))
        urls = (postgres.application_url(name), postgres.admin_url(name), redis.url)
        settings = settings_for(*urls, Path(directory), public_url=f"https://{PUBLIC_HOST}")
        with running_service(replace(settings, unused_file_seconds=3_600.0)) as running:
            yield running


@dataclass(frozen=True, kw_only=True)
class World:
    """A tenant with a table."""

    service: Service
    tenant_id: str
    api_key: str
    client: httpx2.Client
    tree: KnownTree

    def key(self, **settings: object) -> str:
        """Another key of the tenant."""
        return self.service.tenants.make_key(self.tenant_id, SCOPES, **settings).api_key

    def table(self, api_key: str | None = None, dataset: str = "orders") -> TableClient:
        """A client for the files of a table."""
        return table_client(self.service, api_key or self.api_key, dataset)


@pytest.fixture
def world(service: Service) -> Iterator[World]:
    tenant_id = service.tenants.add_tenant(f"tenant-{new_id()[-12:]}-x")
    api_key = service.tenants.make_key(tenant_id, SCOPES).api_key
    TREE.contents.clear()
    with service.client(api_key) as client:
        assert client.post("/datasets", json=ORDERS).status_code == 201
        yield World(service=service, tenant_id=tenant_id, api_key=api_key, client=client, tree=TREE)
