"""A service with a share, and requests of its recipients."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.features.sharing.repository.recipients import ShareRecipientStore
from app.features.sharing.repository.shares import ShareStore
from app.features.sharing.values import (
    DeletedRows,
    NewRecipient,
    NewShare,
    RecipientGrant,
    Share,
    new_share_token,
)
from app.infra.identifiers import new_id
from app.infra.runtime.valkey import EmbeddedValkey
from tests.support.postgres import TestServer
from tests.support.service import SCOPES, Service, running_service, settings_for

TABLE = "/shares/sales/schemas/default/tables/{}"
DELTA = "responseformat=delta;readerfeatures=deletionvectors,columnmapping,timestampntz"
ITEMS = {
    "name": "items",
    "schema": {
        "fields": [
            {"name": "id", "type": "int64"},
            {"name": "region", "type": "string"},
            {"name": "price", "type": "decimal(9, 2)"},
        ]
    },
    "record_key": ["id"],
}


@dataclass(frozen=True, kw_only=True)
class Reader:
    """A recipient."""

    client: httpx2.Client
    token: str
    id: str

    def get(self, path: str, **options: Any) -> httpx2.Response:
        return self.client.get(f"/delta-sharing{path}", **options)

    def query(self, table: str = "items", capabilities: str = "", **body: Any) -> list[dict[str, Any]]:
        """The lines of a query, with a wait for files that are rendered."""
        headers = {"delta-sharing-capabilities": capabilities} if capabilities else {}
        path = f"/delta-sharing{TABLE.format(table)}/query"
        for _ in range(20):
            answer = self.client.post(path, json=body, headers=headers)
            if answer.status_code != 503:
                break
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith("application/x-ndjson")
        return [json.loads(line) for line in answer.text.splitlines()]

    def changes(
        self, table: str = "items", capabilities: str = "", **parameters: Any
    ) -> list[dict[str, Any]]:
        """The lines of a request for changes."""
        headers = {"delta-sharing-capabilities": capabilities} if capabilities else {}
        for _ in range(20):
            answer = self.get(f"{TABLE.format(table)}/changes", params=parameters, headers=headers)
            if answer.status_code != 503:
                break
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines()]

    def rows(self, table: str = "items", **body: Any) -> list[dict[str, Any]]:
        """The rows of the files of a query in the format parquet, by id."""
        files = [line["file"] for line in self.query(table, **body)[2:]]
        return sorted((row for file in files for row in rows_of(file)), key=lambda row: row["id"])


def content_of(url: str) -> bytes:
    with httpx2.Client(trust_env=False, timeout=30) as client:
        answer = client.get(url)
    assert answer.status_code == 200, answer.text
    return answer.content


def table_of(file: dict[str, Any]) -> pa.Table:
    """What a file of a response has. Its size is the one that is stated."""
    content = content_of(file["url"])
    assert len(content) == file["size"]
    return pq.read_table(BytesIO(content))


def rows_of(file: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table_of(file).to_pylist()
    assert json.loads(file["stats"])["numRecords"] == len(rows)
    return rows


@pytest.fixture(scope="module")
def service(postgres: TestServer, redis: EmbeddedValkey) -> Iterator[Service]:
    with (
        TemporaryDirectory(prefix="headwater-tests-") as directory,
        postgres.fresh_database() as name,
    ):
        urls = (postgres.application_url(name), postgres.admin_url(name), redis.url)
        with running_service(settings_for(*urls, Path(directory))) as running:
            yield running


@dataclass(frozen=True, kw_only=True)
class World:
    """A tenant with the share `sales`."""

    service: Service
    tenant_id: str
    client: httpx2.Client

    def dataset(self, definition: dict[str, Any]) -> None:
        answer = self.client.post("/datasets", json=definition)
        assert answer.status_code == 201, answer.text

    def write(self, name: str, *rows: dict[str, Any], operation: str = "upsert") -> None:
        body = {"operation": operation, "source": {"kind": "rows", "rows": list(rows)}}
        answer = self.client.post(f"/datasets/{name}/writes", json=body)
        assert answer.status_code == 202, answer.text
        self.service.work()

    def change(self, dataset: str, *, cascade: bool = False, **change: Any) -> None:
        """Changes the schema of a dataset. `cascade`: also if that breaks readers."""
        tag = self.client.get(f"/datasets/{dataset}").headers["etag"]
        answer = self.client.patch(
            f"/datasets/{dataset}",
            json={"changes": [change]},
            headers={"If-Match": tag},
            params={"cascade": "pause"} if cascade else {},
        )
        assert answer.status_code == 200, answer.text

    def dataset_id(self, name: str) -> str:
        return self.service.platform.stores.catalog.get(self.tenant_id, name).id

    def share(self, *names: str, deleted_rows: DeletedRows = DeletedRows.RENDERED) -> Share:
        tables = {self.dataset_id(name): name for name in names}
        store = ShareStore(self.service.database)
        return store.add(
            self.tenant_id, new_id(), NewShare(name="sales", deleted_rows=deleted_rows, tables=tables)
        )

    @contextmanager
    def reader(
        self, share: Share, grants: dict[str, dict[str, Any]] | None = None, name: str = "acme"
    ) -> Iterator[Reader]:
        """A recipient. `grants`: `where` and `mask` by dataset; None for all of the share."""
        granted = None
        if grants is not None:
            granted = tuple(
                RecipientGrant(dataset_id=self.dataset_id(dataset), **grant)
                for dataset, grant in grants.items()
            )
        new = NewRecipient(name=name, grants=granted, expires_at=None, requests_per_second=None)
        token, recipient_id = add_recipient(self.service, self.tenant_id, share, new)
        with httpx2.Client(
            base_url=self.service.url,
            headers={"Authorization": f"Bearer {token}"},
            trust_env=False,
            timeout=30,
        ) as client:
            yield Reader(client=client, token=token, id=recipient_id)


def add_recipient(service: Service, tenant_id: str, share: Share, new: NewRecipient) -> tuple[str, str]:
    token = new_share_token()
    store = ShareRecipientStore(service.database)
    recipient_id = new_id()
    store.add(tenant_id, share.id, recipient_id, new, token, created_by=tenant_id)
    return token, recipient_id


@pytest.fixture
def world(service: Service) -> Iterator[World]:
    tenant_id = service.tenants.add_tenant(f"tenant-{new_id()[-12:]}-x")
    api_key = service.tenants.make_key(tenant_id, SCOPES).api_key
    with service.client(api_key) as client:
        yield World(service=service, tenant_id=tenant_id, client=client)
